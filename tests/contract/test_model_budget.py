"""The budget of models is kept to the cent, whatever is on its way, dies or is lost."""

import asyncio

import pytest

from docmill.ai.budget import Budget, Span
from docmill.db.tables import ai_breakers, ai_buckets
from docmill.model.ai import Answer, Caller, ModelCall, Request
from docmill.model.ai_errors import (
    BudgetExceeded,
    ModelUnavailable,
)
from docmill.model.errors import Deferred
from docmill.model.ids import derived_id
from docmill.testing.scripted import Scripted
from tests.contract.gateway_bench import ANSWER, CENT, Bench, ask, broken, fails

OTHER_ORG = derived_id("organisation", "other")


def test_a_budget_is_kept_to_the_cent_and_says_so(bench: Bench) -> None:
    gateway = bench.gateway(Scripted({"m": [ANSWER]}), budgets=(Budget(span=Span.DAY, limit=30 * CENT),), max_tokens=10)
    for _ in range(30):
        ask(gateway)
    error = fails(gateway, BudgetExceeded)
    assert "$0.30 of the day's $0.30" in error.message
    assert bench.spent()["2026-11-15"] == 30 * CENT
    # Another organisation has a budget of its own, and tomorrow is another day.
    ask(gateway, Caller(org_id=OTHER_ORG))
    bench.clock.advance(12 * 3600)
    ask(gateway)


def test_what_is_on_its_way_counts_with_the_most_it_can_cost(bench: Bench) -> None:
    asked, gate = asyncio.Event(), asyncio.Event()

    class Slow(Scripted):
        async def ask(self, call: ModelCall) -> Answer:
            asked.set()
            await gate.wait()
            return await super().ask(call)

    # Each may cost ten cents and costs one; there are fifteen.
    gateway = bench.gateway(Slow({"m": [ANSWER]}), budgets=(Budget(span=Span.MONTH, limit=15 * CENT),))
    request = Request(prompt="well?", model="scripted:m")

    async def play() -> None:
        first = asyncio.create_task(gateway.generate(request))
        await asked.wait()
        with pytest.raises(Deferred):
            await gateway.generate(request)
        gate.set()
        await first
        await gateway.generate(request)

    asyncio.run(play())
    assert bench.spent()["2026-11"] == 2 * CENT


def test_a_call_whose_process_died_is_counted_with_the_most_it_can_have_cost(bench: Bench) -> None:
    class Killed(Scripted):
        async def ask(self, call: ModelCall) -> Answer:
            await super().ask(call)
            raise RuntimeError("killed")

    doomed = bench.gateway(Killed({"m": [ANSWER]}), timeout=30.0)
    # The process dies here: nothing more is written.
    doomed._settle = lambda ticket, ending: asyncio.sleep(0)  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="killed"):
        ask(doomed)
    gateway = bench.gateway(Scripted({"m": [ANSWER]}))
    ask(gateway)
    assert [call.outcome for call in bench.calls()] == ["asked", "answered"]
    bench.clock.advance(91)
    ask(gateway)
    lost, *_ = bench.calls()
    assert (lost.outcome, lost.cost_nanos) == ("lost", 10 * CENT)
    assert bench.spent()["2026-11"] == 12 * CENT


def test_a_process_that_was_only_asleep_corrects_what_was_presumed(bench: Bench) -> None:
    gateway = bench.gateway(Scripted({"m": [ANSWER]}))

    class Asleep(Scripted):
        async def ask(self, call: ModelCall) -> Answer:
            bench.clock.advance(1000)
            await gateway.generate(Request(prompt="well?", model="scripted:m"))
            assert bench.spent()["2026-11"] == 11 * CENT
            return await super().ask(call)

    ask(bench.gateway(Asleep({"m": [ANSWER]})))
    assert [call.outcome for call in bench.calls()] == ["answered", "answered"]
    assert bench.spent()["2026-11"] == 2 * CENT


@pytest.mark.parametrize("lost", [1, 2], ids=["admission", "settlement"])
def test_a_call_is_recorded_and_counted_once_although_the_answer_to_a_commit_was_lost(bench: Bench, lost: int) -> None:
    gateway = bench.gateway(Scripted(broken(bench, 1)))
    bench.lose_the_answer_to(lost)
    fails(gateway, ModelUnavailable)
    (breaker,) = bench.rows(ai_breakers)
    assert breaker.failures == 1
    ask(gateway)
    assert [call.outcome for call in bench.calls()] == ["failed", "answered"]
    (bucket,) = bench.rows(ai_buckets)
    assert bucket.tokens == 998.0
