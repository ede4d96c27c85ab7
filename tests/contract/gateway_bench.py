"""A gateway with a scripted model under a clock of its own, for tests."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, Row, select

from docmill.ai.gateway import Gateway
from docmill.ai.prices import Price
from docmill.ai.rules import Rules
from docmill.db.database import Database
from docmill.db.tables import ai_breakers, ai_budgets, ai_calls
from docmill.model.ai import Answer, Caller, ModelCall, Reply, Request
from docmill.model.ai_errors import (
    ModelUnavailable,
)
from docmill.model.errors import DatabaseUnavailable, DocmillError
from docmill.model.ids import DEFAULT_ORG
from docmill.testing.scripted import Line, Scripted
from docmill.testing.world import Clock

START = datetime(2026, 11, 15, 12, tzinfo=UTC)
FAST = 1e6
PRICES = {"m": Price(input=Decimal(0), output=Decimal(1000))}
"""A token of output costs a tenth of a cent."""
CENT = 10_000_000
ANSWER = Answer(text="yes", input_tokens=5, output_tokens=10)
"""Costs a cent."""


class Bench:
    """A gateway with a scripted model under a clock of its own."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = Clock(START)
        self.waits: list[float] = []
        self._gateways: list[Gateway] = []

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    def gateway(self, model: Scripted, **rules: Any) -> Gateway:
        rules = {"rate": FAST, "burst": 1000, "prices": PRICES, "max_tokens": 100, **rules}
        made = Gateway(
            self.database,
            {"scripted": model.provider()},
            Rules(**rules),
            clock=lambda connection: self.clock.now,
            wait=self._wait,
        )
        self._gateways.append(made)
        return made

    def lose_the_answer_to(self, number: int) -> None:
        """Let the commit of this number, from now on and from 1, be done and not be heard of."""
        commits = iter(range(1, 100))
        write = self.database.write

        @contextmanager
        def unheard() -> Iterator[Connection]:
            with write() as connection:
                yield connection
            if next(commits) == number:
                raise DatabaseUnavailable("The server went away.")

        self.database.write = unheard  # type: ignore[method-assign]

    def close(self) -> None:
        for made in self._gateways:
            made.close()

    def rows(self, table: Any) -> list[Row[Any]]:
        with self.database.read() as connection:
            return list(connection.execute(select(table)).all())

    def calls(self) -> list[Row[Any]]:
        return sorted(self.rows(ai_calls), key=lambda row: str(row.id))

    def spent(self, org_id: str = DEFAULT_ORG) -> dict[str, int]:
        return {row.period: row.spent_nanos for row in self.rows(ai_budgets) if row.org_id == org_id}

    def breaker(self) -> str:
        found = self.rows(ai_breakers)
        return str(found[0].state) if found else "closed"

    def check(self) -> None:
        """What was spent is the sum of the calls, in every period."""
        sums: Counter[tuple[str, str]] = Counter()
        for call in self.rows(ai_calls):
            day = call.created_at.astimezone(UTC).date().isoformat()
            sums[call.org_id, day] += call.cost_nanos
            sums[call.org_id, day[:7]] += call.cost_nanos
        assert +Counter({(row.org_id, row.period): row.spent_nanos for row in self.rows(ai_budgets)}) == +sums


@contextmanager
def bench_on(database_url: str) -> Iterator[Bench]:
    """A bench on this database, whose accounts must agree in the end."""
    database = Database(database_url)
    made = Bench(database)
    try:
        yield made
        made.check()
    finally:
        made.close()
        database.close()


def ask(gateway: Gateway, caller: Caller | None = None, **request: Any) -> Reply:
    """One call to its end."""
    return asyncio.run(gateway.generate(Request(**{"prompt": "well?", "model": "scripted:m", **request}), caller))


def fails(gateway: Gateway, kind: type[DocmillError], **request: Any) -> DocmillError:
    with pytest.raises(kind) as caught:
        ask(gateway, **request)
    assert type(caught.value) is kind
    return caught.value


def broken(bench: Bench, times: int) -> Callable[[ModelCall], Line]:
    """A model that fails so often, and is well afterwards."""
    count = iter(range(10**9))
    return lambda call: ModelUnavailable("503") if next(count) < times else ANSWER
