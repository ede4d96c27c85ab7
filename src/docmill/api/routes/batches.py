"""Batches: many jobs in one call, so many of them at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.creating import Creating
from docmill.api.etags import UnlessChanged, etag, tag_of
from docmill.api.folders import output_roots, shown_result
from docmill.api.shapes import Cursor, Id, Limit, Page, Text, Version, Wire, page_of
from docmill.api.submitting import check_documents, check_metadata
from docmill.model.ids import derived_id
from docmill.model.people import Permission
from docmill.model.statuses import JobStatus
from docmill.services.batch_views import BatchView, JobResult
from docmill.services.batches import MOST_JOBS, RETRIABLE, RETRIED
from docmill.services.submission import new_job

routes = APIRouter(prefix="/batches", tags=["batches"], route_class=Guarded)

MOST_AT_ONCE = 10_000
Status = Annotated[JobStatus, Field(strict=False)]


class NewBatch(Wire):
    """Jobs of one template, submitted together."""

    template: Annotated[Text, Field(min_length=1, max_length=200)]
    template_version: Version | None = None
    entities: Annotated[
        list[Annotated[Text, Field(min_length=3, max_length=1200)]], Field(min_length=1, max_length=MOST_AT_ONCE)
    ]
    limit: Annotated[int, Field(ge=1, le=MOST_JOBS, description="So many are active at a time.")] = 10
    title: Annotated[Text, Field(max_length=1000)] = ""
    metadata: Annotated[dict[str, Any], Field(max_length=1000)] = Field(default_factory=dict)
    skip_active: bool = False


class BatchChange(Wire):
    """What can be changed about a batch."""

    limit: Annotated[int, Field(ge=0, le=MOST_JOBS)]


class RetryBatch(Wire):
    """Which jobs run again."""

    statuses: Annotated[list[Status], Field(min_length=1, max_length=len(RETRIABLE))] = Field(
        default_factory=lambda: sorted(RETRIED)
    )
    keep_checkpoints: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOut:
    """A batch at one moment."""

    id: str
    title: str
    status: JobStatus
    progress: float
    limit: int
    total: int
    active: int
    held: int
    finished: int
    counts: Mapping[JobStatus, int]
    failures: Sequence[JobResult]
    cancelling: bool
    metadata: Mapping[str, Any]
    created_by: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriedOut:
    """What came of asking for a new run."""

    again: int
    passed_over: Sequence[str]


def shown(view: BatchView) -> BatchOut:
    """The view as it is sent."""
    same = {name: getattr(view, name) for name in BatchOut.__dataclass_fields__ if name != "finished"}
    return BatchOut(**same, finished=view.finished)


def _tag(batch_id: str, limit: int) -> str:
    """How far it has come is no part: who sets the limit need not hurry."""
    return tag_of("batch", batch_id, limit)


def _told(response: Response, view: BatchView) -> BatchOut:
    etag(response, _tag(view.id, view.limit))
    return shown(view)


@routes.post("", status_code=201, response_model=BatchOut)
@allowed(Permission.JOBS_WRITE)
def submit(body: NewBatch, call: Acting, creating: Creating) -> Response:
    """Submit all jobs, or none."""
    check_metadata(body.metadata)

    def work() -> BatchOut:
        template = call.org.templates.find(body.template, body.template_version)
        check_documents(call, body.entities)
        jobs = [new_job(template, entity, created_by=call.principal.id, org_id=call.org.id) for entity in body.entities]
        key = creating.derived_key
        view = call.batches.submit(
            jobs,
            limit=body.limit,
            title=body.title,
            metadata=body.metadata,
            created_by=call.principal.id,
            batch_id=None if key is None else derived_id("batch", call.org.id, key),
            skip_active=body.skip_active,
        )
        return shown(view)

    return creating.once(body, work)


@routes.get("")
@allowed(Permission.JOBS_READ)
def list_batches(call: Acting, cursor: Cursor = None, limit: Limit = 50) -> Page[BatchOut]:
    """The newest first, without their failures."""
    found, following = page_of(
        "batch",
        cursor,
        limit,
        lambda before, most: call.batches.list(before=before, limit=most),
        lambda view: view.id,
    )
    return Page(items=[shown(view) for view in found], next_cursor=following)


@routes.get("/{batch_id}")
@allowed(Permission.JOBS_READ)
def get_batch(batch_id: Id, call: Acting, response: Response) -> BatchOut:
    """How it stands."""
    return _told(response, call.batches.get(batch_id))


@routes.get("/{batch_id}/results")
@allowed(Permission.JOBS_READ)
def results(
    batch_id: Id,
    call: Acting,
    step: Annotated[str | None, Query(max_length=200)] = None,
    status: Annotated[list[JobStatus] | None, Query(max_length=10)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[JobResult]:
    """What became of each job, in the order in which they were given."""
    found, following = page_of(
        "result",
        cursor,
        limit,
        lambda after, most: call.batches.results(batch_id, step=step, statuses=status or (), after=after, limit=most),
        lambda result: result.job_id,
    )
    roots = output_roots({}, call.app.settings)
    shown = [replace(each, result=shown_result(each.result, roots)) for each in found]
    return Page(items=shown, next_cursor=following)


@routes.patch("/{batch_id}")
@allowed(Permission.JOBS_WRITE)
def change(batch_id: Id, body: BatchChange, call: Acting, unless: UnlessChanged, response: Response) -> BatchOut:
    """Let at most so many jobs be active from now on; 0 lets nothing new begin."""
    changed = call.batches.set_limit(batch_id, body.limit, onto=lambda which, limit: unless(_tag(which, limit)))
    return _told(response, changed)


@routes.post("/{batch_id}/cancel", status_code=202)
@allowed(Permission.JOBS_WRITE)
def cancel(batch_id: Id, call: Acting) -> BatchOut:
    """End every unfinished job now."""
    call.batches.cancel(batch_id)
    return shown(call.batches.get(batch_id))


@routes.post("/{batch_id}/retry", status_code=202)
@allowed(Permission.JOBS_WRITE)
def retry(batch_id: Id, body: Annotated[RetryBatch, Body(default_factory=RetryBatch)], call: Acting) -> RetriedOut:
    """Run the jobs that ended so once more."""
    retried = call.batches.retry(batch_id, body.statuses, keep_checkpoints=body.keep_checkpoints)
    return RetriedOut(again=retried.again, passed_over=retried.passed_over)
