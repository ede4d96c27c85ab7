"""The queue as SQL: what has become due, who is first, and the claim that only one can make.

Due times, the ends of claims and those of postponements are moments that pass without anybody writing. Whoever reads
the queue therefore first writes down what has passed (`settle`); a chore does the same, so there is rarely anything
to write. After that the order of every class is that of its index.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    CTE,
    BigInteger,
    Connection,
    Double,
    Integer,
    Row,
    Select,
    String,
    Update,
    and_,
    bindparam,
    cast,
    func,
    or_,
    select,
    text,
    true,
    union_all,
    update,
)

from docmill.db.clock import database_now
from docmill.db.tables import review_items
from docmill.db.tables.review import QUEUED, UNDECIDED
from docmill.db.types import IdType, UtcTime
from docmill.model.review import ReviewStatus, SlaState
from docmill.review.assignment import Executes
from docmill.review.priority import OVERDUE, place_below, priority_at

FIRST_LOOK = 16
"""Items looked at in each class; more only if others hold all of them."""

_C = review_items.c
_ORG, _NOW = bindparam("org", type_=IdType()), bindparam("now", type_=UtcTime())
_CLASS, _MOST = bindparam("queue_class", type_=BigInteger()), bindparam("most", type_=Integer())
_WHOM = bindparam("whom", type_=String())
_QUEUED, _OPEN = text(QUEUED), text(UNDECIDED)


class Ranked(NamedTuple):
    """An item and its priority at the moment of the look."""

    priority: float
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Items whose moment had passed: their ids."""

    expired: Mapping[str, str] = field(default_factory=dict)
    """Whose claims ended, and who had them."""
    resumed: Sequence[str] = ()
    at_risk: Sequence[str] = ()
    overdue: Sequence[str] = ()
    unwarned: Sequence[str] = ()
    """Of those that are overdue, the ones that nobody had marked as at risk before."""


def _passed(now: Any) -> tuple[Any, Any, Any]:
    """Claims that have ended, postponements, and states of time."""
    claims = and_(text(f"status = '{ReviewStatus.IN_REVIEW}'"), _C.claim_expires_at <= now)
    return claims, _C.postponed_until <= now, _C.sla_at <= now


def _anything(now: Any) -> Any:
    # The first by its index, not EXISTS: for that PostgreSQL reads the table when it believes that much has passed.
    moments = zip((_C.claim_expires_at, _C.postponed_until, _C.sla_at), _passed(now), strict=True)
    firsts = (select(at).where(past, _C.org_id == _ORG).order_by(at).limit(1) for at, past in moments)
    return or_(*(first.scalar_subquery().is_not(None) for first in firsts))


_EXPIRED, _BACK, _TIMED = _passed(_NOW)


def _due_ids(condition: Any) -> Select[Any]:
    """In one order for all, so that two who settle at the same moment queue instead of deadlocking."""
    return select(_C.id).where(condition, _C.org_id == _ORG).order_by(_C.id).with_for_update()


def _settling(condition: Any, **values: Any) -> Any:
    # The condition once more: whoever was waited for may have done it.
    write = update(review_items).where(_C.id.in_(_due_ids(condition)), condition)
    return write.values(values).returning(_C.id)


NOBODY: Mapping[str, Any] = {"claimed_by": "", "claimed_at": None, "claim_expires_at": None}
"""The columns of a claim when there is none."""

DUE_ORGS = union_all(*(select(_C.org_id).where(condition) for condition in (_EXPIRED, _BACK, _TIMED)))
_ANYTHING = select(_anything(_NOW))
# One way to the server instead of two; its clock stands still within a transaction.
LOOK = select(func.now().label("moment"), _anything(func.now()).label("due"))
_UNWARNED = select(_C.id).where(_TIMED, _C.due_at <= _NOW, _C.org_id == _ORG, _C.sla_state == SlaState.ON_TRACK.value)
_HELD = select(_C.id, _C.claimed_by).where(_EXPIRED, _C.org_id == _ORG)
_EXPIRE = _settling(
    _EXPIRED, status=ReviewStatus.PENDING.value, version=_C.version + 1, updated_at=_C.claim_expires_at, **NOBODY
)
_RESUME = _settling(_BACK, postponed_until=None)
_PASS = _settling(
    and_(_TIMED, _C.due_at <= _NOW),
    queue_class=OVERDUE,
    place=-_C.standing,
    sla_state=SlaState.OVERDUE.value,
    sla_at=None,
)
_WARN = _settling(and_(_TIMED, _C.due_at > _NOW), sla_state=SlaState.AT_RISK.value, sla_at=_C.due_at)


