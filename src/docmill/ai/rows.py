"""The gateway's rows, read and written inside the transaction of whoever calls.

Locks are taken in one order, so that nobody waits in a circle: kept answers, calls, budgets (month before day),
breaker, bucket.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, func, select, update

from docmill.ai.breaker import Breaker
from docmill.ai.bucket import Bucket
from docmill.ai.budget import Span, period
from docmill.db.conflicts import insert_into
from docmill.db.tables import ai_breakers, ai_buckets, ai_budgets, ai_calls
from docmill.model.ai import BreakerState, CallOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCall:
    """A call whose process did not come back to tell how it ended."""

    id: str
    reserved: int
    created_at: datetime


def read_breaker(connection: Connection, name: str, *, lock: bool) -> Breaker | None:
    """The breaker; None while nothing has ever gone wrong. Unlocked is enough to learn that all is well."""
    query = select(ai_breakers).where(ai_breakers.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        return None
    return Breaker(
        state=BreakerState(row.state), failures=row.failures, opened_at=row.opened_at, probe_until=row.probe_until
    )


def lock_breaker(connection: Connection, name: str) -> Breaker:
    """The breaker, made if need be, ours until the transaction ends."""
    _ensure(connection, ai_breakers, name=name, state=BreakerState.CLOSED, failures=0)
    found = read_breaker(connection, name, lock=True)
    assert found is not None
    return found


def write_breaker(connection: Connection, name: str, breaker: Breaker) -> None:
    values = {
        "state": breaker.state,
        "failures": breaker.failures,
        "opened_at": breaker.opened_at,
        "probe_until": breaker.probe_until,
    }
    connection.execute(update(ai_breakers).where(ai_breakers.c.name == name).values(values))


def lock_bucket(connection: Connection, name: str, *, full: float, now: datetime) -> Bucket:
    """The bucket, made full if need be, ours until the transaction ends."""
    _ensure(connection, ai_buckets, name=name, tokens=full, updated_at=now)
    row = connection.execute(select(ai_buckets).where(ai_buckets.c.name == name).with_for_update()).one()
    return Bucket(tokens=row.tokens, updated_at=row.updated_at)


def write_bucket(connection: Connection, name: str, bucket: Bucket) -> None:
    values = {"tokens": bucket.tokens, "updated_at": bucket.updated_at}
    connection.execute(update(ai_buckets).where(ai_buckets.c.name == name).values(values))


def lock_spent(connection: Connection, org_id: str, name: str) -> int:
    """What was spent in a period, ours until the transaction ends: nobody else can reserve beside us."""
    _ensure(connection, ai_budgets, org_id=org_id, period=name, spent_nanos=0)
    query = select(ai_budgets.c.spent_nanos).where(ai_budgets.c.org_id == org_id, ai_budgets.c.period == name)
    return int(connection.execute(query.with_for_update()).scalar_one())


def add_spent(connection: Connection, org_id: str, at: datetime, nanos: int) -> None:
    """Count an amount to the month and the day in which the call began."""
    if nanos == 0:
        return
    for name in (period(span, at) for span in Span):
        statement = insert_into(connection, ai_budgets).values(org_id=org_id, period=name, spent_nanos=nanos)
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=["org_id", "period"], set_={"spent_nanos": ai_budgets.c.spent_nanos + nanos}
            )
        )


def reserved_since(connection: Connection, org_id: str, since: datetime) -> int:
    """The most that calls on their way may cost. Reads the live calls only, by their partial index."""
    query = select(func.coalesce(func.sum(ai_calls.c.reserved_nanos), 0)).where(
        ai_calls.c.org_id == org_id, ai_calls.c.outcome == CallOutcome.ASKED.value, ai_calls.c.created_at >= since
    )
    return int(connection.execute(query).scalar_one())


def lock_lost_calls(connection: Connection, org_id: str, now: datetime) -> Sequence[LostCall]:
    """Calls on their way for longer than they can take; those that another transaction judges are passed over."""
    query = (
        select(ai_calls.c.id, ai_calls.c.reserved_nanos, ai_calls.c.created_at)
        .where(ai_calls.c.org_id == org_id, ai_calls.c.outcome == CallOutcome.ASKED.value)
        .where(ai_calls.c.expires_at < now)
        .with_for_update(skip_locked=True)
    )
    rows = connection.execute(query).all()
    return [LostCall(id=row.id, reserved=row.reserved_nanos, created_at=row.created_at) for row in rows]


def insert_call(connection: Connection, values: dict[str, Any]) -> None:
    """Record the call, unless it was by a transaction whose answer was lost."""
    connection.execute(insert_into(connection, ai_calls).values(values).on_conflict_do_nothing())


def find_call(connection: Connection, call_id: str) -> Row[Any] | None:
    """When the call was let in and until when it may take; None if there is none."""
    query: Select[Any] = select(ai_calls.c.created_at, ai_calls.c.expires_at).where(ai_calls.c.id == call_id)
    return connection.execute(query).one_or_none()


def lock_cost(connection: Connection, call_id: str) -> int | None:
    """What the call has been counted with so far: 0, or its reservation if it was given up for lost.

    None if how it ended has been recorded: by a transaction whose answer was lost.
    """
    query = select(ai_calls.c.cost_nanos, ai_calls.c.outcome).where(ai_calls.c.id == call_id).with_for_update()
    cost, outcome = connection.execute(query).one()
    return int(cost) if outcome in (CallOutcome.ASKED.value, CallOutcome.LOST.value) else None


def update_calls(connection: Connection, ids: Iterable[str], values: dict[str, Any]) -> None:
    connection.execute(update(ai_calls).where(ai_calls.c.id.in_(list(ids))).values(values))


def _ensure(connection: Connection, table: Table, **values: Any) -> None:
    """Make the row unless it is there."""
    connection.execute(insert_into(connection, table).values(values).on_conflict_do_nothing())
