"""The audit log: what people did, hashed into a chain per organisation.

Each entry's hash covers the entry and the hash before it, so that whoever changes, removes or inserts one breaks the
chain from there on; the head tells whether its end was cut off. Written inside the transaction that does the deed.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, LargeBinary, Row, bindparam, insert, select, text, update

from docmill.db.conflicts import insert_into
from docmill.db.tables import audit_heads, audit_log
from docmill.db.types import IdType, iso
from docmill.model.people import Principal

START = bytes(32)
"""What the first entry is hashed with."""
ORGANISATION = "organisation"
"""What an entry is about that is about many things of an organisation, or itself."""
Data = Mapping[str, Any]

_OF_ORG = audit_heads.c.org_id == bindparam("the_org", type_=IdType())
_LOCK_HEAD = select(audit_heads.c.number, audit_heads.c.hash).where(_OF_ORG).with_for_update()
_MOVE_HEAD = update(audit_heads).where(_OF_ORG).values(number=bindparam("the_number"), hash=bindparam("the_hash"))
_MOVE_TEXT = text("UPDATE audit_heads SET number = :the_number, hash = :the_hash WHERE org_id = :the_org")
# One way to the server instead of two, while everybody else of the organisation waits for the head. As text: an insert
# would lend its own columns to an update built beside it.
_ENTRY_AND_HEAD = insert(audit_log).add_cte(
    _MOVE_TEXT.bindparams(bindparam("the_org", type_=IdType()), bindparam("the_hash", type_=LargeBinary()))
    .columns(audit_heads.c.number)
    .cte("head")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Something somebody did."""

    number: int
    at: datetime
    actor_kind: str
    actor_id: str
    actor_name: str
    action: str
    subject_type: str
    subject_id: str
    before: Data | None
    after: Data | None
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFault:
    """Where the log is not what was written."""

    number: int
    message: str


class Deed(NamedTuple):
    """What was done to what; what it was before and after."""

    action: str
    subject: tuple[str, str]
    before: Data | None = None
    after: Data | None = None


def record(
    connection: Connection,
    principal: Principal,
    action: str,
    subject: tuple[str, str],
    before: Data | None = None,
    after: Data | None = None,
    *,
    now: datetime,
) -> None:
    """Add an entry. Call it last: the end of the organisation's chain is locked from here to the commit."""
    record_all(connection, principal, [Deed(action, subject, before, after)], now=now)


def record_all(connection: Connection, principal: Principal, deeds: Sequence[Deed], *, now: datetime) -> None:
    """Add entries, in this order."""
    if not deeds:
        return
    last, digest = _head(connection, principal.org_id)
    rows = []
    for number, deed in enumerate(deeds, last + 1):
        values = {
            "org_id": principal.org_id,
            "number": number,
            "at": now,
            "actor_kind": principal.kind,
            "actor_id": principal.id,
            "actor_name": principal.name,
            "action": deed.action,
            "subject_type": deed.subject[0],
            "subject_id": deed.subject[1],
            "before": _plain(deed.before),
            "after": _plain(deed.after),
        }
        digest = _digest(digest, values)
        rows.append(values | {"hash": digest})
    head = {"the_org": principal.org_id, "the_number": last + len(rows), "the_hash": digest}
    if len(rows) == 1 and connection.dialect.name == "postgresql":
        connection.execute(_ENTRY_AND_HEAD, rows[0] | head)
        return
    connection.execute(insert(audit_log), rows)
    connection.execute(_MOVE_HEAD, head)


class AuditTrail:
    """`review.recording.Recorder` that writes to the audit log."""

    def record(self, connection: Connection, principal: Principal, deeds: Sequence[Deed], now: datetime) -> None:
        record_all(connection, principal, deeds, now=now)


def faults(connection: Connection, org_id: str) -> Iterator[AuditFault]:
    """Walk the chain of one organisation in one look; every break of it, oldest first."""
    previous, last = START, 0
    query = select(audit_log).where(audit_log.c.org_id == org_id).order_by(audit_log.c.number)
    for row in connection.execute(query.execution_options(yield_per=1000)):
        if row.number != last + 1:
            missing = f"entry {last + 1}" if row.number == last + 2 else f"entries {last + 1} to {row.number - 1}"
            yield AuditFault(number=last + 1, message=f"{missing} missing")
        elif _digest(previous, row._mapping) != bytes(row.hash):
            yield AuditFault(number=row.number, message="this entry, or the one before it, is not what was written")
        previous, last = bytes(row.hash), row.number
    head = connection.execute(select(audit_heads).where(audit_heads.c.org_id == org_id)).one_or_none()
    if (head.number if head else 0) != last or (head is not None and bytes(head.hash) != previous):
        told = head.number if head else 0
        yield AuditFault(number=last + 1, message=f"the log ends at entry {last}, and should end at {told}")


def entry(row: Row[Any]) -> AuditEntry:
    """A row as people see it."""
    names = ("number", "at", "actor_kind", "actor_id", "actor_name", "action", "subject_type", "subject_id")
    return AuditEntry(
        **{name: getattr(row, name) for name in names}, before=row.before, after=row.after, hash=bytes(row.hash).hex()
    )


def _head(connection: Connection, org_id: str) -> tuple[int, bytes]:
    """The number of the last entry, and the hash to chain to. The row's lock makes the order."""
    row = connection.execute(_LOCK_HEAD, {"the_org": org_id}).one_or_none()
    if row is None:
        start = insert_into(connection, audit_heads).values(org_id=org_id, number=0, hash=START)
        connection.execute(start.on_conflict_do_nothing())
        row = connection.execute(_LOCK_HEAD, {"the_org": org_id}).one()
    return row.number, bytes(row.hash)


def _plain(data: Data | None) -> Any:
    """As JSON gives it back: what is hashed must be what is read."""
    return None if data is None else orjson.loads(orjson.dumps(data, default=str, option=orjson.OPT_NON_STR_KEYS))


def _digest(previous: bytes, values: Mapping[Any, Any]) -> bytes:
    told = [
        *(values["org_id"], values["number"], iso(values["at"])),
        *(values["actor_kind"], values["actor_id"], values["actor_name"]),
        *(values["action"], values["subject_type"], values["subject_id"], values["before"], values["after"]),
    ]
    return hashlib.sha256(previous + orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).digest()
