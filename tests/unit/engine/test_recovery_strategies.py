"""Custom error recovery strategies per step type: a failed attempt is put to its strategy before it is given up."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest

from docmill.engine.batch import StepRun
from docmill.engine.context import Context
from docmill.engine.failure import failure
from docmill.engine.loading import Loader
from docmill.engine.recovery import computed
from docmill.engine.sql.rows import JobHead
from docmill.engine.state import StepState
from docmill.model import errors
from docmill.model.statuses import StepStatus
from docmill.model.tokens import Tokens
from docmill.plugin import Fallback, GiveUp, PluginInvalid, Recovery, Retry, StepContext, StepType, step
from docmill.testing.oracle import START
from docmill.testing.samples import Draft, make_plan


class Stored:
    """Stands in for the loader: what the last attempt ended with."""

    def __init__(self, error: object = None) -> None:
        self._error = error

    async def error(self, run: StepRun) -> object:
        return self._error


def declared(strategy: Recovery, *, default: bool = True) -> StepType:
    @step("scan", recoveries={"mend": strategy}, recovery="mend" if default else None)
    async def scan(ctx: StepContext) -> None: ...

    (spec,) = scan.__dict__["__docmill__"]
    return cast(StepType, spec)


def run_of(*, recovery: str | None = None, failures: int = 0) -> StepRun:
    plan = make_plan([Draft(key="a", model={"model": "big", "max_tokens": 8})])
    planned = replace(plan.steps[0], recovery=recovery)
    head = JobHead("job", "org", "template", "document", "d1", 0, "", {}, None, None, START)
    state = StepState(status=StepStatus.IN_PROGRESS, epoch=1, failures=failures)
    return StepRun(head, 1, plan, planned, state, "system", False)


class Outcome:
    """One attempt: its value or its error, and the context it ran in."""

    def __init__(
        self,
        strategy: Recovery,
        raised: BaseException | None = None,
        *,
        default: bool = True,
        run: StepRun | None = None,
        stored: object = None,
        timed_out: bool = False,
    ) -> None:
        self.run = run or run_of()
        self.context = Context(self.run, cast(Any, None), Tokens(b"secret"))
        self.value: object = None
        self.error: BaseException | None = None
        error = errors.RetryableError("The scanner jams.") if raised is None else raised

        async def compute() -> object:
            raise error

        async def attempt() -> None:
            try:
                self.value = await computed(
                    self.run,
                    self.context,
                    declared(strategy, default=default),
                    cast(Loader, Stored(stored)),
                    compute,
                    timed_out=lambda: timed_out,
                )
            except BaseException as caught:
                self.error = caught

        asyncio.run(attempt())

    @property
    def event(self) -> Any:
        assert self.error is not None
        return failure(self.run, self.error, now=START, jitter=0.0)

    @property
    def stored(self) -> Any:
        return orjson.loads(self.event.error)


def answering(answer: Any) -> Recovery:
    return lambda ctx, error: answer


def test_a_fallback_completes_the_step_and_says_what_it_made_up_for() -> None:
    outcome = Outcome(answering(Fallback({"pages": []})))
    assert outcome.value == {"pages": []}
    assert outcome.context.recovered is not None
    assert orjson.loads(outcome.context.recovered) == {
        "code": "retryable",
        "message": "The scanner jams.",
        "attempt": 1,
        "recovery": {"strategy": "mend", "outcome": "fallback"},
    }


def test_giving_up_fails_the_step_for_good() -> None:
    outcome = Outcome(answering(GiveUp()))
    assert outcome.event.permanent
    assert outcome.stored["message"] == "The scanner jams."
    assert outcome.stored["recovery"]["outcome"] == "give_up"


def test_a_retry_comes_when_the_strategy_says_even_after_a_permanent_error() -> None:
    outcome = Outcome(answering(Retry(after=90, model={"model": "small"})), errors.PermanentError("Unreadable."))
    assert (outcome.event.permanent, outcome.event.retry_after) == (False, 90.0)
    assert outcome.stored == {
        "code": "permanent",
        "message": "Unreadable.",
        "attempt": 1,
        "recovery": {"strategy": "mend", "outcome": "retry", "model": {"model": "small"}},
    }


def test_the_next_attempt_has_the_model_that_the_strategy_asked_for() -> None:
    error = {"code": "retryable", "recovery": {"strategy": "mend", "model": {"model": "small"}}}
    outcome = Outcome(answering(None), run=run_of(failures=1), stored=error)
    assert outcome.context.model == {"model": "small", "max_tokens": 8}


def test_without_an_opinion_the_usual_happens() -> None:
    outcome = Outcome(answering(None))
    assert isinstance(outcome.error, errors.RetryableError)
    assert "recovery" not in outcome.stored


def test_the_strategy_may_be_asynchronous_and_sees_context_and_error() -> None:
    async def look(ctx: StepContext, error: Exception) -> Fallback:
        return Fallback({"attempt": ctx.attempt, "error": str(error)})

    assert Outcome(look).value == {"attempt": 1, "error": "The scanner jams."}


def test_a_strategy_that_fails_itself_leaves_the_original_failure_and_a_word_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(ctx: StepContext, error: Exception) -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.WARNING):
        outcome = Outcome(broken)
    assert outcome.stored == {"code": "retryable", "message": "The scanner jams.", "attempt": 1}
    assert "the recovery mend of step a failed itself" in caplog.text


def test_an_attempt_that_ran_out_of_time_is_put_to_the_strategy_too() -> None:
    outcome = Outcome(lambda ctx, error: Fallback(type(error).__name__), asyncio.CancelledError(), timed_out=True)
    assert outcome.value == "TimedOut"
    assert orjson.loads(outcome.context.recovered or "")["code"] == "timed_out"


NOT_FAILURES: Mapping[str, BaseException] = {
    "lost": errors.LeaseLost("Taken over."),
    "refused": errors.Deferred("Not now.", delay=1),
    "cancelled": asyncio.CancelledError(),
}


@pytest.mark.parametrize("name", NOT_FAILURES)
def test_what_is_no_failure_of_the_step_is_none_of_its_business(name: str) -> None:
    outcome = Outcome(answering(Fallback("never")), NOT_FAILURES[name])
    assert outcome.error is NOT_FAILURES[name]


def test_a_template_chooses_and_a_step_type_may_have_a_default() -> None:
    never: Callable[..., Awaitable[None] | Any] = answering(Fallback("chosen"))
    assert Outcome(never, default=False).value is None
    assert Outcome(never, default=False, run=run_of(recovery="mend")).value == "chosen"


def test_a_default_that_is_not_declared_is_refused() -> None:
    with pytest.raises(PluginInvalid, match="none of its recoveries"):
        step("scan", recovery="mend")
