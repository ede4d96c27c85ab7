"""Answers kept by content: the same question is paid for once, whoever asks, and nobody gets another's answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Row, func, select

from docmill.ai.budget import Budget, Span
from docmill.ai.gateway import Gateway
from docmill.ai.prices import Price
from docmill.ai.rules import Rules
from docmill.db.database import Database
from docmill.db.tables import ai_budgets, ai_calls, ai_responses
from docmill.model.ai import Answer, Attachment, Caller, FinishReason, ModelCall, Reply, Request
from docmill.model.ai_errors import BudgetExceeded, ModelUnavailable, OutputInvalid, OutputTruncated
from docmill.model.errors import Deferred
from docmill.model.ids import derived_id, new_id
from docmill.plugin import Provider
from docmill.testing.scripted import Scripted
from docmill.testing.world import Clock

START = datetime(2026, 11, 15, 12, tzinfo=UTC)
ANSWER = Answer(text='{"total": "12"}', input_tokens=5, output_tokens=10)
"""Costs a cent."""
CENT = 10_000_000
PRICES = {"m": Price(input=Decimal(0), output=Decimal(1000))}
SCHEMA = {"type": "object", "required": ["total"]}
REQUEST = Request(
    prompt="well?",
    model="scripted:m",
    instructions="be brief",
    attachments=(Attachment(data=b"%PDF-1", media_type="application/pdf"),),
    output_schema=SCHEMA,
    cache=True,
)
OTHER = Caller(org_id=derived_id("organisation", "other"))


class Bench:
    """Gateways over one database, under one clock."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = Clock(START)
        self.wait: Callable[[float], Awaitable[None]] = self._pass
        self._gateways: list[Gateway] = []

    async def _pass(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def gateway(self, model: Scripted | Provider, **rules: Any) -> Gateway:
        provider = model.provider() if isinstance(model, Scripted) else model
        rules = {"rate": 1e6, "burst": 1000, "prices": PRICES, "max_tokens": 100, **rules}
        made = Gateway(
            self.database,
            {"scripted": provider},
            Rules(**rules),
            clock=lambda connection: self.clock.now,
            wait=lambda seconds: self.wait(seconds),
        )
        self._gateways.append(made)
        return made

    def close(self) -> None:
        for made in self._gateways:
            made.close()

    def calls(self) -> list[Row[Any]]:
        with self.database.read() as connection:
            return list(connection.execute(select(ai_calls).order_by(ai_calls.c.created_at, ai_calls.c.outcome)).all())

    def kept(self) -> int:
        with self.database.read() as connection:
            return int(connection.execute(select(func.count()).select_from(ai_responses)).scalar_one())

    def spent(self) -> int:
        with self.database.read() as connection:
            return int(connection.execute(select(func.coalesce(func.max(ai_budgets.c.spent_nanos), 0))).scalar_one())


@pytest.fixture
def bench(database_url: str) -> Iterator[Bench]:
    database = Database(database_url)
    made = Bench(database)
    try:
        yield made
    finally:
        made.close()
        database.close()


def ask(gateway: Gateway, request: Request = REQUEST, caller: Caller | None = None) -> Reply:
    return asyncio.run(gateway.generate(request, caller))


def scripted(*lines: Any) -> Scripted:
    return Scripted({"m": list(lines) or [ANSWER], "n": [ANSWER]})


def test_the_same_question_is_paid_for_once(bench: Bench) -> None:
    model = scripted(ANSWER, ModelUnavailable("asked twice"))
    gateway = bench.gateway(model)
    first, second = ask(gateway), ask(gateway)
    assert (first.data, first.cached, first.cost_nanos, first.output_tokens) == ({"total": "12"}, False, CENT, 10)
    assert (second.data, second.text) == (first.data, first.text)
    assert (second.cached, second.cost_nanos, second.input_tokens, second.output_tokens) == (True, 0, 0, 0)
    assert len(model.calls) == 1
    assert bench.spent() == CENT
    asked, cached = bench.calls()
    assert (asked.outcome, asked.cost_nanos) == ("answered", CENT)
    assert (cached.outcome, cached.cost_nanos, cached.reserved_nanos, cached.output_tokens) == ("cached", 0, 0, 0)


def test_another_process_gets_it_too(bench: Bench) -> None:
    ask(bench.gateway(scripted()))
    assert ask(bench.gateway(scripted(ModelUnavailable("asked again")))).cached


def test_neither_budget_nor_breaker_nor_bucket_stands_before_an_answer_that_is_there(bench: Bench) -> None:
    budget = Budget(span=Span.DAY, limit=10 * CENT)
    gateway = bench.gateway(scripted(), budgets=(budget,), rate=0.001, burst=1)
    ask(gateway)
    other = replace(REQUEST, prompt="another")
    with pytest.raises((BudgetExceeded, Deferred)):
        ask(gateway, other)
    for _ in range(5):
        assert ask(gateway).cached


CHANGES: dict[str, dict[str, Any]] = {
    "prompt": {"prompt": "well then?"},
    "model": {"model": "scripted:n"},
    "instructions": {"instructions": "be long"},
    "a byte of the document": {"attachments": (Attachment(data=b"%PDF-2", media_type="application/pdf"),)},
    "type of the document": {"attachments": (Attachment(data=b"%PDF-1", media_type="image/png"),)},
    "one document more": {"attachments": REQUEST.attachments * 2},
    "no document": {"attachments": ()},
    "schema": {"output_schema": {"type": "object"}},
    "max_tokens": {"max_tokens": 99},
    "temperature": {"temperature": 0.5},
    "options": {"options": {"seed": 1}},
}


@pytest.mark.parametrize("changed", CHANGES)
def test_whatever_the_answer_depends_on_makes_it_another_question(bench: Bench, changed: str) -> None:
    gateway = bench.gateway(scripted())
    ask(gateway)
    assert not ask(gateway, replace(REQUEST, **CHANGES[changed])).cached
    assert ask(gateway).cached


def test_one_organisation_never_gets_anothers_answer(bench: Bench) -> None:
    model = scripted()
    gateway = bench.gateway(model)
    ask(gateway)
    assert not ask(gateway, caller=OTHER).cached
    assert ask(gateway, caller=OTHER).cached
    assert len(model.calls) == 2


BAD: dict[str, tuple[Any, type[Exception]]] = {
    "cut off": (Answer(text="{", input_tokens=1, output_tokens=100, finish=FinishReason.LENGTH), OutputTruncated),
    "not JSON": (Answer(text="{", input_tokens=1, output_tokens=1), OutputInvalid),
    "against its schema": (Answer(text="{}", input_tokens=1, output_tokens=1), OutputInvalid),
    "an error": (ModelUnavailable("down"), ModelUnavailable),
}


@pytest.mark.parametrize("bad", BAD)
def test_only_good_answers_are_kept(bench: Bench, bad: str) -> None:
    line, error = BAD[bad]
    gateway = bench.gateway(scripted(line, ANSWER))
    with pytest.raises(error):
        ask(gateway)
    assert bench.kept() == 0
    assert not ask(gateway).cached
    assert ask(gateway).cached


def test_answers_grow_old_and_are_swept_away(bench: Bench) -> None:
    gateway = bench.gateway(scripted(), cache_ttl=timedelta(hours=1))
    ask(gateway)
    ask(gateway, replace(REQUEST, prompt="another"))
    assert bench.kept() == 2
    bench.clock.now += timedelta(minutes=59)
    assert ask(gateway).cached
    bench.clock.now += timedelta(minutes=2)
    assert not ask(gateway).cached
    assert bench.kept() == 1
    assert ask(gateway).cached


@pytest.mark.parametrize(
    ("said", "rules", "cached"),
    [
        (None, {}, False),
        (True, {}, True),
        (None, {"cache": True}, True),
        (False, {"cache": True}, False),
        (True, {"cache_ttl": None}, False),
    ],
    ids=["by default", "asked for", "set for all", "not wanted", "switched off"],
)
def test_who_wants_an_answer_from_before_says_so(
    bench: Bench, said: bool | None, rules: dict[str, Any], cached: bool
) -> None:
    gateway = bench.gateway(scripted(), **rules)
    request = replace(REQUEST, cache=said)
    ask(gateway, request)
    assert ask(gateway, request).cached is cached


class Slow:
    """A model that answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def ask(self, call: ModelCall) -> Answer:
        self.asked += 1
        self.begun.set()
        await self.go.wait()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return ANSWER

    def provider(self) -> Provider:
        return Provider(name="scripted", function=self.ask, limited=True)


def test_twins_make_one_call(bench: Bench) -> None:
    async def play() -> tuple[Slow, list[Reply]]:
        slow = Slow()
        # Two gateways: as in two processes, they share the database and nothing else.
        gateways = [bench.gateway(slow.provider()) for _ in range(2)]
        looks = 0

        async def wait(seconds: float) -> None:
            nonlocal looks
            looks += 1
            if looks >= 4:
                slow.go.set()
                await asyncio.wait([first])

        bench.wait = wait
        first = asyncio.ensure_future(gateways[0].generate(REQUEST))
        await slow.begun.wait()
        rest = [asyncio.ensure_future(gateways[number % 2].generate(REQUEST)) for number in range(3)]
        return slow, await asyncio.gather(first, *rest)

    slow, replies = asyncio.run(play())
    assert slow.asked == 1
    assert sorted(reply.cached for reply in replies) == [False, True, True, True]
    assert bench.spent() == CENT


def test_a_twin_asks_itself_when_the_other_fails(bench: Bench) -> None:
    async def play() -> tuple[Slow, Any]:
        slow = Slow()
        slow.error = ModelUnavailable("down")
        gateway = bench.gateway(slow.provider())

        async def wait(seconds: float) -> None:
            slow.go.set()
            await asyncio.wait([first])

        bench.wait = wait
        first = asyncio.ensure_future(gateway.generate(REQUEST))
        await slow.begun.wait()
        return slow, await asyncio.gather(first, gateway.generate(REQUEST), return_exceptions=True)

    slow, (first, second) = asyncio.run(play())
    assert isinstance(first, ModelUnavailable)
    assert isinstance(second, Reply)
    assert not second.cached
    assert slow.asked == 2


def test_a_twin_is_put_off_while_the_other_takes_long_and_asks_when_it_is_dead(bench: Bench) -> None:
    async def play() -> None:
        slow = Slow()
        gateway = bench.gateway(slow.provider(), timeout=30.0)
        first = asyncio.ensure_future(gateway.generate(REQUEST))
        await slow.begun.wait()
        with pytest.raises(Deferred):
            await gateway.generate(REQUEST)
        # Its process is not heard of again.
        bench.clock.now += timedelta(minutes=5)
        other = bench.gateway(scripted())
        assert not (await other.generate(REQUEST)).cached
        # It was alive after all: its answer is as good, and what was kept stays.
        slow.go.set()
        await first
        assert (await other.generate(REQUEST)).cached

    asyncio.run(play())
    assert bench.kept() == 1


def test_a_step_that_asks_again_does_not_wait_for_its_own_dead_attempt(bench: Bench) -> None:
    async def play() -> None:
        slow = Slow()
        job_id = new_id()
        gateway = bench.gateway(slow.provider())
        first = asyncio.ensure_future(gateway.generate(REQUEST, Caller(job_id=job_id, position=2, attempt=1)))
        await slow.begun.wait()
        other = bench.gateway(scripted())
        with pytest.raises(Deferred):
            await other.generate(REQUEST, Caller(job_id=new_id(), position=2, attempt=1))
        reply = await other.generate(REQUEST, Caller(job_id=job_id, position=2, attempt=2))
        assert not reply.cached
        slow.go.set()
        await first

    asyncio.run(play())
    assert bench.kept() == 1


def test_who_is_cancelled_leaves_no_claim_behind(bench: Bench) -> None:
    async def play() -> None:
        slow = Slow()
        gateway = bench.gateway(slow.provider())
        first = asyncio.ensure_future(gateway.generate(REQUEST))
        await slow.begun.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        slow.go.set()
        assert not (await gateway.generate(REQUEST)).cached

    asyncio.run(play())
    assert [call.outcome for call in bench.calls()] == ["answered", "failed"]
