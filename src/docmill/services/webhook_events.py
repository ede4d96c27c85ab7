"""What happened becomes deliveries: one row for each endpoint that wants to hear of it, and never a second.

Review tells what it does inside its own transactions. Jobs end in the engine's, which know nothing of webhooks; so the
jobs that have ended are looked through afterwards, from a little before the last look on, because a transaction may be
seen later than the time it wrote down. What was told before is known by its key.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import Connection, Row, Select, select, tuple_, update

from docmill.db.conflicts import insert_into
from docmill.db.database import Database
from docmill.db.tables import documents, jobs, review_items, templates, webhook_deliveries, webhook_endpoints
from docmill.db.types import iso
from docmill.model.ids import canonical_id, new_id
from docmill.model.people import Principal
from docmill.model.statuses import JobStatus
from docmill.model.webhooks import DeliveryStatus, WebhookEvent
from docmill.people.audit import Deed
from docmill.review.recording import ITEM, Recorder
from docmill.services.documents import errors_of
from docmill.services.review_decisions import OUTPUTS

OVERLAP = timedelta(seconds=60)
"""How much of the past is looked at again: twice what a transaction may stand idle."""
_PAGE = 500
_OF_A_JOB = [
    jobs.c[name] for name in ("id", "org_id", "status", "run", "entity_type", "entity_id", "title", "finished_at")
]

log = logging.getLogger("docmill.webhooks")

_TOLD_BY_REVIEW = {
    "review.approve": WebhookEvent.REVIEW_DECIDED,
    "review.reject": WebhookEvent.REVIEW_DECIDED,
    "review.sla_at_risk": WebhookEvent.REVIEW_SLA_AT_RISK,
}
_OF_JOBS = {
    WebhookEvent.JOB_FINISHED,
    WebhookEvent.JOB_FAILED,
    WebhookEvent.DOCUMENT_FINISHED,
    WebhookEvent.DOCUMENT_FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that endpoints may want to hear of."""

    event: WebhookEvent
    key: str
    """The same for the same thing, however often it is found."""
    at: datetime
    data: Mapping[str, Any]

    def body(self) -> str:
        """The message, as it is signed and sent."""
        told = {"type": self.event.value, "timestamp": iso(self.at), "data": dict(self.data)}
        return orjson.dumps(told).decode()


class Announcing:
    """A recorder that hands on to another, and tells endpoints of what concerns them."""

    def __init__(self, behind: Recorder) -> None:
        self._behind = behind

    def record(self, connection: Connection, principal: Principal, deeds: Sequence[Deed], now: datetime) -> None:
        """As `Recorder` says."""
        self._announce(connection, principal, deeds, now)
        # Last: an audit log locks the end of its chain from here on.
        self._behind.record(connection, principal, deeds, now)

    def _announce(self, connection: Connection, principal: Principal, deeds: Sequence[Deed], now: datetime) -> None:
        told = [deed for deed in deeds if deed.action in _TOLD_BY_REVIEW and deed.subject[0] == ITEM]
        endpoints = _endpoints(connection, principal.org_id) if told else []
        for endpoint in endpoints:
            wanted = [deed for deed in told if _TOLD_BY_REVIEW[deed.action].value in endpoint.events]
            if wanted:
                deliver(connection, endpoint, [_of_review(connection, principal, deed, now) for deed in wanted], now)


def _of_review(connection: Connection, principal: Principal, deed: Deed, now: datetime) -> Happening:
    event, item_id = _TOLD_BY_REVIEW[deed.action], deed.subject[1]
    data = _item(connection, principal.org_id, item_id) | dict(deed.after or {})
    if event is WebhookEvent.REVIEW_DECIDED:
        data |= {"decided_by": principal.id, "decided_by_name": principal.name}
    return Happening(event=event, key=f"{deed.action}:{item_id}:{iso(now)}", at=now, data=data)


def _endpoints(connection: Connection, org_id: str) -> Sequence[Row[Any]]:
    query = select(webhook_endpoints).where(webhook_endpoints.c.org_id == org_id, webhook_endpoints.c.enabled)
    return connection.execute(query).all()


def _item(connection: Connection, org_id: str, item_id: str) -> dict[str, Any]:
    query = select(review_items.c.document_id, review_items.c.schema_name, review_items.c.due_at).where(
        review_items.c.id == item_id, review_items.c.org_id == org_id
    )
    row = connection.execute(query).one()
    due = None if row.due_at is None else iso(row.due_at)
    return {"item_id": item_id, "document_id": row.document_id, "schema": row.schema_name, "due_at": due}


def deliver(connection: Connection, endpoint: Row[Any], happenings: Sequence[Happening], now: datetime) -> None:
    """Write down what is to be told to this endpoint; what was written down before stays as it is."""
    rows = [
        {
            "id": new_id(),
            "org_id": endpoint.org_id,
            "endpoint_id": endpoint.id,
            "event": each.event.value,
            "event_key": each.key,
            "body": each.body(),
            "status": DeliveryStatus.PENDING.value,
            "attempts": 0,
            "tries": 0,
            "due_at": now,
            "created_at": now,
        }
        for each in happenings
    ]
    connection.execute(insert_into(connection, webhook_deliveries).on_conflict_do_nothing(), rows)


