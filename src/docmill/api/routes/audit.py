"""Audit: who did what, what was before and after, and whether the log is whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.shapes import Page, Word
from docmill.model.people import Permission
from docmill.people.audit import AuditEntry, AuditFault

routes = APIRouter(prefix="/audit", tags=["audit"], route_class=Guarded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something somebody did."""

    number: int
    at: datetime
    actor_kind: str
    actor_id: str
    actor_name: str
    action: str
    subject_type: str
    subject_id: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether every entry is as it was written."""

    entries: int
    sound: bool
    faults: Sequence[AuditFault]


def _entry(found: AuditEntry) -> Entry:
    return Entry(**{name: getattr(found, name) for name in Entry.__dataclass_fields__})


@routes.get("")
@allowed(Permission.AUDIT_READ)
def list_entries(
    call: Acting,
    actor: Word = None,
    action: Word = None,
    subject: Annotated[str | None, Query(max_length=300, description="`type:id`.")] = None,
    cursor: Annotated[int | None, Query(ge=1, le=2**62, description="`next_cursor` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Page[Entry]:
    """The newest first."""
    kind, _, name = (subject or "").partition(":")
    found = call.org.audit.list(
        call.principal,
        limit=limit + 1,
        before=cursor,
        subject=None if subject is None else (kind, name),
        actor=actor,
        action=action,
    )
    shown = [_entry(each) for each in found[:limit]]
    return Page(items=shown, next_cursor=str(shown[-1].number) if len(found) > limit else None)


@routes.get("/verify")
@allowed(Permission.AUDIT_READ)
def verify(call: Acting) -> Verification:
    """Hold every entry against its hash."""
    found = call.org.audit.verify(call.principal)
    return Verification(entries=found.entries, sound=not found.faults, faults=found.faults)


@routes.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}},
)
@allowed(Permission.AUDIT_READ)
def export(call: Acting) -> StreamingResponse:
    """All of it, the oldest first, as lines of JSON."""
    entries = call.org.audit.export(call.principal)

    def lines() -> Iterator[bytes]:
        for each in entries:
            yield orjson.dumps(asdict(_entry(each)), option=orjson.OPT_APPEND_NEWLINE, default=dict)

    return StreamingResponse(lines(), media_type="application/x-ndjson")
