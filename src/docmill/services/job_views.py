"""Jobs and steps as people see them: records made of rows, in this one place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from docmill.db.tables import ai_calls, job_steps, jobs, step_parts, templates
from docmill.engine.issues import ITEM
from docmill.engine.items import TOTAL
from docmill.model.statuses import JobStatus, StepStatus
from docmill.templates.document import plan_from_document
from docmill.templates.plan import PlanStep


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
class ItemsView:
    """How far a step that runs for each item of a list has come."""

    total: int
    completed: int


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
    model: str | None = None
    """The model that was asked last, if one was."""
    items: ItemsView | None = None
    """None: it does not run for each item of a list, or has not begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildView:
    """A job that another one brought about: a follow-up of one of its steps, or its undoing."""

    id: str
    template: str
    status: JobStatus
    undoes: bool
    """It undoes what its parent did."""


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
    batch_id: str | None = None
    children: tuple[ChildView, ...] = ()


def summaries() -> Select[Any]:
    """What a list of jobs is read from."""
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


def whole_jobs() -> Select[Any]:
    """What the view of a job is read from, its steps aside."""
    return summaries().add_columns(
        jobs.c.version,
        jobs.c.metadata,
        jobs.c.file_type,
        jobs.c.created_by,
        jobs.c.parent_job_id,
        jobs.c.batch_id,
        templates.c.definition,
    )


def summary(row: Row[Any]) -> JobSummary:
    """A row of `summaries`."""
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


def view(connection: Connection, row: Row[Any]) -> JobView:
    """A row of `whole_jobs`, with what is read beside it."""
    query = select(job_steps).where(job_steps.c.job_id == row.id)
    stored = {step.position: step for step in connection.execute(query)}
    plan = plan_from_document(row.definition)
    models = _models(connection, row.id)
    items = _items(connection, row.id, row.run) if any(planned.for_each for planned in plan.steps) else {}
    return JobView(
        summary=summary(row),
        version=row.version,
        metadata=row.metadata,
        file_type=row.file_type,
        created_by=row.created_by,
        parent_job_id=row.parent_job_id,
        batch_id=row.batch_id,
        steps=tuple(
            _step(
                planned,
                stored.get(planned.position),
                model=models.get(planned.position),
                items=items.get(planned.position),
            )
            for planned in plan.steps
        ),
        children=tuple(_children(connection, row.id)),
    )


def _models(connection: Connection, job_id: str) -> Mapping[int, str]:
    """Position -> the model asked last, as it is asked for; calls outlive the steps that made them."""
    query = select(ai_calls.c.position, ai_calls.c.provider, ai_calls.c.model).where(ai_calls.c.job_id == job_id)
    rows = connection.execute(query.order_by(ai_calls.c.created_at, ai_calls.c.id))
    return {row.position: f"{row.provider}:{row.model}" for row in rows}


def _children(connection: Connection, job_id: str) -> Sequence[ChildView]:
    query = (
        select(jobs.c.id, templates.c.name, jobs.c.status, templates.c.undoes_id)
        .join(templates, templates.c.id == jobs.c.template_id)
        .where(jobs.c.parent_job_id == job_id)
        .order_by(jobs.c.created_at, jobs.c.id)
    )
    return [
        ChildView(id=row.id, template=row.name, status=JobStatus(row.status), undoes=row.undoes_id is not None)
        for row in connection.execute(query)
    ]


def _items(connection: Connection, job_id: str, run: int) -> Mapping[int, ItemsView]:
    """Position -> how many items there are in this run, and how many of them are done; told by the names of parts."""
    query = select(step_parts.c.position, step_parts.c.name).where(step_parts.c.job_id == job_id)
    names: dict[int, list[str]] = {}
    for row in connection.execute(query):
        names.setdefault(row.position, []).append(row.name)
    found: dict[int, ItemsView] = {}
    for position, parts in names.items():
        totals = [int(name.rpartition("/")[2]) for name in parts if name.startswith(f"{TOTAL}{run}/")]
        if totals:
            completed = sum(name.startswith(ITEM) for name in parts)
            found[position] = ItemsView(total=max(totals), completed=min(completed, max(totals)))
    return found


def _step(planned: PlanStep, row: Row[Any] | None, *, model: str | None, items: ItemsView | None) -> StepView:
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
        model=model,
        items=items,
    )


def _attempt(row: Row[Any]) -> int:
    """Attempts begun: failures, and the one that is running or ended well."""
    running = row.status in (StepStatus.IN_PROGRESS, StepStatus.WAITING, StepStatus.COMPLETED)
    return int(row.failures) + int(running)
