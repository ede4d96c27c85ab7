"""Jobs and their steps: submit, look, follow, retry, cancel."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Response
from pydantic import Field

from docmill.api.access import Acting, Call, Guarded, allowed
from docmill.api.creating import Creating
from docmill.api.folders import output_roots, shown_metadata, shown_result
from docmill.api.shapes import Cursor, Id, Limit, Page, Text, Version, Wire, Word, is_version, page_of
from docmill.api.submitting import check_documents, check_metadata
from docmill.model.people import Permission
from docmill.model.statuses import JobStatus
from docmill.services.following import JobEvent
from docmill.services.job_views import ChildView, JobSummary, JobView, StepView
from docmill.services.jobs import JobFilter, Retry
from docmill.services.rerunning import Comparison, step_of
from docmill.services.submission import new_job

routes = APIRouter(prefix="/jobs", tags=["jobs"], route_class=Guarded)

Metadata = Annotated[dict[str, Any], Field(max_length=1000)]


class NewJob(Wire):
    """A job to be done for one entity."""

    template: Annotated[Text, Field(min_length=1, max_length=200)]
    template_version: Version | None = None
    entity: Annotated[Text, Field(min_length=3, max_length=1200, description="`type:id`, such as `document:42`.")]
    title: Annotated[Text, Field(max_length=1000)] = ""
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    metadata: Metadata = Field(default_factory=dict)
    file_type: Annotated[Text, Field(max_length=200)] | None = None


class RetryJob(Wire):
    """What to run again; nothing said: what went wrong, and what rests on it."""

    steps: list[Annotated[Text, Field(max_length=200)]] = Field(default_factory=list, max_length=500)
    from_step: Annotated[Text, Field(max_length=200)] | None = None
    everything: bool = False
    keep_checkpoints: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """A job with its steps, at one moment."""

    job: JobSummary
    version: int
    metadata: dict[str, Any]
    file_type: str | None
    created_by: str | None
    parent_job_id: str | None
    batch_id: str | None
    steps: list[StepView]
    children: list[ChildView]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """All that one transaction did to a job."""

    job_id: str
    version: int
    at: datetime
    data: dict[str, Any]


def detail(call: Call, view: JobView) -> JobDetail:
    """The view as it is sent."""
    return JobDetail(
        job=view.summary,
        version=view.version,
        metadata=shown_metadata(view.metadata),
        file_type=view.file_type,
        created_by=view.created_by,
        parent_job_id=view.parent_job_id,
        batch_id=view.batch_id,
        steps=[_shown(call, view, step) for step in view.steps],
        children=list(view.children),
    )


def _shown(call: Call, view: JobView, step: StepView) -> StepView:
    return replace(step, result=shown_result(step.result, output_roots(view.metadata, call.app.settings)))


def event(found: JobEvent) -> Event:
    """The event as it is sent."""
    return Event(job_id=found.job_id, version=found.version, at=found.at, data=dict(found.data))


@routes.post("", status_code=201, response_model=JobDetail)
@allowed(Permission.JOBS_WRITE)
def submit(body: NewJob, call: Acting, creating: Creating) -> Response:
    """Submit a job. With an Idempotency-Key, the same again is submitted once."""
    check_metadata(body.metadata)

    def work() -> JobDetail:
        template = call.org.templates.find(body.template, body.template_version)
        check_documents(call, [body.entity])
        job = new_job(
            template,
            body.entity,
            idempotency_key=creating.derived_key,
            title=body.title,
            priority=body.priority,
            metadata=body.metadata,
            file_type=body.file_type,
            created_by=call.principal.id,
            org_id=call.org.id,
        )
        call.jobs.submit_one(job)
        return detail(call, call.jobs.get(job.id))

    return creating.once(body, work)


@routes.get("")
@allowed(Permission.JOBS_READ)
def list_jobs(
    call: Acting,
    status: JobStatus | None = None,
    template: Word = None,
    entity_type: Word = None,
    entity_id: Annotated[str | None, Query(max_length=1000)] = None,
    batch_id: Annotated[str | None, Query(min_length=36, max_length=36)] = None,
    created_by: Word = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[JobSummary]:
    """The newest first."""
    only = JobFilter(
        status=status,
        template=template,
        entity_type=entity_type,
        entity_id=entity_id,
        batch_id=batch_id,
        created_by=created_by,
    )
    shown, following = page_of(
        "job",
        cursor,
        limit,
        lambda before, most: call.jobs.list(only, before=before, limit=most),
        lambda job: job.id,
    )
    return Page(items=shown, next_cursor=following)


@routes.get("/{job_id}")
@allowed(Permission.JOBS_READ)
def get_job(job_id: Id, call: Acting) -> JobDetail:
    """A job with its steps."""
    return detail(call, call.jobs.get(job_id))


@routes.get("/{job_id}/events")
@allowed(Permission.JOBS_READ)
def job_events(
    job_id: Id,
    call: Acting,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[Event]:
    """What happened to the job since this version, the oldest first."""
    shown, following = page_of(
        "event",
        cursor,
        limit,
        lambda seen, most: call.jobs.events(job_id, after=after if seen is None else int(seen), limit=most),
        lambda each: str(each.version),
        is_version,
    )
    return Page(items=[event(each) for each in shown], next_cursor=following)


@routes.post("/{job_id}/retry", status_code=202)
@allowed(Permission.JOBS_WRITE)
def retry(job_id: Id, body: Annotated[RetryJob, Body(default_factory=RetryJob)], call: Acting) -> JobDetail:
    """Run a finished job again: what went wrong and what rests on it, unless the body says otherwise."""
    wish = Retry(
        steps=tuple(body.steps),
        from_step=body.from_step,
        everything=body.everything,
        keep_checkpoints=body.keep_checkpoints,
    )
    call.jobs.retry(job_id, wish)
    return detail(call, call.jobs.get(job_id))


@routes.post("/{job_id}/cancel", status_code=202)
@allowed(Permission.JOBS_WRITE)
def cancel(job_id: Id, call: Acting) -> JobDetail:
    """End the job now."""
    call.jobs.cancel(job_id)
    return detail(call, call.jobs.get(job_id))


class RerunStep(Wire):
    """By which model a step is to be run again."""

    model: Annotated[Text, Field(min_length=1, max_length=200)]


StepKey = Annotated[str, Path(min_length=1, max_length=200)]


@routes.get("/{job_id}/steps/{step_key}")
@allowed(Permission.JOBS_READ)
def get_step(job_id: Id, step_key: StepKey, call: Acting) -> StepView:
    """One step."""
    view = call.jobs.get(job_id)
    return _shown(call, view, step_of(view, step_key))


@routes.post("/{job_id}/steps/{step_key}/rerun", status_code=202)
@allowed(Permission.JOBS_WRITE)
def rerun(job_id: Id, step_key: StepKey, body: RerunStep, call: Acting) -> JobDetail:
    """Run a step that asks a model again, by another one, and what rests on it; `comparison` tells what came of it."""
    call.jobs.get(job_id)
    return detail(call, call.org.reruns.by(call.principal).rerun(job_id, step_key, call.org.model(body.model)))


@routes.get("/{job_id}/steps/{step_key}/comparison")
@allowed(Permission.JOBS_READ)
def comparison(job_id: Id, step_key: StepKey, call: Acting) -> Comparison:
    """A step before and after it was run again: the fields that differ, and what either cost."""
    call.jobs.get(job_id)
    return call.org.reruns.compare(job_id, step_key)
