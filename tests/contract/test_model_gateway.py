"""Asking models through the gateway: every limit is kept, every call recorded, on both databases.

Long because every limit around a call is judged with the same stand-in, clock and ledger.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, Row, select

from docmill.ai.bucket import LONGEST_WAIT
from docmill.ai.budget import Budget, Span
from docmill.ai.gateway import Gateway
from docmill.ai.prices import Price
from docmill.ai.rules import Rules
from docmill.db.database import Database
from docmill.db.tables import ai_breakers, ai_buckets, ai_budgets, ai_calls
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
from docmill.model.errors import DatabaseUnavailable, Deferred, DocmillError, LeaseLost
from docmill.model.ids import DEFAULT_ORG, derived_id, new_id
from docmill.services.models import ModelUse, SpendBy
from docmill.testing.scripted import Line, Script, Scripted
from docmill.testing.world import Clock

START = datetime(2026, 11, 15, 12, tzinfo=UTC)
FAST = 1e6
PRICES = {"m": Price(input=Decimal(0), output=Decimal(1000))}
"""A token of output costs a tenth of a cent."""
CENT = 10_000_000
ANSWER = Answer(text="yes", input_tokens=5, output_tokens=10)
"""Costs a cent."""
OTHER_ORG = derived_id("organisation", "other")


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


@pytest.fixture
def bench(database_url: str) -> Iterator[Bench]:
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


# Asking and recording.


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


# The breaker.


def broken(bench: Bench, times: int) -> Callable[[ModelCall], Line]:
    """A model that fails so often, and is well afterwards."""
    count = iter(range(10**9))
    return lambda call: ModelUnavailable("503") if next(count) < times else ANSWER


def test_more_than_five_failures_in_a_row_keep_everybody_out_for_a_minute(bench: Bench) -> None:
    model = Scripted(broken(bench, 6))
    gateway, other = bench.gateway(model), bench.gateway(model)
    for _ in range(5):
        fails(gateway, ModelUnavailable)
    assert bench.breaker() == "closed"
    fails(other, ModelUnavailable)
    assert bench.breaker() == "open"
    bench.clock.advance(20)
    refusal = fails(gateway, Deferred)
    assert isinstance(refusal, Deferred)
    assert refusal.delay == 40.0
    assert len(model.calls) == 6
    bench.clock.advance(40)
    assert ask(other).text == "yes"
    assert bench.breaker() == "closed"
    # Who was not let in was not recorded as a call, and took no token of the rate.
    assert len(bench.calls()) == 7


def test_a_probe_that_fails_opens_it_for_another_minute(bench: Bench) -> None:
    gateway = bench.gateway(Scripted(broken(bench, 7)))
    for _ in range(6):
        fails(gateway, ModelUnavailable)
    bench.clock.advance(60)
    fails(gateway, ModelUnavailable)
    bench.clock.advance(59)
    fails(gateway, Deferred)
    bench.clock.advance(1)
    ask(gateway)


def test_a_probe_that_was_never_asked_says_nothing_about_the_model(bench: Bench) -> None:
    """Its worker lost the step while the call waited for its turn."""
    model = Scripted(broken(bench, 7))
    gateway = bench.gateway(model)
    for _ in range(6):
        fails(gateway, ModelUnavailable)
    bench.clock.advance(60)

    def lost() -> None:
        raise LeaseLost("The step was taken over.")

    with pytest.raises(LeaseLost):
        asyncio.run(gateway.generate(Request(prompt="well?", model="scripted:m"), still_wanted=lost))
    assert len(model.calls) == 6
    assert bench.breaker() == "half_open"
    fails(gateway, ModelUnavailable)
    assert bench.breaker() == "open", "the next caller was the probe instead"


def test_each_model_has_a_breaker_of_its_own(bench: Bench) -> None:
    script: Script = {"m": [ModelUnavailable("503")], "n": [ANSWER]}
    gateway = bench.gateway(Scripted(script))
    for _ in range(6):
        fails(gateway, ModelUnavailable)
    fails(gateway, Deferred)
    ask(gateway, model="scripted:n")


@pytest.mark.parametrize(
    "line",
    [
        Answer(text="[", input_tokens=1, output_tokens=1),
        Answer(text="{}", input_tokens=1, output_tokens=1, finish=FinishReason.LENGTH),
        ModelAuthentication("No."),
        ModelUnknown("No."),
        ZeroDivisionError(),
    ],
    ids=["malformed", "truncated", "key", "model", "bug"],
)
def test_only_the_health_of_the_provider_opens_it(bench: Bench, line: Line) -> None:
    gateway = bench.gateway(Scripted({"m": [line]}))
    for _ in range(10):
        with pytest.raises((DocmillError, ZeroDivisionError)):
            ask(gateway, output_schema={"type": "object"})
    assert bench.breaker() == "closed"


def test_a_person_can_close_it(bench: Bench) -> None:
    gateway = bench.gateway(Scripted(broken(bench, 6)))
    for _ in range(6):
        fails(gateway, ModelUnavailable)
    use = ModelUse(bench.database)
    (found,) = use.breakers()
    assert (found.name, found.state, found.failures) == ("scripted:m", "open", 6)
    use.reset_breaker("scripted:m")
    ask(gateway)


# The rate.


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


# The budget.


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
    commits = iter(range(1, 100))
    write = bench.database.write

    @contextmanager
    def unheard() -> Iterator[Connection]:
        with write() as connection:
            yield connection
        if next(commits) == lost:
            raise DatabaseUnavailable("The server went away.")

    bench.database.write = unheard  # type: ignore[method-assign]
    fails(gateway, ModelUnavailable)
    (breaker,) = bench.rows(ai_breakers)
    assert breaker.failures == 1
    ask(gateway)
    assert [call.outcome for call in bench.calls()] == ["failed", "answered"]
    (bucket,) = bench.rows(ai_buckets)
    assert bucket.tokens == 998.0


def test_a_probe_knows_that_it_is_one_although_the_answer_to_its_admission_was_lost(bench: Bench) -> None:
    gateway = bench.gateway(Scripted(broken(bench, 6)))
    for _ in range(6):
        fails(gateway, ModelUnavailable)
    bench.clock.advance(60)
    commits = iter(range(1, 100))
    write = bench.database.write

    @contextmanager
    def unheard() -> Iterator[Connection]:
        with write() as connection:
            yield connection
        if next(commits) == 1:
            raise DatabaseUnavailable("The server went away.")

    bench.database.write = unheard  # type: ignore[method-assign]
    assert ask(gateway).text == "yes"
    assert bench.breaker() == "closed"


# All of it.


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