def look(db: Connection, org_id: str) -> tuple[datetime, bool]:
    """What time it is, and whether a moment has passed that nobody has written down."""
    if db.dialect.name == "postgresql":
        row = db.execute(LOOK, {"org": org_id}).one()
        return row.moment, row.due
    now = database_now(db)
    return now, bool(db.execute(_ANYTHING, {"org": org_id, "now": now}).scalar_one())


def settle(db: Executes, org_id: str, now: datetime) -> Settled:
    """Write down what has passed: claims that ended, postponements, due times."""
    about = {"org": org_id, "now": now}
    held = {row.id: row.claimed_by for row in db.execute(_HELD, about)}
    expired = {item: held.get(item, "") for item in db.execute(_EXPIRE, about).scalars()}
    on_track = frozenset(db.execute(_UNWARNED, about).scalars())
    resumed, overdue, at_risk = (tuple(db.execute(each, about).scalars()) for each in (_RESUME, _PASS, _WARN))
    unwarned = tuple(item for item in overdue if item in on_track)
    return Settled(expired=expired, resumed=resumed, overdue=overdue, at_risk=at_risk, unwarned=unwarned)


def _classes(condition: Any, *wanted: Any, name: str = "classes") -> Select[Any]:
    """The classes that there are, by hopping from one to the next in the index: few, among however many items."""
    first = select(func.min(_C.queue_class).label("queue_class")).where(condition, *wanted)
    hops: CTE = first.cte(name, recursive=True)
    following = (
        select(func.min(_C.queue_class))
        .where(condition, *wanted, _C.queue_class > hops.c.queue_class)
        .correlate(hops)
        .scalar_subquery()
    )
    hops = hops.union_all(select(following).where(hops.c.queue_class.is_not(None)))
    return select(hops.c.queue_class).where(hops.c.queue_class.is_not(None))


def _heads(condition: Any, *wanted: Any) -> Select[Any]:
    return (
        select(_C.id, _C.queue_class, _C.place)
        .where(condition, *wanted, _C.queue_class == _CLASS)
        .order_by(_C.place, _C.id)
        .limit(_MOST)
    )


def _behind(query: Select[Any]) -> Select[Any]:
    at: Any = bindparam("at_place", type_=Double())
    last = bindparam("last", type_=IdType())
    return query.where(or_(_C.place > at, and_(_C.place == at, _C.id > last)))


def _firsts(assigned: Any, name: str) -> Select[Any]:
    """The first items of all classes at once; SQLite, which has no LATERAL, is asked class by class."""
    mine = (_C.org_id == _ORG, _C.assigned_to == assigned)
    classes = _classes(_QUEUED, *mine, name=name).subquery(f"{name}_found")
    first = (
        select(_C.id, _C.queue_class, _C.place)
        .where(_QUEUED, *mine, _C.queue_class == classes.c.queue_class)
        .order_by(_C.place, _C.id)
        .limit(_MOST)
        .lateral(f"{name}_first")
    )
    return select(first.c.id, first.c.queue_class, first.c.place).select_from(classes.join(first, true()))


QUEUE_FIRST = union_all(_firsts("", "free"), _firsts(_WHOM, "mine"))
_MINE = (_C.org_id == _ORG, _C.assigned_to == _WHOM)
QUEUE_CLASSES, QUEUE_HEADS = _classes(_QUEUED, *_MINE), _heads(_QUEUED, *_MINE)
OPEN_CLASSES, OPEN_HEADS = _classes(_OPEN, _C.org_id == _ORG), _heads(_OPEN, _C.org_id == _ORG)
OPEN_BEHIND = _behind(OPEN_HEADS)


