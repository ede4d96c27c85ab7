"""Ending a job by hand, and beginning it again."""

from collections.abc import Callable

import pytest

from docmill.model.statuses import FailureAction, JobStatus, SkipReason, StepStatus
from docmill.testing.play import Play
from docmill.testing.samples import Draft, chain, diamond, make_plan, single_step

SKIP = FailureAction.SKIP_DEPENDENTS

MOMENTS: dict[str, Callable[[Play], object]] = {
    "before anything": lambda play: None,
    "running": lambda play: play.claim("a"),
    "waiting": lambda play: (play.claim("a"), play.suspend("a")),
    "between attempts": lambda play: (play.claim("a"), play.fail("a")),
    "half done": lambda play: play.run("a", "b"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_cancel_works_at_any_time_and_voids_what_still_runs(moment: str) -> None:
    play = Play(diamond())
    MOMENTS[moment](play)
    held = [step.epoch for step in play.state.steps]
    assert play.cancel()
    assert play.job() is JobStatus.CANCELLED
    assert all(status.settled for status in play.statuses.values())
    before = play.state
    for planned in play.plan.steps:
        if play.step(planned.step_key).status is StepStatus.CANCELLED:
            assert not play.complete(planned.step_key, epoch=held[planned.position])
    assert play.state == before


def test_cancel_leaves_what_had_settled() -> None:
    play = Play(diamond())
    play.run("a")
    play.cancel()
    assert play.step("a").status is StepStatus.COMPLETED
    assert play.step("b").status is StepStatus.CANCELLED


def test_a_finished_job_cannot_be_cancelled() -> None:
    play = Play(single_step())
    play.run("a", "finish")
    assert not play.cancel()
    assert play.job() is JobStatus.COMPLETED


def test_an_unfinished_job_cannot_be_rerun() -> None:
    play = Play(single_step())
    before = play.state
    assert not play.rerun("a")
    assert play.state == before


def test_rerun_runs_the_step_and_what_rests_on_it_and_leaves_the_rest() -> None:
    play = Play(diamond())
    play.run("a", "b", "c", "d", "finish")
    assert play.rerun("b")
    assert play.state.run == 2
    assert play.job() is JobStatus.PENDING
    assert play.statuses == {
        "a": StepStatus.COMPLETED,
        "b": StepStatus.READY,
        "c": StepStatus.COMPLETED,
        "d": StepStatus.PENDING,
        "finish": StepStatus.PENDING,
    }
    play.run("b", "d", "finish")
    assert play.job() is JobStatus.COMPLETED


@pytest.mark.parametrize("keep", [True, False])
def test_rerun_keeps_what_was_checkpointed_unless_told_otherwise(keep: bool) -> None:
    play = Play(single_step())
    play.claim("a")
    play.complete("a", paid=True)
    play.run("finish")
    play.rerun("a", keep_checkpoints=keep)
    assert play.step("a").checkpointed is keep


def test_rerun_gives_all_attempts_and_crashes_back() -> None:
    play = Play(make_plan([Draft(key="a", max_attempts=2, backoff=0)]))
    play.claim("a")
    play.crash("a")
    for _ in range(2):
        play.claim("a")
        play.fail("a")
    assert play.job() is JobStatus.FAILED
    play.rerun("a")
    assert (play.step("a").failures, play.step("a").crashes) == (0, 0)
    play.run("a", "finish")
    assert play.job() is JobStatus.COMPLETED


def test_a_report_from_the_run_before_is_void() -> None:
    play = Play(single_step())
    play.claim("a")
    old = play.step("a").epoch
    play.complete("a")
    play.run("finish")
    play.rerun("a")
    assert not play.complete("a", epoch=old)
    play.claim("a")
    assert not play.complete("a", epoch=old)


def test_rerun_of_a_failed_step_brings_back_what_was_skipped_because_of_it() -> None:
    play = Play(chain(3))
    play.run("s0")
    play.break_("s1")
    assert play.step("s2").reason is SkipReason.JOB_FAILED
    play.rerun("s1")
    play.run("s1", "s2", "finish")
    assert play.job() is JobStatus.COMPLETED


def test_rerun_of_a_step_takes_along_the_failure_that_failed_the_job() -> None:
    """Or the new run would end before the step that was asked for could start."""
    play = Play(make_plan([Draft(key="good"), Draft(key="bad")]))
    play.run("good")
    play.break_("bad")
    play.rerun("good")
    assert play.statuses == {"good": StepStatus.READY, "bad": StepStatus.READY, "finish": StepStatus.PENDING}


def test_rerun_leaves_a_tolerated_failure_as_it_is() -> None:
    plan = make_plan([Draft(key="good"), Draft(key="bad", on_failure=SKIP), Draft(key="next", group=2, after=("bad",))])
    play = Play(plan)
    play.run("good")
    play.break_("bad")
    play.run("finish")
    play.rerun("good")
    assert play.step("bad").status is StepStatus.FAILED
    assert play.step("next").reason is SkipReason.DEPENDENCY_FAILED
    play.run("good", "finish")
    assert play.job() is JobStatus.PARTIAL_SUCCESS


def test_a_cancelled_job_can_be_taken_up_where_it_was() -> None:
    play = Play(diamond())
    play.run("a", "b")
    play.cancel()
    play.rerun("c")
    assert play.step("b").status is StepStatus.COMPLETED
    play.run("c", "d", "finish")
    assert play.job() is JobStatus.COMPLETED
