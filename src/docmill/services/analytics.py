"""How the work goes, over the last days: how much, how fast, how often right, and whether confidence keeps its word.

Added up by the database, for one organisation and a bounded time; nothing here is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Double, String, case, cast, extract, func, or_, select

from docmill.ai.budget import Span, begins
from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import documents, extracted_fields, job_steps, jobs, review_items, templates
from docmill.extraction.reliability import BINS, Slice
from docmill.model.documents import DocumentStatus
from docmill.model.errors import InvalidInput
from docmill.model.ids import DEFAULT_ORG
from docmill.model.review import CHANGED, FieldState, ReviewStatus
from docmill.model.statuses import JobStatus, StepStatus

MOST_DAYS = 366
_REVIEWED = [ReviewStatus.APPROVED.value, ReviewStatus.CORRECTED.value]
_CHANGED = [state.value for state in CHANGED]
# What a person has decided needs no look any more: at the approval, that alone would tell of neglect.
_LOOKED_AT = or_(extracted_fields.c.needs_review, extracted_fields.c.state != FieldState.EXTRACTED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCount:
    """One day (UTC): what came in, and what came of the jobs that ended on it."""

    day: str
    documents: int
    documents_completed: int
    documents_failed: int
    jobs_finished: int
    jobs_failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """One step of a template: how often it ended well, and how many seconds it took."""

    template: str
    step_key: str
    count: int
    failed: int
    success_rate: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRates:
    """One field of a schema, over the documents that people or a setting have approved."""

    schema: str
    field: str
    count: int
    reviewed_rate: float
    """The part that needed a look, or that a person decided."""
    corrected_rate: float
    """The part that a person changed, added or took away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Confidence against what people let stand, by parts of its scale."""

    slices: Sequence[Slice]
    values: int
    calibration_error: float | None
    """How far both differ on average; None if nobody has approved anything."""


class Analytics:
    """Looks over what one organisation's work left behind."""

    def __init__(self, database: Database, org_id: str = DEFAULT_ORG) -> None:
        self._database = database.scoped(org_id)
        self._org_id = org_id

    def throughput(self, *, days: int) -> Sequence[DayCount]:
        """Each of the last so many days, today included, those without any work too."""
        with self._database.read() as connection:
            since = self._since(connection, days)
            came = self._by_day(connection, documents.c.created_at, documents, since, ())
            statuses = (DocumentStatus.COMPLETED, DocumentStatus.DUPLICATE)
            done = self._by_day(connection, documents.c.finished_at, documents, since, statuses)
            lost = self._by_day(connection, documents.c.finished_at, documents, since, (DocumentStatus.FAILED,))
            ended = self._by_day(connection, jobs.c.finished_at, jobs, since, ())
            failed = self._by_day(connection, jobs.c.finished_at, jobs, since, (JobStatus.FAILED,))
        return [
            DayCount(
                day=day,
                documents=came.get(day, 0),
                documents_completed=done.get(day, 0),
                documents_failed=lost.get(day, 0),
                jobs_finished=ended.get(day, 0),
                jobs_failed=failed.get(day, 0),
            )
            for day in ((since + timedelta(days=number)).date().isoformat() for number in range(days))
        ]

    def steps(self, *, days: int) -> Sequence[StepTimes]:
        """Each step of the jobs that ended in that time, by template and step."""
        with self._database.read() as connection:
            since = self._since(connection, days)
            took = _seconds(connection, job_steps.c.started_at, job_steps.c.finished_at).label("took")
            ended = job_steps.c.status.in_([StepStatus.COMPLETED.value, StepStatus.FAILED.value])
            source = (
                select(
                    templates.c.name.label("template"),
                    job_steps.c.step_key,
                    took,
                    _one_if(job_steps.c.status == StepStatus.FAILED.value).label("failed"),
                    func.row_number()
                    .over(partition_by=(templates.c.name, job_steps.c.step_key), order_by=took)
                    .label("place"),
                    func.count().over(partition_by=(templates.c.name, job_steps.c.step_key)).label("all"),
                )
                .select_from(job_steps)
                .join(jobs, jobs.c.id == job_steps.c.job_id)
                .join(templates, templates.c.id == jobs.c.template_id)
                .where(jobs.c.org_id == self._org_id, jobs.c.finished_at >= since, ended)
                .where(job_steps.c.started_at.is_not(None), job_steps.c.finished_at.is_not(None))
                .subquery()
            )
            place, everyone = source.c.place, source.c.all
            query = (
                select(
                    source.c.template,
                    source.c.step_key,
                    func.count().label("n"),
                    func.sum(source.c.failed).label("failed"),
                    # The value at the nearest rank: 100 * place >= p * all, in whole numbers.
                    func.min(case((100 * place >= 50 * everyone, source.c.took))).label("p50"),
                    func.min(case((100 * place >= 95 * everyone, source.c.took))).label("p95"),
                )
                .group_by(source.c.template, source.c.step_key)
                .order_by(source.c.template, source.c.step_key)
            )
            rows = connection.execute(query).all()
        return [
            StepTimes(
                template=row.template,
                step_key=row.step_key,
                count=row.n,
                failed=int(row.failed),
                success_rate=1 - int(row.failed) / row.n,
                p50=float(row.p50),
                p95=float(row.p95),
            )
            for row in rows
        ]

    def fields(self, *, days: int) -> Sequence[FieldRates]:
        """Each field of the documents that were approved in that time, by schema and name; cells by their column."""
        name = case(
            (extracted_fields.c.row_index.is_(None), extracted_fields.c.name),
            else_=extracted_fields.c.name + "." + extracted_fields.c.column_name,
        ).label("field")
        query = (
            select(
                review_items.c.schema_name,
                name,
                func.count().label("n"),
                func.sum(_one_if(_LOOKED_AT)).label("reviewed"),
                func.sum(_one_if(extracted_fields.c.state.in_(_CHANGED))).label("corrected"),
            )
            .group_by(review_items.c.schema_name, name)
            .order_by(review_items.c.schema_name, name)
        )
        with self._database.read() as connection:
            rows = connection.execute(self._approved(query, self._since(connection, days))).all()
        return [
            FieldRates(
                schema=row.schema_name,
                field=row.field,
                count=row.n,
                reviewed_rate=int(row.reviewed) / row.n,
                corrected_rate=int(row.corrected) / row.n,
            )
            for row in rows
        ]

    def reliability(self, *, days: int) -> Reliability:
        """Over values of documents that a person approved in that time.

        Documents that a setting approved tell nothing: nobody looked.
        """
        confidence = extracted_fields.c.confidence
        place = case(*((confidence < (low + 1) / BINS, low) for low in range(BINS - 1)), else_=BINS - 1).label("place")
        query = (
            select(
                place,
                func.count().label("n"),
                func.avg(confidence).label("stated"),
                func.sum(_one_if(extracted_fields.c.state.not_in(_CHANGED))).label("stood"),
            )
            .where(confidence.is_not(None), extracted_fields.c.state != FieldState.ADDED.value)
            .where(review_items.c.automatic.is_(False))
            .group_by(place)
            .order_by(place)
        )
        with self._database.read() as connection:
            rows = connection.execute(self._approved(query, self._since(connection, days))).all()
        slices = [
            Slice(
                low=row.place / BINS,
                high=(row.place + 1) / BINS,
                n=row.n,
                stated=float(row.stated),
                right=int(row.stood) / row.n,
            )
            for row in rows
        ]
        values = sum(each.n for each in slices)
        error = sum(each.n * abs(each.stated - each.right) for each in slices) / values if values else None
        return Reliability(slices=slices, values=values, calibration_error=error)

    def _approved(self, query: Any, since: datetime) -> Any:
        return (
            query.select_from(extracted_fields)
            .join(review_items, review_items.c.id == extracted_fields.c.item_id)
            .where(review_items.c.org_id == self._org_id, review_items.c.decided_at >= since)
            .where(review_items.c.status.in_(_REVIEWED))
        )

    def _since(self, connection: Connection, days: int) -> datetime:
        if not 1 <= days <= MOST_DAYS:
            raise InvalidInput(f"Days are 1 to {MOST_DAYS}, not {days}.", field="days")
        return begins(Span.DAY, database_now(connection)) - timedelta(days=days - 1)

    def _by_day(
        self, connection: Connection, moment: Any, table: Any, since: datetime, statuses: Sequence[str]
    ) -> dict[str, int]:
        day = _day(connection, moment).label("day")
        query = select(day, func.count().label("n")).where(table.c.org_id == self._org_id, moment >= since)
        if statuses:
            query = query.where(table.c.status.in_([str(status) for status in statuses]))
        return {row.day: row.n for row in connection.execute(query.group_by(day))}


def _one_if(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, 1), else_=0)


def _day(connection: Connection, moment: Any) -> ColumnElement[str]:
    """The day of UTC, as text."""
    if connection.dialect.name == "postgresql":
        return func.to_char(func.timezone("UTC", moment), "YYYY-MM-DD")
    # Stored as ISO 8601 in UTC.
    return func.substr(cast(moment, String), 1, 10)


def _seconds(connection: Connection, begin: Any, end: Any) -> ColumnElement[float]:
    if connection.dialect.name == "postgresql":
        return cast(extract("epoch", end) - extract("epoch", begin), Double)
    return (func.julianday(end) - func.julianday(begin)) * 86_400.0