def first_in_queue(db: Connection, org_id: str, whom: str, now: datetime, most: int = FIRST_LOOK) -> list[Ranked]:
    """What this reviewer may claim, best first: what is assigned to them, and what is to nobody. Settle before."""
    rows: list[Any] = []
    if db.dialect.name == "postgresql":
        rows += db.execute(QUEUE_FIRST, {"org": org_id, "whom": whom, "most": most})
    else:
        for assigned in ("", whom):
            about = {"org": org_id, "whom": assigned}
            for queue_class in db.execute(QUEUE_CLASSES, about).scalars().all():
                rows += db.execute(QUEUE_HEADS, {**about, "queue_class": queue_class, "most": most})
    return sorted((Ranked(priority_at(row.queue_class, row.place, now), row.id) for row in rows), key=_order)


def open_by_priority(db: Executes, org_id: str, now: datetime, most: int, after: Ranked | None = None) -> list[Ranked]:
    """A page of what is not decided, best first; `after`: what comes behind this one at this moment."""
    found: list[Ranked] = []
    about: dict[str, Any] = {"org": org_id, "most": most}
    for queue_class in db.execute(OPEN_CLASSES, {"org": org_id}).scalars().all():
        query, place = OPEN_HEADS, {}
        if after is not None:
            query = OPEN_BEHIND
            place = {"at_place": place_below(queue_class, after.priority, now), "last": after.id}
        rows = db.execute(query, {**about, "queue_class": queue_class, **place})
        found += [Ranked(priority_at(row.queue_class, row.place, now), row.id) for row in rows]
    return sorted((each for each in found if after is None or each.id != after.id), key=_order)[:most]


def _order(ranked: Ranked) -> tuple[float, str]:
    return -ranked.priority, ranked.id


def _claiming(wanted: Any, *order: Any) -> Update:
    """One row, or none: what others hold at this moment is passed over, never waited for; what they have is theirs."""
    mine = or_(_C.assigned_to == "", _C.assigned_to == _WHOM)
    free = (
        select(_C.id)
        .where(wanted, _QUEUED, _C.org_id == _ORG, mine)
        .order_by(*order)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    values = {
        "status": ReviewStatus.IN_REVIEW.value,
        "version": _C.version + 1,
        "claimed_by": _WHOM,
        "claimed_at": _NOW,
        "claim_expires_at": bindparam("until", type_=UtcTime()),
        "updated_at": _NOW,
    }
    return update(review_items).where(_C.id == free).values(values)


CLAIM = _claiming(_C.id == bindparam("item", type_=IdType())).returning(review_items)
_IDS = cast(bindparam("items"), ARRAY(IdType()))
# Everybody looks at the same heads: the best of them that is free is found by the server, not one statement for each.
CLAIM_BEST = _claiming(_C.id == func.any(_IDS), func.array_position(_IDS, _C.id)).returning(review_items)


def claim_first(db: Connection, org_id: str, whom: str, now: datetime, until: datetime) -> Row[Any] | None:
    """Claim the best item that nobody else is claiming; None if there is none. Settle before."""
    most, tried = FIRST_LOOK, set[str]()
    while True:
        found = first_in_queue(db, org_id, whom, now, most)
        ids = [ranked.id for ranked in found if ranked.id not in tried]
        tried.update(ids)
        claimed = _claim_best(db, org_id, ids, whom, now, until)
        if claimed is not None or len(found) < most:
            return claimed
        most *= 4


def _claim_best(
    db: Connection, org_id: str, ids: Sequence[str], whom: str, now: datetime, until: datetime
) -> Row[Any] | None:
    if not ids:
        return None
    if db.dialect.name == "postgresql":
        about = {"items": ids, "org": org_id, "whom": whom, "now": now, "until": until}
        row: Row[Any] | None = db.execute(CLAIM_BEST, about).first()
        return row
    # SQLite has one writer: the first is free.
    return next((row for each in ids if (row := claim(db, org_id, each, whom, now, until)) is not None), None)


def claim(db: Executes, org_id: str, item_id: str, whom: str, now: datetime, until: datetime) -> Row[Any] | None:
    """Claim this item, if it waits for this reviewer or for anybody."""
    about = {"item": item_id, "org": org_id, "whom": whom, "now": now, "until": until}
    row: Row[Any] | None = db.execute(CLAIM, about).first()
    return row
