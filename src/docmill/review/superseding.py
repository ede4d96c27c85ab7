"""Of several readings of the same bytes by one schema, the newest waits for people.

A document that comes again is a duplicate, unless it is read anew: another version of the schema, another model, a
result that is too old or lost. Then the item of the reading before would wait beside the new one, and somebody would
do the work twice. It is closed without a decision: its status is as it was, nobody has it, and it tells which item
took its place. What a person did there goes along: locked values by the document, whose item it is by `carried`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, bindparam, exists, or_, select, text, update

from docmill.db.alone import ALONE
from docmill.db.tables import documents, review_items
from docmill.db.tables.review import UNDECIDED
from docmill.db.types import IdType
from docmill.model.documents import DocumentStatus
from docmill.model.review import ReviewStatus
from docmill.review.assignment import Executes
from docmill.review.queue import NOBODY

_MINE, _OTHER, _C = documents.alias("mine"), documents.alias("other"), review_items.c
_ORG, _DOCUMENT = bindparam("org", type_=IdType()), bindparam("document", type_=IdType())
_SAME_BYTES = and_(_OTHER.c.org_id == _MINE.c.org_id, _OTHER.c.sha256 == _MINE.c.sha256, _OTHER.c.id != _MINE.c.id)
_BEFORE = or_(
    _OTHER.c.created_at < _MINE.c.created_at,
    and_(_OTHER.c.created_at == _MINE.c.created_at, _OTHER.c.id < _MINE.c.id),
)
_TWIN = (
    select(_MINE.c.sha256)
    .select_from(_MINE.join(_OTHER, _SAME_BYTES))
    .where(_MINE.c.id == _DOCUMENT, _MINE.c.org_id == _ORG)
    .limit(1)
)
# Whoever edits an item holds its document first, and so do we; those without an item nobody edits, and copies that
# wait for this one are not held up.
_HOLD_TWINS = (
    select(_OTHER.c.id)
    .select_from(_MINE.join(_OTHER, _SAME_BYTES))
    .where(_MINE.c.id == _DOCUMENT, _MINE.c.org_id == _ORG)
    .where(exists(select(1).where(_C.document_id == _OTHER.c.id)))
    .order_by(_OTHER.c.id)
    .with_for_update(of=_OTHER)
)
_SCHEMA = _C.schema_name == bindparam("schema")
_OLDER_DOCUMENTS = (
    select(_OTHER.c.id)
    .select_from(_MINE.join(_OTHER, _SAME_BYTES))
    .where(_MINE.c.id == _DOCUMENT, _MINE.c.org_id == _ORG, _BEFORE)
)
# In the order in which all who lock several items lock them.
_OLDER = (
    select(review_items)
    .where(_C.org_id == _ORG, _SCHEMA, text(UNDECIDED), _C.document_id.in_(_OLDER_DOCUMENTS))
    .order_by(_C.id)
    .with_for_update()
)
_NEWER = (
    select(_C.id)
    .select_from(_MINE.join(_OTHER, _SAME_BYTES).join(review_items, _C.document_id == _OTHER.c.id))
    .where(_MINE.c.id == _DOCUMENT, _MINE.c.org_id == _ORG, ~_BEFORE, _SCHEMA)
    .where(_OTHER.c.status == DocumentStatus.COMPLETED.value)
    .order_by(_OTHER.c.created_at.desc(), _OTHER.c.id.desc(), _C.round.desc())
    .limit(1)
)
_CLOSE = (
    update(review_items)
    .where(_C.id == bindparam("item", type_=IdType()), text(UNDECIDED))
    .values(
        superseded_by=bindparam("by", type_=IdType()),
        status=ReviewStatus.PENDING.value,
        version=_C.version + 1,
        updated_at=bindparam("now", type_=_C.updated_at.type),
        postponed_until=None,
        sla_at=None,
        **NOBODY,
    )
)


def hold_twins(db: Executes, org_id: str, document_id: str) -> bool:
    """Whether other documents have the same bytes; if so, until the commit no other of them comes to its end.

    Before the document's own row is written, so that of two that end at the same moment one waits. Nearly always
    there is none, and one look at an index is all.
    """
    about = {"org": org_id, "document": document_id}
    sha256 = db.execute(_TWIN, about).scalar()
    if sha256 is None:
        return False
    if getattr(db, "kind", "sqlite") == "postgresql":
        db.execute(ALONE, {"name": f"docmill.reading:{org_id}:{sha256}"})
    return True


def hold_documents(db: Executes, org_id: str, document_id: str) -> None:
    """Until the commit nobody fixes a value in another document of the same bytes."""
    db.execute(_HOLD_TWINS, {"org": org_id, "document": document_id}).all()


def older_items(db: Executes, org_id: str, document_id: str, schema: str) -> Sequence[Row[Any]]:
    """The items that wait for earlier documents of the same bytes, and were read by the same schema."""
    found: Sequence[Row[Any]] = db.execute(_OLDER, {"org": org_id, "document": document_id, "schema": schema}).all()
    return found


def newer_item(db: Executes, org_id: str, document_id: str, schema: str) -> str | None:
    """The item of a later document of the same bytes that is done already, likewise."""
    found: str | None = db.execute(_NEWER, {"org": org_id, "document": document_id, "schema": schema}).scalar()
    return found


def close(db: Executes, items: Sequence[str], by: str, now: datetime) -> None:
    """These wait no more: the other stands in their place."""
    for item in items:
        db.execute(_CLOSE, {"item": item, "by": by, "now": now})


def carried(older: Sequence[Row[Any]], now: datetime) -> dict[str, Any]:
    """What of the items that it supersedes a new one has: who was at work on them, to whom they were given, and until
    when nobody wanted to see them.
    """
    columns: dict[str, Any] = {}
    for item in older:
        if item.assigned_to:
            columns["assigned_to"] = item.assigned_to
        if item.postponed_until is not None and item.postponed_until > now:
            columns["postponed_until"] = item.postponed_until
    for item in older:
        if item.status == ReviewStatus.IN_REVIEW.value and item.claim_expires_at > now:
            columns |= {name: getattr(item, name) for name in NOBODY}
            columns |= {"status": item.status, "postponed_until": None}
    return columns
