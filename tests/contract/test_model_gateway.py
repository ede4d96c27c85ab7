"""Asking models through the gateway: every call recorded, every limit kept together, on both databases."""

import asyncio
import random
from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest

from docmill.ai.bucket import LONGEST_WAIT
from docmill.ai.budget import Budget, Span
from docmill.db.tables import ai_breakers, ai_buckets
from docmill.model.ai import Answer, Caller, FinishReason, ModelCall, Reply, Request
from docmill.model.ai_errors import (
    BudgetExceeded,
    ModelAuthentication,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    ModelUnknown,
    OutputInvalid,
    OutputTruncated,
)
from docmill.model.errors import Deferred, DocmillError
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.services.models import ModelUse, SpendBy
from docmill.testing.scripted import Line, Scripted
from tests.contract.gateway_bench import ANSWER, CENT, Bench, ask, fails


def test_an_answer_is_recorded_with_its_tokens_and_cost_before_the_step_gets_it(bench: Bench) -> None:
    caller = Caller(job_id=new_id(), position=3, step_key="extract", attempt=2, prompt_id=new_id())
    schema = {"type": "object", "required": ["a"]}
    answer = Answer(text='{"a": 1}', input_tokens=5, output_tokens=10)
    model = Scripted({"m": [answer]})
    reply = ask(bench.gateway(model), caller, output_schema=schema, temperature=0.5, options={"seed": 1})
    assert (reply.data, reply.text) == ({"a": 1}, '{"a": 1}')
    assert (reply.provider, reply.model, reply.cost) == ("scripted", "m", Decimal("0.01"))
    (call,) = bench.calls()
    assert (call.job_id, call.position, call.step_key) == (caller.job_id, 3, "extract")
    assert (call.attempt, call.prompt_id, call.org_id) == (2, caller.prompt_id, DEFAULT_ORG)
    assert (call.outcome, call.error_code, call.priced) == ("answered", None, True)
    assert (call.input_tokens, call.output_tokens, call.cost_nanos) == (5, 10, CENT)
    assert bench.spent() == {"2026-11": CENT, "2026-11-15": CENT}
    (seen,) = model.calls
    assert (seen.model, seen.max_tokens, seen.timeout) == ("m", 100, 120.0)
    assert (seen.temperature, seen.options, seen.output_schema) == (0.5, {"seed": 1}, schema)


@pytest.mark.parametrize(
    ("line", "kind", "cost"),
    [
        (Answer(text="{", input_tokens=1, output_tokens=10, finish=FinishReason.LENGTH), OutputTruncated, CENT),
        (Answer(text="{}", input_tokens=1, output_tokens=10, finish=FinishReason.LENGTH), OutputTruncated, CENT),
        (Answer(text="{", input_tokens=1, output_tokens=10), OutputInvalid, CENT),
        (Answer(text="[]", input_tokens=1, output_tokens=10), OutputInvalid, CENT),
        (ModelRateLimited("Slow down.", retry_after=7.0), ModelRateLimited, 0),
        (ModelUnavailable("503"), ModelUnavailable, 0),
        (ModelAuthentication("No."), ModelAuthentication, 0),
        (ModelUnknown("No such model."), ModelUnknown, 0),
    ],
    ids=["cut", "cut but parses", "malformed", "against schema", "429", "503", "key", "model"],
)
def test_what_fails_is_recorded_with_what_it_cost(
    bench: Bench, line: Line, kind: type[DocmillError], cost: int
) -> None:
    error = fails(bench.gateway(Scripted({"m": [line]})), kind, output_schema={"type": "object"})
    (call,) = bench.calls()
    assert (call.outcome, call.error_code, call.cost_nanos) == ("failed", error.code, cost)
    if isinstance(error, ModelRateLimited):
        assert error.retry_after == 7.0


def test_a_model_that_is_too_slow_is_given_up(bench: Bench) -> None:
    async def silent(call: ModelCall) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    model = Scripted({})
    model.ask = silent  # type: ignore[method-assign]
    error = fails(bench.gateway(model), ModelTimeout, timeout=0.01)
    assert "0.01 s" in error.message
    assert bench.calls()[0].error_code == "model_timeout"


def test_a_provider_that_nobody_has_is_named_with_those_there_are(bench: Bench) -> None:
    error = fails(bench.gateway(Scripted({})), ModelUnknown, model="nobody:x")
    assert "scripted" in error.message
    assert bench.calls() == []


def test_a_model_without_a_price_is_recorded_as_such(bench: Bench) -> None:
    gateway = bench.gateway(Scripted({"*": [ANSWER]}), budgets=(Budget(span=Span.DAY, limit=0),))
    assert ask(gateway, model="scripted:nobody-knows").cost_nanos == 0
    assert bench.calls()[0].priced is False


def test_a_call_that_is_cancelled_gives_back_what_it_reserved(bench: Bench) -> None:
    begun = asyncio.Event()

    async def silent(call: ModelCall) -> Answer:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    model = Scripted({})
    model.ask = silent  # type: ignore[method-assign]
    gateway = bench.gateway(model)

    async def play() -> None:
        task = asyncio.create_task(gateway.generate(Request(prompt="x", model="scripted:m")))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    (call,) = bench.calls()
    assert (call.outcome, call.error_code, call.cost_nanos) == ("failed", "cancelled", 0)


