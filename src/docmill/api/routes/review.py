"""Review: the queue, claims, fields, decisions, comments; everything that a person can do, here too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Response
from pydantic import BaseModel, Field

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.creating import Creating
from docmill.api.etags import MaybeSeen, Seen, UnlessChanged, etag, tag_of
from docmill.api.shapes import Cursor, Id, Limit, Moment, Name, Page, Text, Wire, Word, page_of
from docmill.extraction.schema import available
from docmill.model.errors import InvalidInput
from docmill.model.people import Permission
from docmill.model.review import ReviewStatus
from docmill.services.review import Comment, FieldChange, ItemSummary, ItemView
from docmill.services.review_slas import Slas

routes = APIRouter(prefix="/review", tags=["review"], route_class=Guarded)

FieldPath = Annotated[Text, Field(min_length=1, max_length=500, description="`total`, `line_items[2].amount`.")]
Value = Annotated[Text, Field(max_length=10_000)]


class Correction(Wire):
    """A field and the value that a person gives it."""

    path: FieldPath
    value: Value


class Cleared(Wire):
    """A field that the document does not have."""

    path: FieldPath


class Confirmed(Wire):
    """Fields that are right; null: all that need a look and have a value."""

    paths: Annotated[list[FieldPath], Field(max_length=5000)] | None = None


class Undone(Wire):
    """Whose last change is taken back; null: of the item."""

    path: FieldPath | None = None


class Approval(Wire):
    """Whether values are approved for which not all rules hold; false: then it is refused with `checks_fail`."""

    anyway: bool = True


class Rejection(Wire):
    """Why a document is rejected."""

    reason: Annotated[Text, Field(min_length=1, max_length=2000)]


class Postponement(Wire):
    """Until when nobody is given it."""

    until: Moment


class Assignment(Wire):
    """Who is to review it; null: whoever has the fewest."""

    to: Annotated[Text, Field(min_length=1, max_length=200)] | None = None


class Remark(Wire):
    """Something to say about an item, or about one of its fields."""

    body: Annotated[Text, Field(min_length=1, max_length=10_000)]
    path: FieldPath | None = None


class Sla(Wire):
    """How long items may take from now on; null: as long as they like."""

    seconds: Annotated[int, Field(ge=1, le=3650 * 86_400)] | None
    schema_name: Annotated[Text, Field(min_length=1, max_length=200)] | None = None


class SlaView(BaseModel):
    """How long items may take."""

    schema_name: str | None
    seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision, and the jobs that carry it into the outputs."""

    item: ItemSummary
    job_ids: Sequence[str]
    failing: Sequence[Mapping[str, Any]]
    """Rules that do not hold for what was approved: `name`, `message` and the `fields` they look at."""


def _told(response: Response, item: ItemSummary) -> ItemSummary:
    etag(response, item.version)
    return item


