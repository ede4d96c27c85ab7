"""Of several readings of the same bytes by one schema, the one that was asked for last waits for people.

A document that comes again is a duplicate, unless it is read anew: another version of the schema, another model, a
result that is too old or lost. Then the item of the reading before would wait beside the new one, and somebody would
do the work twice. It is closed without a decision: its status is as it was, nobody has it, and it tells which item
took its place. What a person did there goes along: locked values by the document, whose item it is by `carried`.
A duplicate asks its original's question once more: then that one is the last, and its item waits again.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, bindparam, exists, func, or_, select, text, update

from docmill.db.alone import ALONE
from docmill.db.tables import documents, review_items
from docmill.db.tables.review import UNDECIDED
from docmill.db.types import IdType
from docmill.model.documents import DocumentStatus
from docmill.model.review import ReviewStatus, SlaState
from docmill.review.assignment import Executes
from docmill.review.queue import NOBODY

AT_RISK = 0.8
"""The share of its time after which an item is at risk."""

_MINE, _OTHER, _C = documents.alias("mine"), documents.alias("other"), review_items.c
_ORG, _DOCUMENT = bindparam("org", type_=IdType()), bindparam("document", type_=IdType())
_READING = bindparam("reading", type_=IdType())
_SAME = and_(_OTHER.c.org_id == _MINE.c.org_id, _OTHER.c.sha256 == _MINE.c.sha256)
_SAME_BYTES = and_(_SAME, _OTHER.c.id != _MINE.c.id)
_READING_OF = func.coalesce(_OTHER.c.duplicate_of, _OTHER.c.id)
_TWIN = (
    select(_MINE.c.sha256)
    .select_from(_MINE.join(_OTHER, _SAME_BYTES))
    .where(_MINE.c.id == _DOCUMENT, _MINE.c.org_id == _ORG)
    .limit(1)
)
# One that is neither a copy, nor a file of the same run that will be one.
_ANOTHER_READING = _TWIN.where(_OTHER.c.id != _READING, _OTHER.c.duplicate_of.is_(None)).where(
    or_(
        _OTHER.c.status == DocumentStatus.COMPLETED.value,
        *(_OTHER.c[name] != _MINE.c[name] for name in ("schema_asked", "schema_asked_version", "variant")),
    )
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
# The reading whose question was asked last: a copy asks that of its original once more.
_STANDING = (
    select(_READING_OF)
    .select_from(_MINE.join(_OTHER, _SAME))
    .where(_MINE.c.id == _DOCUMENT, _MINE.c.org_id == _ORG)
    .where(or_(_READING_OF == _READING, exists(select(1).where(_C.document_id == _READING_OF, _SCHEMA))))
    .order_by(_OTHER.c.created_at.desc(), _OTHER.c.id.desc())
    .limit(1)
)
_LAST = select(_C.id).where(_C.document_id == _READING, _SCHEMA).order_by(_C.round.desc()).limit(1)
_OTHER_DOCUMENTS = (
    select(_OTHER.c.id)
    .select_from(_MINE.join(_OTHER, _SAME_BYTES))
    .where(_MINE.c.id == _DOCUMENT, _MINE.c.org_id == _ORG, _READING_OF != _READING)
)
_ITEMS_OF_OTHERS = select(_C.id).where(_C.org_id == _ORG, _SCHEMA, _C.document_id.in_(_OTHER_DOCUMENTS)).order_by(_C.id)
_OPEN_OF_OTHERS = _ITEMS_OF_OTHERS.where(text(UNDECIDED))
# In the order in which all who lock several items lock them.
_HOLD = (
    select(review_items)
    .where(_C.id.in_(bindparam("items", type_=IdType(), expanding=True)))
    .order_by(_C.id)
    .with_for_update()
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


def hold_twins(db: Executes, org_id: str, document_id: str, original: str | None = None) -> bool:
    """Whether other documents have the same bytes; if so, until the commit no other of them comes to its end.

    Before the document's own row is written, so that of two that end at the same moment one waits. Nearly always
    there is none, and one look at an index is all. For a copy, whether there is a reading besides its original.
    """
    about = {"org": org_id, "document": document_id}
    if original is None:
        sha256 = db.execute(_TWIN, about).scalar()
    else:
        sha256 = db.execute(_ANOTHER_READING, {**about, "reading": original}).scalar()
    if sha256 is None:
        return False
    if getattr(db, "kind", "sqlite") == "postgresql":
        db.execute(ALONE, {"name": f"docmill.reading:{org_id}:{sha256}"})
    return True


def hold_documents(db: Executes, org_id: str, document_id: str) -> None:
    """Until the commit nobody fixes a value in another document of the same bytes."""
    db.execute(_HOLD_TWINS, {"org": org_id, "document": document_id}).all()


class Readings:
    """The readings of the bytes of a document by one schema, as the one that it is or is a copy of sees them."""

    def __init__(self, db: Executes, org_id: str, document_id: str, reading: str, schema: str) -> None:
        self._db, self._reading = db, reading
        self._about = {"org": org_id, "document": document_id, "reading": reading, "schema": schema}

    def newer(self) -> str | None:
        """The item of the reading that stands, if that is another one."""
        standing = self._db.execute(_STANDING, self._about).scalar()
        if standing is None or standing == self._reading:
            return None
        return self.last(standing)

    def last(self, reading: str) -> str | None:
        """The last item of a reading."""
        found: str | None = self._db.execute(_LAST, {**self._about, "reading": reading}).scalar()
        return found

    def open(self) -> Sequence[str]:
        """The items that wait for other readings and their copies."""
        found: Sequence[str] = self._db.execute(_OPEN_OF_OTHERS, self._about).scalars().all()
        return found

    def all(self) -> Sequence[str]:
        """Theirs that are decided or superseded, too."""
        found: Sequence[str] = self._db.execute(_ITEMS_OF_OTHERS, self._about).scalars().all()
        return found


def hold_items(db: Executes, items: Sequence[str]) -> dict[str, Row[Any]]:
    """These items, locked."""
    return {row.id: row for row in db.execute(_HOLD, {"items": items})} if items else {}


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


def standing_again(item: Row[Any], given: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The columns of an item that waits again: with what is carried to it, and the time that it had."""
    match SlaState(item.sla_state):
        case SlaState.ON_TRACK:
            sla_at = item.created_at + AT_RISK * (item.due_at - item.created_at)
        case SlaState.AT_RISK:
            sla_at = item.due_at
        case SlaState.OVERDUE | SlaState.NONE:
            sla_at = None
    return {"superseded_by": None, "version": item.version + 1, "updated_at": now, "sla_at": sla_at, **given}
