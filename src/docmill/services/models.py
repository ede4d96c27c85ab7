"""The use of models as people see it: calls, what they cost, and how the breakers stand."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, assert_never

from sqlalchemy import ColumnElement, case, cast, func, select, update
from sqlalchemy import String as Text

from docmill.ai.budget import Span, begins, period
from docmill.ai.clock import Clock, database_clock
from docmill.db.database import Database
from docmill.db.tables import ai_breakers, ai_budgets, ai_calls, jobs, templates
from docmill.model.ai import BreakerState, CallOutcome
from docmill.model.errors import NotFound
from docmill.model.ids import DEFAULT_ORG
from docmill.services.acting import Acted

BREAKER = "breaker"
"""What entries in the audit log are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One call."""

    id: str
    created_at: datetime
    job_id: str | None
    step_key: str | None
    attempt: int | None
    prompt_id: str | None
    provider: str
    model: str
    outcome: CallOutcome
    error_code: str | None
    input_tokens: int
    output_tokens: int
    cost_nanos: int
    priced: bool
    duration_ms: int


class SpendBy(StrEnum):
    """What spending is added up by."""

    DAY = "day"
    MODEL = "model"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What was spent on one day, model or template."""

    name: str
    calls: int
    failed: int
    unpriced: int
    """Calls of models whose price nobody knows; they count as free."""
    input_tokens: int
    output_tokens: int
    cost_nanos: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerView:
    """One breaker."""

    name: str
    state: BreakerState
    failures: int
    opened_at: datetime | None
    probe_until: datetime | None


class ModelUse(Acted):
    """Looks at what the gateway recorded, for one organisation."""

    def __init__(self, database: Database, org_id: str = DEFAULT_ORG, *, clock: Clock = database_clock) -> None:
        self._database = database.scoped(org_id)
        self._org_id = org_id
        self._clock = clock

    def calls(self, *, limit: int, job_id: str | None = None) -> Sequence[CallView]:
        """Calls, the newest first."""
        columns = [ai_calls.c[name] for name in CallView.__dataclass_fields__]
        query = select(*columns).where(ai_calls.c.org_id == self._org_id)
        if job_id is not None:
            query = query.where(ai_calls.c.job_id == job_id)
        query = query.order_by(ai_calls.c.created_at.desc(), ai_calls.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            rows = [dict(row._mapping) for row in connection.execute(query)]
        return [CallView(**row | {"outcome": CallOutcome(row["outcome"])}) for row in rows]

    def spend(self, by: SpendBy, *, days: int) -> Sequence[Spend]:
        """What was spent in the last so many days (UTC, today included), the most first; days in order."""
        name = self._name(by)
        total = func.coalesce(func.sum(ai_calls.c.cost_nanos), 0)
        query = (
            select(
                name.label("name"),
                func.count().label("calls"),
                _count(ai_calls.c.outcome == CallOutcome.FAILED.value).label("failed"),
                _count(ai_calls.c.priced.is_(False)).label("unpriced"),
                func.sum(ai_calls.c.input_tokens).label("input_tokens"),
                func.sum(ai_calls.c.output_tokens).label("output_tokens"),
                total.label("cost_nanos"),
            )
            .select_from(ai_calls.outerjoin(jobs, jobs.c.id == ai_calls.c.job_id))
            .outerjoin(templates, templates.c.id == jobs.c.template_id)
            .where(ai_calls.c.org_id == self._org_id)
            .group_by(name)
            .order_by(*([name] if by is SpendBy.DAY else [total.desc(), name]))
        )
        with self._database.read() as connection:
            since = begins(Span.DAY, self._clock(connection)) - timedelta(days=days - 1)
            rows = connection.execute(query.where(ai_calls.c.created_at >= since)).all()
        # Sums come as Decimal from PostgreSQL.
        return [Spend(name=row.name, **{key: int(row._mapping[key]) for key in _NUMBERS}) for row in rows]

    def spent(self) -> dict[Span, int]:
        """What counts towards the budgets of this month and this day, in nano-dollars."""
        with self._database.read() as connection:
            now = self._clock(connection)
            query = select(ai_budgets.c.period, ai_budgets.c.spent_nanos).where(ai_budgets.c.org_id == self._org_id)
            found = {row.period: row.spent_nanos for row in connection.execute(query)}
        return {span: found.get(period(span, now), 0) for span in Span}

    def breakers(self) -> Sequence[BreakerView]:
        """Breakers of models that have ever failed; all organisations share them."""
        with self._database.read() as connection:
            rows = connection.execute(select(ai_breakers).order_by(ai_breakers.c.name)).all()
        return [BreakerView(**dict(row._mapping) | {"state": BreakerState(row.state)}) for row in rows]

    def reset_breaker(self, name: str) -> None:
        """Close a breaker now: whoever does so knows that the provider is well again."""
        values: dict[str, Any] = {"state": BreakerState.CLOSED.value, "failures": 0}
        statement = update(ai_breakers).where(ai_breakers.c.name == name)
        with self._database.write() as connection:
            row = connection.execute(select(ai_breakers).where(ai_breakers.c.name == name).with_for_update()).first()
            if row is None:
                raise NotFound(f"There is no breaker {name!r}; `docmill ai breakers` lists those there are.")
            connection.execute(statement.values(opened_at=None, probe_until=None, **values))
            before = {"state": row.state, "failures": row.failures}
            self._record(connection, "breaker.reset", (BREAKER, name), before, values)

    def _name(self, by: SpendBy) -> ColumnElement[str]:
        match by:
            case SpendBy.DAY:
                if self._database.kind == "postgresql":
                    return func.to_char(func.timezone("UTC", ai_calls.c.created_at), "YYYY-MM-DD")
                return func.substr(cast(ai_calls.c.created_at, Text), 1, 10)
            case SpendBy.MODEL:
                return ai_calls.c.provider + ":" + ai_calls.c.model
            case SpendBy.TEMPLATE:
                return func.coalesce(templates.c.name, "-")
            case _:
                assert_never(by)


_NUMBERS = ("calls", "failed", "unpriced", "input_tokens", "output_tokens", "cost_nanos")


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))