@routes.get("/items")
@allowed(Permission.REVIEW_READ)
def list_items(
    call: Acting,
    status: ReviewStatus | Literal["open"] = "open",
    assigned_to: Word = None,
    claimed_by: Word = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[ItemSummary]:
    """Open items by priority; others the newest first. `assigned_to=`: those of nobody."""
    shown, following = page_of(
        "item",
        cursor,
        limit,
        lambda after, most: call.org.review.list(
            call.principal, status=status, assigned_to=assigned_to, claimed_by=claimed_by, after=after, limit=most
        ),
        lambda item: item.id,
    )
    return Page(items=shown, next_cursor=following)


@routes.get("/next")
@allowed(Permission.REVIEW_READ)
def look_ahead(call: Acting, limit: Annotated[int, Query(ge=1, le=50)] = 1) -> Sequence[ItemSummary]:
    """What the caller would be given next, best first; nothing is claimed."""
    return call.org.review.next(call.principal, limit=limit)


@routes.post("/next/claim", responses={204: {"description": "There is nothing to review.", "model": None}})
@allowed(Permission.REVIEW_DECIDE)
def claim_next(call: Acting, response: Response) -> ItemSummary:
    """Claim the item that comes first for the caller; 204 if there is none."""
    item = call.org.review.claim_next(call.principal)
    if item is None:
        return Response(status_code=204)  # type: ignore[return-value]  # sent as it is
    return _told(response, item)


@routes.get("/items/{item_id}")
@allowed(Permission.REVIEW_READ)
def get_item(item_id: Id, call: Acting, response: Response) -> ItemView:
    """An item with its fields: values, confidence, evidence, checks passed and failed. Also by the document's id."""
    found = call.org.review.get(call.principal, item_id)
    etag(response, found.item.version)
    return found


@routes.post("/items/{item_id}/claim")
@allowed(Permission.REVIEW_DECIDE)
def claim(item_id: Id, call: Acting, response: Response, seen: MaybeSeen) -> ItemSummary:
    """Claim this item; one's own again renews the claim."""
    return _told(response, call.org.review.claim(call.principal, item_id, version=seen))


@routes.post("/items/{item_id}/release")
@allowed(Permission.REVIEW_DECIDE)
def release(item_id: Id, call: Acting, response: Response, seen: Seen) -> ItemSummary:
    """Give it back; what was done to its fields stays."""
    return _told(response, call.org.review.release(call.principal, item_id, version=seen))


@routes.post("/items/{item_id}/postpone")
@allowed(Permission.REVIEW_DECIDE)
def postpone(item_id: Id, body: Postponement, call: Acting, response: Response, seen: Seen) -> ItemSummary:
    """Leave it alone until then; its SLA goes on."""
    return _told(response, call.org.review.postpone(call.principal, item_id, body.until, version=seen))


@routes.post("/items/{item_id}/resume")
@allowed(Permission.REVIEW_DECIDE)
def resume(item_id: Id, call: Acting, response: Response, seen: Seen) -> ItemSummary:
    """End a postponement now."""
    return _told(response, call.org.review.resume(call.principal, item_id, version=seen))


@routes.post("/items/{item_id}/assign")
@allowed(Permission.REVIEW_MANAGE)
def assign(
    item_id: Id,
    body: Annotated[Assignment, Body(default_factory=Assignment)],
    call: Acting,
    response: Response,
    seen: Seen,
) -> ItemSummary:
    """Give it to somebody, or to whoever has the fewest. A claim of somebody else ends with it."""
    if body.to is None:
        return _told(response, call.org.review.assign(call.principal, item_id, version=seen))
    check = partial(call.org.people.hold_reviewer, call.principal, body.to)
    return _told(response, call.org.review.assign(call.principal, item_id, body.to, version=seen, check=check))


@routes.post("/items/{item_id}/unassign")
@allowed(Permission.REVIEW_MANAGE)
def unassign(item_id: Id, call: Acting, response: Response, seen: Seen) -> ItemSummary:
    """Let whoever comes first take it."""
    return _told(response, call.org.review.unassign(call.principal, item_id, version=seen))


@routes.post("/items/{item_id}/correct")
@allowed(Permission.REVIEW_DECIDE)
def correct(item_id: Id, body: Correction, call: Acting, response: Response, seen: Seen) -> ItemSummary:
    """Give a field this value, and lock it."""
    review = call.org.review
    return _told(response, review.correct(call.principal, item_id, body.path, body.value, version=seen))


@routes.post("/items/{item_id}/add")
@allowed(Permission.REVIEW_DECIDE)
def add(item_id: Id, body: Correction, call: Acting, response: Response, seen: Seen) -> ItemSummary:
    """Give a value to a field that has none."""
    return _told(response, call.org.review.add(call.principal, item_id, body.path, body.value, version=seen))


@routes.post("/items/{item_id}/clear")
@allowed(Permission.REVIEW_DECIDE)
def clear(item_id: Id, body: Cleared, call: Acting, response: Response, seen: Seen) -> ItemSummary:
    """Say that the document has no such value."""
    return _told(response, call.org.review.clear(call.principal, item_id, body.path, version=seen))


@routes.post("/items/{item_id}/confirm")
@allowed(Permission.REVIEW_DECIDE)
def confirm(
    item_id: Id,
    body: Annotated[Confirmed, Body(default_factory=Confirmed)],
    call: Acting,
    response: Response,
    seen: Seen,
) -> ItemSummary:
    """Say that values are right."""
    return _told(response, call.org.review.confirm(call.principal, item_id, body.paths, version=seen))


@routes.post("/items/{item_id}/undo")
@allowed(Permission.REVIEW_DECIDE)
def undo(
    item_id: Id, body: Annotated[Undone, Body(default_factory=Undone)], call: Acting, response: Response, seen: Seen
) -> ItemSummary:
    """Take back the last change, of the item or of a field."""
    return _told(response, call.org.review.undo(call.principal, item_id, body.path, version=seen))


@routes.post("/items/{item_id}/approve")
@allowed(Permission.REVIEW_DECIDE)
def approve(
    item_id: Id,
    body: Annotated[Approval, Body(default_factory=Approval)],
    call: Acting,
    response: Response,
    seen: Seen,
) -> Decision:
    """Approve the values as they stand."""
    decided = call.org.review.approve(call.principal, item_id, version=seen, anyway=body.anyway)
    return Decision(item=_told(response, decided.item), job_ids=decided.job_ids, failing=decided.failing)


@routes.post("/items/{item_id}/reject")
@allowed(Permission.REVIEW_DECIDE)
def reject(item_id: Id, body: Rejection, call: Acting, response: Response, seen: Seen) -> Decision:
    """Reject the document, with a reason."""
    decided = call.org.review.reject(call.principal, item_id, body.reason, version=seen)
    return Decision(item=_told(response, decided.item), job_ids=decided.job_ids, failing=())


@routes.get("/items/{item_id}/history")
@allowed(Permission.REVIEW_READ)
def history(
    item_id: Id, call: Acting, path: Annotated[str | None, Query(max_length=500)] = None
) -> Sequence[FieldChange]:
    """What was done to the fields, or to one of them, oldest first."""
    return call.org.review.history(call.principal, item_id, path)


@routes.get("/items/{item_id}/comments")
@allowed(Permission.REVIEW_READ)
def comments(item_id: Id, call: Acting) -> Sequence[Comment]:
    """What was said, oldest first."""
    return call.org.review.comments(call.principal, item_id)


@routes.post("/items/{item_id}/comments", status_code=201, response_model=Comment)
@allowed(Permission.REVIEW_DECIDE)
def comment(item_id: Id, body: Remark, call: Acting, creating: Creating) -> Response:
    """Say something."""
    return creating.once(body, lambda: call.org.review.comment(call.principal, item_id, body.body, path=body.path))


@routes.get("/slas")
@allowed(Permission.REVIEW_READ)
def slas(call: Acting, response: Response) -> list[SlaView]:
    """How long items may take, by schema; without one: all that have none of their own."""
    found = _slas(call.org.review.slas(call.principal))
    etag(response, _tag(found))
    return found


@routes.put("/slas", status_code=204)
@allowed(Permission.REVIEW_MANAGE)
def set_sla(body: Sla, call: Acting, unless: UnlessChanged, response: Response) -> None:
    """Set how long items may take from now on."""
    known = available(call.app.settings.schema_folders)
    if body.schema_name is not None and body.schema_name not in known:
        told = f"There is no schema {body.schema_name!r}. There are: {', '.join(known)}."
        raise InvalidInput(told, field="body.schema_name")
    length = None if body.seconds is None else timedelta(seconds=body.seconds)
    stored = call.org.review.set_sla(
        call.principal, length, schema=body.schema_name, onto=lambda found: unless(_tag(_slas(found)))
    )
    etag(response, _tag(_slas(stored)))


def _slas(found: Slas) -> list[SlaView]:
    return [
        SlaView(schema_name=name, seconds=None if sla is None else int(sla.total_seconds()))
        for name, sla in found.items()
    ]


def _tag(shown: list[SlaView]) -> str:
    """Of all of them: they are looked at together."""
    return tag_of("slas", [each.model_dump() for each in shown])


@routes.get("/reviewers")
@allowed(Permission.REVIEW_READ)
def reviewers(call: Acting) -> Sequence[str]:
    """Who is given work by the least-loaded rule."""
    return call.org.review.enrolled(call.principal)


@routes.put("/reviewers/{name}", status_code=204)
@allowed(Permission.REVIEW_MANAGE)
def enroll(name: Name, call: Acting) -> None:
    """Give somebody work from now on."""
    check = partial(call.org.people.hold_reviewer, call.principal, name)
    call.org.review.enroll(call.principal, name, check=check)


@routes.delete("/reviewers/{name}", status_code=204)
@allowed(Permission.REVIEW_MANAGE)
def withdraw(name: Name, call: Acting) -> None:
    """Give them no more."""
    call.org.review.withdraw(call.principal, name)
