"""Batches as people see them: how many jobs stand where, what came of it all, job by job. Reads only."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, select

from docmill.db.tables import batches, job_steps, jobs
from docmill.model.statuses import JobStatus, StepStatus

FIRST_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """What became of one job of a batch."""

    job_id: str
    entity_type: str
    entity_id: str
    status: JobStatus
    step: str | None
    """The first step that failed."""
    error: Mapping[str, object] | None
    """What it failed with."""
    result: object = None
    """The result of the step asked for, by default the finish step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchView:
    """A batch at one moment."""

    id: str
    title: str
    status: JobStatus
    """Of all jobs together: see `aggregate`."""
    progress: float
    """Settled steps of all jobs / all their steps."""
    limit: int
    total: int
    active: int
    """Begun, or free to begin, and not at their end; those that wait for a person or a callback included."""
    held: int
    """Not let in yet."""
    counts: Mapping[JobStatus, int]
    failures: tuple[JobResult, ...]
    """The first few jobs in which something failed."""
    cancelling: bool
    metadata: Mapping[str, object]
    created_by: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def finished(self) -> int:
        """How many jobs have come to their end."""
        return sum(number for status, number in self.counts.items() if status.finished)


def aggregate(counts: Mapping[JobStatus, int]) -> JobStatus:
    """One status for many jobs, in the words of one.

    At the end: COMPLETED or CANCELLED if all are, FAILED if none brought anything, else PARTIAL_SUCCESS. Before:
    PENDING while nothing has begun, WAITING when all that has begun and not ended waits.
    """
    present = {status for status, number in counts.items() if number}
    going = {status for status in present if not status.finished}
    if going == {JobStatus.PENDING} == present:
        return JobStatus.PENDING
    if going:
        return JobStatus.WAITING if going == {JobStatus.WAITING} else JobStatus.IN_PROGRESS
    if len(present) == 1:
        return present.pop()
    if present <= {JobStatus.FAILED, JobStatus.CANCELLED} and present:
        return JobStatus.FAILED
    return JobStatus.PARTIAL_SUCCESS if present else JobStatus.COMPLETED


def view_of(connection: Connection, row: Row[Any]) -> BatchView:
    """The batch of this row with all that its jobs add to it."""
    tallies = _tallies(connection, [row.id])
    wrong = jobs.c.status.in_([JobStatus.FAILED.value, JobStatus.PARTIAL_SUCCESS.value])
    return _view(row, tallies[row.id], results_of(connection, row.id, wrong, limit=FIRST_FAILURES))


def views_of(connection: Connection, rows: Sequence[Row[Any]]) -> list[BatchView]:
    """The same for a list of batches, without their failures."""
    tallies = _tallies(connection, [row.id for row in rows])
    return [_view(row, tallies[row.id], ()) for row in rows]


@dataclass(slots=True)
class _Tally:
    counts: Counter[JobStatus]
    held: int = 0
    settled: int = 0
    steps: int = 0
    started_at: datetime | None = None


def _tallies(connection: Connection, batch_ids: Sequence[str]) -> dict[str, _Tally]:
    """What the jobs say, not what the batches' own counters say: one statement, so the numbers fit together."""
    query = (
        select(
            jobs.c.batch_id,
            jobs.c.status,
            jobs.c.held,
            func.count().label("number"),
            func.sum(jobs.c.settled).label("settled"),
            func.sum(jobs.c.total).label("steps"),
            func.min(jobs.c.started_at).label("started_at"),
        )
        .where(jobs.c.batch_id.in_(batch_ids))
        .group_by(jobs.c.batch_id, jobs.c.status, jobs.c.held)
    )
    tallies = {batch_id: _Tally(Counter()) for batch_id in batch_ids}
    for row in connection.execute(query):
        tally = tallies[row.batch_id]
        tally.counts[JobStatus(row.status)] += row.number
        tally.held += row.number if row.held else 0
        tally.settled += int(row.settled)
        tally.steps += int(row.steps)
        if row.started_at is not None:
            tally.started_at = min(row.started_at, tally.started_at or row.started_at)
    return tallies


def _view(row: Row[Any], tally: _Tally, failures: Sequence[JobResult]) -> BatchView:
    counts = {status: tally.counts[status] for status in JobStatus if tally.counts[status]}
    unfinished = sum(number for status, number in counts.items() if not status.finished)
    return BatchView(
        id=row.id,
        title=row.title,
        status=aggregate(counts),
        progress=tally.settled / tally.steps if tally.steps else 1.0,
        limit=row.max_active,
        total=row.total,
        active=unfinished - tally.held,
        held=tally.held,
        counts=counts,
        failures=tuple(failures),
        cancelling=row.cancelling,
        metadata=row.metadata,
        created_by=row.created_by,
        created_at=row.created_at,
        started_at=tally.started_at,
        finished_at=row.finished_at,
    )


def results_of(
    connection: Connection, batch_id: str, *conditions: ColumnElement[bool], limit: int, step: str | None = None
) -> list[JobResult]:
    """Jobs of the batch in the order in which they were given, each with its first error and the result asked for."""
    asked = job_steps.alias("asked")
    # The finish step is the last of every template.
    which = asked.c.position == jobs.c.total - 1 if step is None else asked.c.step_key == step
    query = (
        select(jobs.c.id, jobs.c.entity_type, jobs.c.entity_id, jobs.c.status, asked.c.result)
        .join(asked, and_(asked.c.job_id == jobs.c.id, which), isouter=True)
        .where(jobs.c.batch_id == batch_id, *conditions)
        .order_by(jobs.c.id)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    errors = _first_errors(connection, [row.id for row in rows])
    return [
        JobResult(
            job_id=row.id,
            entity_type=row.entity_type,
            entity_id=row.entity_id,
            status=JobStatus(row.status),
            step=errors[row.id].step_key if row.id in errors else None,
            error=errors[row.id].error if row.id in errors else None,
            result=row.result,
        )
        for row in rows
    ]


def _first_errors(connection: Connection, job_ids: Sequence[str]) -> dict[str, Any]:
    query = (
        select(job_steps.c.job_id, job_steps.c.step_key, job_steps.c.error)
        .where(job_steps.c.job_id.in_(job_ids), job_steps.c.status == StepStatus.FAILED.value)
        .order_by(job_steps.c.job_id, job_steps.c.position.desc())
    )
    return {row.job_id: row for row in connection.execute(query)}


def batch_row(connection: Connection, batch_id: str, *mine: ColumnElement[bool]) -> Row[Any] | None:
    """The batch's own row; None if there is no such batch among `mine`."""
    query = select(batches).where(batches.c.id == batch_id, *mine)
    return connection.execute(query).first()
