"""Processing jobs as people use them: submit, look, follow, cancel, run again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from docmill.db.database import Database, is_collision
from docmill.db.tables import job_events, job_steps, jobs, templates
from docmill.engine.batch import Batch, NewJob, Report
from docmill.engine.bell import CONTROL, Bell
from docmill.engine.context import to_json
from docmill.engine.events import Cancelled, Rerun
from docmill.engine.failpoints import failpoint
from docmill.engine.store import PlanSource
from docmill.engine.store_pool import StorePool
from docmill.model.errors import AlreadyActive, Conflict, InvalidInput, NotFound, PermanentError
from docmill.model.ids import DEFAULT_ORG, canonical_id, is_id
from docmill.model.statuses import JobStatus, StepStatus
from docmill.services.following import JobEvent, JobPosition, follow
from docmill.templates.document import plan_from_document
from docmill.templates.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """One job in a list."""

    id: str
    template: str
    template_version: int
    entity_type: str
    entity_id: str
    title: str
    status: JobStatus
    progress: float
    """Settled steps / all steps."""
    run: int
    priority: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step of a job, stored or still to come."""

    step_key: str
    display_name: str
    kind: str
    pool: str
    execution_group: int
    optional: bool
    status: StepStatus
    attempt: int
    max_attempts: int
    crashes: int
    reason: str | None
    result: object
    error: Mapping[str, object] | None
    due_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job with its steps, at one moment."""

    summary: JobSummary
    version: int
    metadata: Mapping[str, object]
    file_type: str | None
    created_by: str | None
    parent_job_id: str | None
    steps: tuple[StepView, ...]


class Jobs:
    """The jobs of one organisation."""

    def __init__(self, database: Database, bell: Bell, org_id: str = DEFAULT_ORG) -> None:
        self._database = database
        self._bell = bell
        self._org_id = org_id
        self._stores = StorePool(database, PlanSource())

    def submit(self, new_jobs: Sequence[NewJob]) -> int:
        """Submit jobs in one transaction and wake the workers; how many of them were new."""
        for job in new_jobs:
            check_job(job)
        # In id order: two who submit the same jobs at the same moment then queue instead of deadlocking.
        in_order = sorted(new_jobs, key=lambda job: job.id)
        outcome = self._stores.commit(Batch(submissions=in_order, check=False), again=Batch(submissions=in_order))
        failpoint("submit.stored")
        self._bell.ring(outcome.left_ready)
        return outcome.submitted

    def cancel(self, job_id: str) -> None:
        """End the job now. Running steps are told to stop and whatever they still report is void."""
        self._change(job_id, Cancelled(), "is already finished; there is nothing left to cancel")
        self._bell.ring([CONTROL])

    def rerun(self, job_id: str, step_keys: Iterable[str] | None = None, *, keep_checkpoints: bool = True) -> None:
        """Run a finished job again: from the start, or only these steps and what depends on them."""
        plan = self._plan(job_id)
        keys = list(plan.positions) if step_keys is None else list(step_keys)
        unknown = [key for key in keys if key not in plan.positions]
        if unknown:
            raise NotFound(f"The job has no step {', '.join(unknown)}; its steps are {', '.join(plan.positions)}.")
        event = Rerun(positions=frozenset(plan.positions[key] for key in keys), keep_checkpoints=keep_checkpoints)
        self._change(job_id, event, "is still running; cancel it first or wait for its end")

    def rerun_from(self, job_id: str, step_key: str, *, keep_checkpoints: bool = True) -> None:
        """Run a finished job again from this step on: the step, what depends on it, and every later group."""
        plan = self._plan(job_id)
        if step_key in plan.positions:
            first = plan.step(step_key)
            later = [step.step_key for step in plan.steps if step.execution_group > first.execution_group]
            keys = [step_key, *later]
        else:
            keys = [step_key]
        self.rerun(job_id, keys, keep_checkpoints=keep_checkpoints)

    def _change(self, job_id: str, event: Cancelled | Rerun, refusal: str) -> None:
        summary = self.get(job_id).summary
        job_id = summary.id
        try:
            outcome = self._stores.commit(Batch(reports=[Report(job_id=job_id, event=event)]))
        except Exception as error:
            if not is_collision(error):
                raise
            raise AlreadyActive(
                f"{summary.entity_type} {summary.entity_id} has another active job of {summary.template!r}, so job "
                f"{job_id} cannot run again now. Wait for its end or cancel it; `docmill jobs list` shows it.",
                job_id=job_id,
            ) from error
        failpoint("cancel.stored")
        if not outcome.accepted[0] and not _came_about(event, summary, self.get(job_id).summary):
            raise Conflict(f"Job {job_id} ({summary.status}) {refusal}.", job_id=job_id)
        self._bell.ring(outcome.left_ready)

    def list(self, *, status: JobStatus | None = None, limit: int = 50) -> Sequence[JobSummary]:
        """The newest jobs first."""
        query = _summaries().where(jobs.c.org_id == self._org_id).order_by(jobs.c.id.desc()).limit(limit)
        if status is not None:
            query = query.where(jobs.c.status == status.value)
        with self._database.read() as connection:
            return [_summary(row) for row in connection.execute(query)]

    def get(self, job_id: str) -> JobView:
        """The job with all its steps; NotFound if there is none."""
        with self._database.read() as connection:
            row = self._row(connection, job_id)
            stored = {
                step.position: step
                for step in connection.execute(select(job_steps).where(job_steps.c.job_id == row.id))
            }
        plan = plan_from_document(row.definition)
        return JobView(
            summary=_summary(row),
            version=row.version,
            metadata=row.metadata,
            file_type=row.file_type,
            created_by=row.created_by,
            parent_job_id=row.parent_job_id,
            steps=tuple(_step_view(planned, stored.get(planned.position)) for planned in plan.steps),
        )

    def events(self, job_id: str, *, after: int = 0) -> Sequence[JobEvent]:
        """What happened to the job since the given version; NotFound if there is no such job."""
        with self._database.read() as connection:
            # The id as it is stored: SQLite compares letter by letter.
            found = self._row(connection, job_id).id
            query = select(job_events).where(job_events.c.job_id == found, job_events.c.version > after)
            return [
                JobEvent(job_id=row.job_id, version=row.version, at=row.at, data=row.data)
                for row in connection.execute(query.order_by(job_events.c.version))
            ]

    def positions(self, job_ids: Sequence[str]) -> Mapping[str, JobPosition]:
        """How far each of these jobs has come; those that do not exist are left out."""
        query = select(jobs.c.id, jobs.c.version, jobs.c.status).where(
            jobs.c.id.in_(job_ids), jobs.c.org_id == self._org_id
        )
        with self._database.read() as connection:
            return {
                row.id: JobPosition(version=row.version, status=JobStatus(row.status))
                for row in connection.execute(query)
            }

    def watch(self, after: Mapping[str, int]) -> Iterator[JobEvent | None]:
        """Events of these jobs (id -> version already seen) as they happen, until all have finished."""
        return follow(self, after)

    def _plan(self, job_id: str) -> Plan:
        with self._database.read() as connection:
            return plan_from_document(self._row(connection, job_id).definition)

    def _row(self, connection: Connection, job_id: str) -> Row[Any]:
        row = None
        canonical = canonical_id(job_id)
        if canonical is not None:
            query = _summaries().add_columns(
                jobs.c.version,
                jobs.c.metadata,
                jobs.c.file_type,
                jobs.c.created_by,
                jobs.c.parent_job_id,
                templates.c.definition,
            )
            row = connection.execute(query.where(jobs.c.id == canonical, jobs.c.org_id == self._org_id)).first()
        if row is None:
            raise NotFound(f"There is no job {job_id}. `docmill jobs list` shows those there are.", job_id=job_id)
        return row

    def close(self) -> None:
        """Let go of the connections."""
        self._stores.close()


def _came_about(event: Cancelled | Rerun, before: JobSummary, after: JobSummary) -> bool:
    """Whether what was asked happened all the same: by our own commit whose answer was lost, or by somebody else."""
    if isinstance(event, Cancelled):
        return after.status is JobStatus.CANCELLED and not before.status.finished
    return after.run > before.run


def check_job(job: NewJob) -> None:
    """Whether the job can be stored; InvalidInput or NotFound says what is wrong with it."""
    _check_ids(job)
    for name in ("entity_type", "entity_id", "title", "file_type", "created_by"):
        if "\0" in (getattr(job, name) or ""):
            raise InvalidInput(f"The {name} of a job contains a NUL character, which databases refuse.", field=name)
    try:
        to_json(job.metadata, "the metadata of a job")
    except PermanentError as error:
        raise InvalidInput(error.message, field="metadata") from error


def _check_ids(job: NewJob) -> None:
    if not is_id(job.template_id):
        raise NotFound(f"There is no process template version with id {job.template_id}.", template_id=job.template_id)
    for name, value in (("id", job.id), ("org_id", job.org_id), ("parent_job_id", job.parent_job_id)):
        if value is not None and not is_id(value):
            raise InvalidInput(
                f"The {name} of a job is a UUID in lower case, not {value!r}; `derived_id` makes one of any text.",
                field=name,
            )


def _summaries() -> Any:
    return select(
        jobs.c.id,
        templates.c.name.label("template"),
        templates.c.version.label("template_version"),
        jobs.c.entity_type,
        jobs.c.entity_id,
        jobs.c.title,
        jobs.c.status,
        jobs.c.settled,
        jobs.c.total,
        jobs.c.run,
        jobs.c.priority,
        jobs.c.created_at,
        jobs.c.started_at,
        jobs.c.finished_at,
    ).join(templates, templates.c.id == jobs.c.template_id)


def _summary(row: Row[Any]) -> JobSummary:
    return JobSummary(
        id=row.id,
        template=row.template,
        template_version=row.template_version,
        entity_type=row.entity_type,
        entity_id=row.entity_id,
        title=row.title,
        status=JobStatus(row.status),
        progress=row.settled / row.total,
        run=row.run,
        priority=row.priority,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def _step_view(planned: Any, row: Row[Any] | None) -> StepView:
    return StepView(
        step_key=planned.step_key,
        display_name=planned.display_name,
        kind=planned.kind,
        pool=planned.pool,
        execution_group=planned.execution_group,
        optional=planned.optional,
        status=StepStatus(row.status) if row else StepStatus.PENDING,
        attempt=_attempt(row) if row else 0,
        max_attempts=planned.max_attempts,
        crashes=row.crashes if row else 0,
        reason=row.reason if row else None,
        result=row.result if row else None,
        error=row.error if row else None,
        due_at=row.due_at if row and row.status == StepStatus.READY else None,
        started_at=row.started_at if row else None,
        finished_at=row.finished_at if row else None,
    )


def _attempt(row: Row[Any]) -> int:
    """Attempts begun: failures, and the one that is running or ended well."""
    running = row.status in (StepStatus.IN_PROGRESS, StepStatus.WAITING, StepStatus.COMPLETED)
    return int(row.failures) + int(running)
