"""Items and fields as they are written, in the transaction that completes a document. Every statement is built once."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

import orjson
from sqlalchemy import Row, bindparam, delete, func, insert, select, text, update

from docmill.db.tables import extracted_fields, review_items, review_settings
from docmill.db.types import IdType, iso
from docmill.model.ids import following_id
from docmill.model.review import ReviewStatus, SlaState
from docmill.review.assignment import Executes, least_loaded
from docmill.review.fields import COLUMNS, FieldRow
from docmill.review.merging import agrees, merged, said_since, values_of, with_locks
from docmill.review.priority import place_of, seconds_of, standing
from docmill.review.queue import NOBODY
from docmill.review.superseding import AT_RISK, Readings, carried, close, hold_items, standing_again

SYSTEM = "system"
_KEPT = ("schema", "schema_file", "schema_set", "out")
"""What of the metadata of the job is needed to write the outputs again."""

_ORG, _ITEM = bindparam("org", type_=IdType()), bindparam("item", type_=IdType())
_DOCUMENT = bindparam("document", type_=IdType())


def _sla(schema: Any) -> Any:
    settings = review_settings.c
    return select(settings.sla_seconds).where(settings.org_id == _ORG, settings.schema_name == schema).scalar_subquery()


_LATEST = (
    select(review_items.c.id)
    .where(review_items.c.document_id == _DOCUMENT)
    .order_by(review_items.c.round.desc())
    .limit(1)
    .scalar_subquery()
)
_STANDS = select(
    func.coalesce(_sla(bindparam("schema")), _sla(""), bindparam("default")).label("sla"), _LATEST.label("latest")
)
HOLD_ITEM = select(review_items).where(review_items.c.id == _ITEM).with_for_update()
FIELDS_OF = (
    select(*(extracted_fields.c[name] for name in COLUMNS))
    .where(extracted_fields.c.item_id == _ITEM)
    .order_by(extracted_fields.c.position)
)
_INSERT_ITEM = insert(review_items)
_FORGET_FIELDS = delete(extracted_fields).where(extracted_fields.c.item_id == _ITEM)
_REFRESHED = (
    *("job_id", "schema_name", "schema_version", "document_type", "extraction_key", "options", "cut", "confidence"),
    *("complexity", "value", "standing", "queue_class", "place", "fields_total", "fields_to_review", "updated_at"),
)
_REFRESH = (
    update(review_items)
    .where(review_items.c.id == bindparam("the_id", type_=IdType()))
    .values({name: bindparam(name) for name in _REFRESHED} | {"version": review_items.c.version + 1})
)
_PROPOSE = (
    update(extracted_fields)
    .where(extracted_fields.c.item_id == _ITEM, extracted_fields.c.path == bindparam("the_path"))
    .values({name: bindparam(name) for name in ("extracted", "confidence", "proposed", "differs")})
)


def _unpacking(kind: str) -> Any:
    """All rows of an item from one text of JSON: as many statements as there are rows would cost ten times as much."""
    casts = {
        "position": "integer",
        "row_index": "integer",
        "confidence": "double precision",
        "threshold": "double precision",
        "required": "boolean",
        "needs_review": "boolean",
        "locked": "boolean",
        "differs": "boolean",
        "changed_at": "timestamptz",
    }

    def cell(place: int, name: str) -> str:
        if kind == "sqlite":
            return f"json_extract(value, '$[{place}]')"
        if name == "details":
            return f"value -> {place}"
        return f"cast(value ->> {place} as {casts[name]})" if name in casts else f"value ->> {place}"

    source = "json_each(:rows)" if kind == "sqlite" else "json_array_elements(cast(:rows as json)) as value"
    cells = ", ".join(cell(place, name) for place, name in enumerate(COLUMNS))
    statement = f"insert into extracted_fields (org_id, item_id, {', '.join(COLUMNS)}) select :org, :item, {cells}"
    return text(f"{statement} from {source}").bindparams(_ORG, _ITEM)


_INSERT_FIELDS = {kind: _unpacking(kind) for kind in ("sqlite", "postgresql")}


class Packed(NamedTuple):
    """Rows of an item as one text, and how many they are."""

    text: str
    total: int
    to_review: int

    @classmethod
    def of(cls, rows: Sequence[FieldRow]) -> Self:
        """Records, packed."""
        text = orjson.dumps([row.packed() for row in rows]).decode()
        return cls(text, len(rows), sum(row.needs_review for row in rows))

    @classmethod
    def told(cls, told: Mapping[str, Any]) -> Self:
        """As the result of a step has them; in one of an earlier release they are a list."""
        rows = told["fields"]
        if isinstance(rows, str):
            return cls(rows, told["fields_total"], told["fields_to_review"])
        return cls.of([FieldRow.unpacked(row) for row in rows])

    def rows(self) -> list[FieldRow]:
        """The records."""
        return [FieldRow.unpacked(row) for row in orjson.loads(self.text)]


def insert_fields(db: Executes, kind: str, org_id: str, item_id: str, rows: Packed) -> None:
    """Store rows of an item."""
    if rows.total:
        db.execute(_INSERT_FIELDS[kind], {"org": org_id, "item": item_id, "rows": rows.text})


def fields_of(db: Executes, item_id: str) -> list[FieldRow]:
    """The rows of an item, in order."""
    return [field_row(row) for row in db.execute(FIELDS_OF, {"item": item_id})]


def field_row(row: Row[Any]) -> FieldRow:
    """The record of a row."""
    return FieldRow.unpacked([*row[:-1], None if row.changed_at is None else iso(row.changed_at)])


def review(
    db: Executes,
    kind: str,
    *,
    org_id: str,
    document_id: str,
    job_id: str,
    metadata: Mapping[str, Any],
    result: Mapping[str, Any],
    now: datetime,
    twins: bool = False,
) -> None:
    """Make the item of a document that is done, or put what a new run found into the one that it has.

    A decision stands as long as nothing that no person fixed reads otherwise; then a new item is opened. The document's
    row is locked by the caller, so nobody edits its fields meanwhile. With `twins`, others of the same bytes too: of
    their readings by the same schema only the one asked for last waits for people. A copy is no reading.
    """
    told: Mapping[str, Any] = result["review"]
    stands = db.execute(
        _STANDS,
        {"org": org_id, "document": document_id, "schema": result["schema"], "default": told["sla"]},
    ).one()
    packed, locked = Packed.told(told), result["locked"]
    facts = {
        "job_id": job_id,
        "schema_name": result["schema"],
        "schema_version": result["schema_version"],
        "document_type": result["document_type"],
        "extraction_key": result["extraction"],
        "options": {name: metadata[name] for name in _KEPT if name in metadata},
        "cut": told["cut"],
        "confidence": result["confidence"],
        "complexity": told["complexity"],
        "value": told["value"],
        "updated_at": now,
    }
    hit = result["hit"] if twins else None
    readings = Readings(db, org_id, document_id, hit or document_id, result["schema"])
    newer = readings.newer() if twins else None
    others = readings.open() if twins and newer is None and hit is None else []
    held = hold_items(db, [*others, *([stands.latest] if stands.latest else [])])
    older = [held[each] for each in others]
    given = carried(older, now)
    if stands.latest is None:
        if locked:
            said = [row for each in older for row in fields_of(db, each.id)]
            packed = Packed.of(with_locks(packed.rows(), locked, said))
        mine = _open(db, kind, org_id, document_id, 1, facts, packed, told, stands.sla, now, newer, given)
    else:
        item = held[stands.latest]
        mine = item.id
        before = fields_of(db, item.id)
        found = packed.rows()
        rows = merged(before, found)
        if not ReviewStatus(item.status).decided:
            back = twins and hit is None and newer is None and item.superseded_by is not None
            if back and locked:
                rows = said_since(rows, locked, [row for each in older for row in fields_of(db, each.id)])
            _refresh(db, kind, item, facts, rows)
            if back:
                _write(db, item.id, standing_again(item, given, now))
        elif agrees(before, found):
            _note_proposals(db, item.id, before, rows)
        else:
            again, number = Packed.of(rows), item.round + 1
            mine = _open(db, kind, org_id, document_id, number, facts, again, told, stands.sla, now, newer, given)
    close(db, [each.id for each in older], mine, now)


def stand_again(
    db: Executes,
    kind: str,
    *,
    org_id: str,
    document_id: str,
    original: str,
    schema: str,
    locks: Mapping[str, Any],
    now: datetime,
) -> bool:
    """A copy is done, so the question of its original was asked once more: unless another was asked later, the item of
    the original waits again, or its decision stands, and those of other readings wait no more.

    `locks`: what people have decided of these bytes, wherever they did; whether it changes what the original says. If
    that was decided, it is so for a new item. All of these documents are held by the caller.
    """
    readings = Readings(db, org_id, document_id, original, schema)
    last = readings.last(original)
    if last is None or readings.newer() is not None:
        return False
    others = readings.open()
    held = hold_items(db, [*others, last])
    item, older = held[last], [held[each] for each in others]
    given = carried(older, now)
    before = fields_of(db, last)
    rows = said_since(before, locks, [row for each in readings.all() for row in fields_of(db, each)] if locks else [])
    mine = last
    if ReviewStatus(item.status).decided:
        if values_of(rows) != values_of(before):
            mine = _open_again(db, kind, item, Packed.of(rows), given, now)
    elif older or item.superseded_by is not None or rows != before:
        packed = Packed.of(rows)
        counts = {"fields_total": packed.total, "fields_to_review": packed.to_review}
        _write(db, last, {**standing_again(item, given, now), **counts})
        db.execute(_FORGET_FIELDS, {"item": last})
        insert_fields(db, kind, org_id, last, packed)
    close(db, others, mine, now)
    return rows != before


def _write(db: Executes, item_id: str, columns: Mapping[str, Any]) -> None:
    db.execute(update(review_items).where(review_items.c.id == item_id).values(columns))


def _open_again(db: Executes, kind: str, item: Row[Any], rows: Packed, given: Mapping[str, Any], now: datetime) -> str:
    """A new item beside one that was decided, for what people have said since."""
    before, item_id = item._asdict(), following_id(item.document_id, "review", item.round + 1)
    sla = None if item.due_at is None else item.due_at - item.created_at
    again = {
        "id": item_id,
        "round": item.round + 1,
        "status": ReviewStatus.PENDING.value,
        "version": 1,
        **NOBODY,
        **_ranked(before, now, sla),
        "fields_total": rows.total,
        "fields_to_review": rows.to_review,
        **deadlines(now, sla),
        "created_at": now,
        "updated_at": now,
        "automatic": False,
        "assigned_to": "",
        **dict.fromkeys(("decided_at", "decided_by", "reason", "superseded_by", "postponed_until")),
    }
    db.execute(_INSERT_ITEM, {**before, **again, **given})
    insert_fields(db, kind, item.org_id, item_id, rows)
    return item_id


def _open(
    db: Executes,
    kind: str,
    org_id: str,
    document_id: str,
    number: int,
    facts: Mapping[str, Any],
    rows: Packed,
    told: Mapping[str, Any],
    sla_seconds: int,
    now: datetime,
    newer: str | None,
    given: Mapping[str, Any],
) -> str:
    automatic = bool(told["auto_approve"]) and not rows.to_review
    sla = timedelta(seconds=sla_seconds) if sla_seconds else None
    item_id = following_id(document_id, "review", number)
    # Whoever was at work on an earlier reading is at work on this one, unless a later one is there already.
    waits = not automatic and newer is None
    given = given if waits else {}
    assigned = given.get("assigned_to") or (least_loaded(db, org_id) if told["assign"] and waits else "")
    db.execute(
        _INSERT_ITEM,
        {
            "id": item_id,
            "org_id": org_id,
            "document_id": document_id,
            "round": number,
            **facts,
            "status": (ReviewStatus.APPROVED if automatic else ReviewStatus.PENDING).value,
            "version": 1,
            "claimed_by": "",
            **_ranked(facts, now, sla),
            "fields_total": rows.total,
            "fields_to_review": rows.to_review,
            **deadlines(now, sla, done=not waits),
            "created_at": now,
            "decided_at": now if automatic else None,
            "decided_by": SYSTEM if automatic else None,
            "automatic": automatic,
            "superseded_by": None if automatic else newer,
            **given,
            "assigned_to": assigned,
        },
    )
    insert_fields(db, kind, org_id, item_id, rows)
    return item_id


def deadlines(now: datetime, sla: timedelta | None, *, done: bool = False) -> dict[str, Any]:
    """When an item that is made now is due, and when its state of time changes next."""
    if sla is None:
        return {"sla_state": SlaState.NONE.value, "sla_at": None, "due_at": None}
    length = timedelta(seconds=seconds_of(sla))
    sla_at = None if done else now + AT_RISK * length
    return {"sla_state": SlaState.ON_TRACK.value, "sla_at": sla_at, "due_at": now + length}


def _ranked(facts: Mapping[str, Any], created_at: datetime, sla: timedelta | None) -> dict[str, Any]:
    fixed = standing(confidence=facts["confidence"], complexity=facts["complexity"], value=facts["value"])
    queue_class, place = place_of(fixed, created_at, sla)
    return {"standing": fixed, "queue_class": queue_class, "place": place}


def _refresh(db: Executes, kind: str, item: Row[Any], facts: Mapping[str, Any], rows: Sequence[FieldRow]) -> None:
    """The item keeps its claim and its time; its version moves, so nobody writes on what they no longer see."""
    sla = None if item.due_at is None else item.due_at - item.created_at
    ranked = _ranked(facts, item.created_at, sla)
    if item.queue_class < 0:
        ranked |= {"queue_class": item.queue_class, "place": -ranked["standing"]}
    packed = Packed.of(rows)
    counts = {"fields_total": packed.total, "fields_to_review": packed.to_review}
    db.execute(_REFRESH, {"the_id": item.id, **facts, **ranked, **counts})
    db.execute(_FORGET_FIELDS, {"item": item.id})
    insert_fields(db, kind, item.org_id, item.id, packed)


def _note_proposals(db: Executes, item_id: str, before: Sequence[FieldRow], after: Sequence[FieldRow]) -> None:
    """What a person fixed and the run reads otherwise is shown beside, on the decision that stands."""
    held = {row.path: row for row in before}
    changed = [
        {
            "item": item_id,
            "the_path": row.path,
            "extracted": row.extracted,
            "confidence": row.confidence,
            "proposed": row.proposed,
            "differs": row.differs,
        }
        for row in after
        if row.path in held and (row.proposed, row.differs) != (held[row.path].proposed, held[row.path].differs)
    ]
    if changed:
        db.execute(_PROPOSE, changed)
