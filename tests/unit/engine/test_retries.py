"""Attempts, delays and changing models: the tables of the specification, row by row."""

import math

import pytest

from docmill.engine.retry import LONGEST_DELAY, attempt_settings, retry_delay
from docmill.model.statuses import JobStatus, StepStatus
from docmill.templates.plan import PlanStep, RetryAction
from docmill.testing.play import Play
from docmill.testing.samples import Draft, make_plan, single_step


def step(draft: Draft) -> PlanStep:
    return make_plan([draft]).steps[0]


@pytest.mark.parametrize(
    ("retry", "model"),
    [
        (0, "gemini-pro"),
        (1, "claude-3-opus"),
        (2, "gpt-4-turbo"),
        (3, "gemini-pro"),
        (4, "claude-3-opus"),
        (5, "gpt-4-turbo"),
    ],
)
def test_switch_models_cycles_the_list_and_then_the_original(retry: int, model: str) -> None:
    action = RetryAction(switch_models=("claude-3-opus", "gpt-4-turbo"))
    draft = Draft(key="a", max_attempts=6, on_retry=action, model={"model": "gemini-pro", "temperature": 0})
    assert attempt_settings(step(draft), failures=retry) == {"model": model, "temperature": 0}


@pytest.mark.parametrize(("retry", "tokens"), [(0, 8000), (1, 10000), (2, 12000), (3, 14000), (4, 16000)])
def test_raise_max_tokens_by_adds_once_per_retry(retry: int, tokens: int) -> None:
    draft = Draft(key="a", on_retry=RetryAction(raise_max_tokens_by=2000), model={"max_tokens": 8000})
    assert attempt_settings(step(draft), failures=retry) == {"max_tokens": tokens}


@pytest.mark.parametrize(
    ("retry", "model", "tokens"),
    [(0, "own", 8000), (1, "claude-3-opus", 10000), (2, "own", 12000), (3, "claude-3-opus", 14000)],
)
def test_switching_and_raising_work_together(retry: int, model: str, tokens: int) -> None:
    action = RetryAction(switch_models=("claude-3-opus",), raise_max_tokens_by=2000)
    draft = Draft(key="a", on_retry=action, model={"model": "own", "max_tokens": 8000})
    assert attempt_settings(step(draft), failures=retry) == {"model": model, "max_tokens": tokens}


def test_without_a_retry_action_every_attempt_has_the_same_settings() -> None:
    draft = Draft(key="a", model={"model": "own", "max_tokens": 8000})
    assert attempt_settings(step(draft), failures=3) == {"model": "own", "max_tokens": 8000}


@pytest.mark.parametrize(("jitter", "stretch"), [(0.0, 1.0), (0.5, 1.25), (0.999999, 1.4999995)])
def test_retries_come_after_ten_twenty_and_forty_seconds_and_up_to_half_again(jitter: float, stretch: float) -> None:
    play = Play(single_step())
    for pause in (10, 20, 40):
        play.claim("a")
        assert play.fail("a", jitter=jitter)
        assert play.step("a").status is StepStatus.READY
        assert play.due_in("a") == pytest.approx(pause * stretch)
        play.wait(pause * stretch - 0.001)
        assert not play.claim("a")
        play.wait(0.002)
    play.claim("a")
    play.fail("a", jitter=jitter)
    assert play.step("a").status is StepStatus.FAILED
    assert play.step("a").failures == 4
    assert play.job() is JobStatus.FAILED


def test_without_jitter_the_last_attempt_begins_seventy_seconds_after_the_first_failure() -> None:
    delays = [
        retry_delay(step(Draft(key="a")), failures=n, permanent=False, retry_after=None, jitter=0) for n in (1, 2, 3, 4)
    ]
    assert delays == [10, 20, 40, None]


def test_a_permanent_error_fails_at_once() -> None:
    play = Play(single_step())
    play.claim("a")
    play.fail("a", permanent=True)
    assert play.step("a").status is StepStatus.FAILED
    assert play.step("a").failures == 1


def test_retry_after_is_honoured_over_the_backoff() -> None:
    play = Play(single_step())
    play.claim("a")
    play.fail("a", retry_after=3.5, jitter=0.9)
    assert play.due_in("a") == 3.5


def test_retry_after_does_not_give_more_attempts() -> None:
    play = Play(make_plan([Draft(key="a", max_attempts=1)]))
    play.claim("a")
    play.fail("a", retry_after=3.5)
    assert play.step("a").status is StepStatus.FAILED


@pytest.mark.parametrize(
    ("told", "waits"), [(-5.0, 0.0), (math.nan, 0.0), (1e300, LONGEST_DELAY), (math.inf, LONGEST_DELAY)]
)
def test_no_retry_after_can_break_the_engine_or_park_a_step_for_good(told: float, waits: float) -> None:
    play = Play(single_step())
    play.claim("a")
    play.fail("a", retry_after=told)
    assert play.due_in("a") == waits


def test_no_number_of_attempts_makes_a_delay_too_long_for_a_date() -> None:
    patient = step(Draft(key="a", max_attempts=5000))
    assert retry_delay(patient, failures=4999, permanent=False, retry_after=None, jitter=0.5) == LONGEST_DELAY


def test_a_refusal_by_breaker_or_bucket_uses_no_attempt() -> None:
    play = Play(make_plan([Draft(key="a", max_attempts=1)]))
    for _ in range(10):
        play.claim("a")
        assert play.defer("a", 5)
        assert play.due_in("a") == 5
        play.wait(5)
    assert play.step("a").failures == 0
    play.run("a", "finish")
    assert play.job() is JobStatus.COMPLETED


def test_a_failing_apply_keeps_the_result_it_was_given() -> None:
    play = Play(single_step())
    play.claim("a")
    play.fail("a", result='{"total": 1}')
    assert play.step("a").checkpointed
    play.wait(10)
    play.claim("a")
    assert play.step("a").checkpointed