def gather(database: Database, now: datetime, ours: Callable[[], bool] = lambda: True) -> None:
    """Write down what the jobs that have ended since the last look mean to the endpoints that want to hear of it.

    `ours` tells whether it is our turn, and is asked only if there is anybody to tell.
    """
    with database.as_keeper().read() as connection:
        found = connection.execute(select(webhook_endpoints).where(webhook_endpoints.c.enabled)).all()
    asked = [(each, {event for event in _OF_JOBS if event.value in each.events}) for each in found]
    waiting = [(endpoint, wanted) for endpoint, wanted in asked if wanted]
    for endpoint, wanted in waiting if waiting and ours() else ():
        try:
            _gather_for(database.scoped(endpoint.org_id), endpoint, wanted, now)
        except Exception as error:
            # It comes up again; the other endpoints must not suffer for it.
            log.warning("what is to be told to endpoint %s was not found out: %s", endpoint.id, error)


def _gather_for(database: Database, endpoint: Row[Any], wanted: set[WebhookEvent], now: datetime) -> None:
    # Nothing of before it was made or last switched on, however far the overlap reaches.
    begin = max(endpoint.told_until - OVERLAP, endpoint.told_from)
    seen = False
    for page in _ended(database, endpoint.org_id, begin, now):
        seen = True
        with database.read() as connection:
            happenings = [each for each in _of_jobs(connection, page) if each.event in wanted]
            known = _known(connection, endpoint.id, [each.key for each in happenings])
        fresh = [each for each in happenings if each.key not in known]
        if fresh:
            with database.write() as connection:
                deliver(connection, endpoint, fresh, now)
    if seen and now - endpoint.told_until > OVERLAP:
        # Only now and then: an empty stretch costs nothing to look through again, and a write does.
        moved = update(webhook_endpoints).where(webhook_endpoints.c.id == endpoint.id)
        with database.write() as connection:
            connection.execute(moved.values(told_until=now))


def _known(connection: Connection, endpoint_id: str, keys: Sequence[str]) -> set[str]:
    query = select(webhook_deliveries.c.event_key).where(
        webhook_deliveries.c.endpoint_id == endpoint_id, webhook_deliveries.c.event_key.in_(keys)
    )
    return set(connection.execute(query).scalars()) if keys else set()


def _ended(database: Database, org_id: str, begin: datetime, end: datetime) -> Iterator[Sequence[Row[Any]]]:
    """The jobs that ended in this time, in pages."""
    query: Select[Any] = (
        select(*_OF_A_JOB, templates.c.name.label("template"))
        .join(templates, templates.c.id == jobs.c.template_id)
        .where(jobs.c.org_id == org_id, jobs.c.finished_at > begin, jobs.c.finished_at <= end)
        .order_by(jobs.c.finished_at, jobs.c.id)
        .limit(_PAGE)
    )
    place: tuple[datetime, str] | None = None
    while True:
        behind = query if place is None else query.where(tuple_(jobs.c.finished_at, jobs.c.id) > place)
        with database.read() as connection:
            page = connection.execute(behind).all()
        if page:
            yield page
        if len(page) < _PAGE:
            return
        place = (page[-1].finished_at, page[-1].id)


def _of_jobs(connection: Connection, rows: Sequence[Row[Any]]) -> Iterator[Happening]:
    """What the ends of these jobs are to endpoints: of each the job's, and of those that process a document its too."""
    processing = {row.id: canonical_id(row.entity_id) for row in rows if _processes_document(row)}
    wanted = [each for each in processing.values() if each is not None]
    # A job may name any document; only those of its own organisation are told of.
    query = select(documents).where(documents.c.id.in_(wanted), documents.c.org_id == rows[0].org_id)
    known = {row.id: row for row in connection.execute(query)} if wanted else {}
    errors = errors_of(connection, [row.id for row in rows if row.status == JobStatus.FAILED.value])
    for row in rows:
        failed = row.status == JobStatus.FAILED.value
        error = {"code": why.code, "message": why.message} if (why := errors.get(row.id)) else None
        told = {"job_id": row.id, "status": row.status, "template": row.template}
        about = {"entity_type": row.entity_type, "entity_id": row.entity_id, "title": row.title, "error": error}
        end = f"{row.id}:{row.run}:{iso(row.finished_at)}"
        event = WebhookEvent.JOB_FAILED if failed else WebhookEvent.JOB_FINISHED
        yield Happening(event=event, key=f"job:{end}", at=row.finished_at, data=told | about)
        document = known.get(processing.get(row.id) or "")
        if document is not None and row.status != JobStatus.CANCELLED.value:
            event = WebhookEvent.DOCUMENT_FAILED if failed else WebhookEvent.DOCUMENT_FINISHED
            data = {"document_id": document.id, "file_name": document.file_name, "job_id": row.id}
            data |= {"document_type": document.document_type, "confidence": document.confidence}
            data |= {"schema": document.schema_name, "duplicate_of": document.duplicate_of}
            data |= {"error": error}
            yield Happening(event=event, key=f"document:{end}", at=row.finished_at, data=data)


def _processes_document(row: Row[Any]) -> bool:
    """Jobs that only write the outputs of a decision leave the document as it was."""
    return bool(row.entity_type == "document" and row.template != OUTPUTS)
