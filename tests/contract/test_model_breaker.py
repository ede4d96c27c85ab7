"""The breaker of a model: opened by its failures, closed by a probe or a person."""

import asyncio

import pytest

from docmill.model.ai import Answer, FinishReason, Request
from docmill.model.ai_errors import (
    ModelAuthentication,
    ModelUnavailable,
    ModelUnknown,
)
from docmill.model.errors import Deferred, DocmillError, LeaseLost
from docmill.services.models import ModelUse
from docmill.testing.scripted import Line, Script, Scripted
from tests.contract.gateway_bench import ANSWER, Bench, ask, broken, fails


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


def test_a_probe_knows_that_it_is_one_although_the_answer_to_its_admission_was_lost(bench: Bench) -> None:
    gateway = bench.gateway(Scripted(broken(bench, 6)))
    for _ in range(6):
        fails(gateway, ModelUnavailable)
    bench.clock.advance(60)
    bench.lose_the_answer_to(1)
    assert ask(gateway).text == "yes"
    assert bench.breaker() == "closed"
