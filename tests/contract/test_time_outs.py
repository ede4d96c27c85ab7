"""A step has so much time: it is told when it is nearly up, and ended when it is."""

import asyncio
import sys

from docmill.engine import runner
from docmill.plugin import StepContext, step
from docmill.testing.waiting import until_true
from docmill.testing.world import World
from tests.contract.stories import plan_of, run_job

TEMPLATE = """\
name: slow
processable_type: document
steps:
  - {step_key: slow, type: TYPE, timeout: 500ms, max_attempts: 1}
  - {step_key: finish, type: FinishProcessing}
"""


@step("winds up")
async def winds_up(ctx: StepContext) -> str:
    """Goes on until it is told that its time is nearly up."""
    await until_true(lambda: ctx.stopping, interval=0.005)
    return "in time"


@step("hears nothing")
async def hears_nothing(ctx: StepContext) -> None:
    """Goes on for ever."""
    await asyncio.Event().wait()


def test_a_step_has_300_seconds_and_is_told_after_270() -> None:
    step = plan_of(TEMPLATE.replace("timeout: 500ms, ", "")).step("slow")
    assert (step.timeout, step.timeout * runner._SOFT) == (300.0, 270.0)


def test_a_step_that_winds_up_when_it_is_told_completes(world: World) -> None:
    ended = run_job(world, TEMPLATE.replace("TYPE", "winds up").replace("500ms", "3s"), sys.modules[__name__])
    assert (ended.status, ended.results["slow"]) == ("COMPLETED", "in time")


def test_a_step_that_goes_on_beyond_its_time_is_ended_and_its_attempt_has_failed(world: World) -> None:
    ended = run_job(world, TEMPLATE.replace("TYPE", "hears nothing"), sys.modules[__name__])
    assert (ended.status, ended.steps["slow"]) == ("FAILED", "FAILED")
    assert "longer than its time-out of 0.5 s" in world.steps(ended.job_id)["slow"].error["message"]