def test_a_call_cancelled_while_it_is_let_in_leaves_no_reservation(bench: Bench) -> None:
    gateway = bench.gateway(Scripted({"m": [ANSWER]}))

    async def play() -> None:
        task = asyncio.create_task(gateway.generate(Request(prompt="x", model="scripted:m")))
        # It has begun its transaction in a thread, and hears nothing more of it.
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while gateway._background:
            await asyncio.gather(*gateway._background)

    asyncio.run(play())
    assert [(call.outcome, call.cost_nanos) for call in bench.calls()] in ([], [("failed", 0)])


def test_callers_wait_for_their_tokens_in_turn_and_too_many_are_sent_away(bench: Bench) -> None:
    gateway = bench.gateway(Scripted({"m": [ANSWER]}), rate=10.0, burst=1)

    async def crowd() -> list[Reply | BaseException]:
        request = Request(prompt="well?", model="scripted:m")
        return await asyncio.gather(*(gateway.generate(request) for _ in range(120)), return_exceptions=True)

    outcomes = asyncio.run(crowd())
    let_in = 1 + round(10 * LONGEST_WAIT)
    assert sum(1 for outcome in outcomes if isinstance(outcome, Reply)) == let_in
    assert sorted(bench.waits) == pytest.approx([n / 10 for n in range(1, let_in)])
    refused = [outcome for outcome in outcomes if isinstance(outcome, Deferred)]
    assert len(refused) == 120 - let_in
    assert [refusal.delay for refusal in refused] == pytest.approx([LONGEST_WAIT + 0.1] * len(refused))


def test_a_provider_may_have_a_rate_of_its_own(bench: Bench) -> None:
    from docmill.ai.rules import ProviderRules

    gateway = bench.gateway(Scripted({"m": [ANSWER]}), providers={"scripted": ProviderRules(rate=2.0, burst=1)})
    ask(gateway)
    ask(gateway)
    assert bench.waits == [0.5]


def test_with_a_third_of_the_calls_faulty_limits_hold_and_accounts_agree(bench: Bench) -> None:
    dice = random.Random(7)
    faults: list[Line] = [
        ModelUnavailable("503"),
        ModelRateLimited("429", retry_after=1.0),
        ModelTimeout("Slow."),
        Answer(text="{", input_tokens=5, output_tokens=20),
        Answer(text="{}", input_tokens=5, output_tokens=100, finish=FinishReason.LENGTH),
    ]
    storm = {"now": False}

    def moody(call: ModelCall) -> Line:
        if storm["now"]:
            return ModelUnavailable("503")
        if dice.random() >= 0.3:
            return Answer(text="{}", input_tokens=5, output_tokens=dice.randint(1, 100))
        return dice.choice(faults)

    limit = 600 * CENT
    model = Scripted(moody)
    gateway = bench.gateway(model, budgets=(Budget(span=Span.DAY, limit=limit),), max_tokens=100)
    states: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    while len(model.calls) < 500:
        # Faults come singly, and now and then all at once.
        storm["now"] = len(model.calls) % 100 > 85
        try:
            reply = ask(gateway, output_schema={"type": "object"})
        except Deferred as refusal:
            outcomes["deferred"] += 1
            bench.clock.advance(refusal.delay)
        except BudgetExceeded:
            outcomes["budget_exceeded"] += 1
            bench.clock.advance(24 * 3600)
        except DocmillError as error:
            outcomes[error.code] += 1
        else:
            assert reply.data == {}
            outcomes["answered"] += 1
        states[bench.breaker()] += 1
        bench.clock.advance(0.05)
    assert min(states["open"], states["closed"]) > 0
    assert bench.breaker() == "closed" or outcomes["deferred"]
    rows = bench.calls()
    assert len(rows) == len(model.calls) == 500
    recorded = Counter(row.error_code or row.outcome for row in rows)
    assert recorded == Counter({code: count for code, count in outcomes.items() if code in recorded})
    assert recorded["model_unavailable"] > 50
    assert recorded["output_truncated"] > 0
    total = sum(row.cost_nanos for row in rows)
    assert bench.spent()["2026-11"] == total
    days = [spent for name, spent in bench.spent().items() if len(name) == 10]
    assert outcomes["budget_exceeded"] > 0
    # Nearly all of it was used before the first call was refused.
    assert limit - 10 * CENT < max(days) <= limit
    use = ModelUse(bench.database, clock=lambda connection: bench.clock.now)
    for by in SpendBy:
        found = use.spend(by, days=30)
        assert sum(spend.cost_nanos for spend in found) == total
        assert sum(spend.calls for spend in found) == 500


def test_the_limits_leave_one_row_each(bench: Bench) -> None:
    gateway = bench.gateway(Scripted({"m": [ANSWER]}))
    for _ in range(3):
        ask(gateway)
        bench.clock.advance(timedelta(hours=1).total_seconds())
    assert [row.name for row in bench.rows(ai_buckets)] == ["scripted"]
    assert bench.rows(ai_breakers) == []
