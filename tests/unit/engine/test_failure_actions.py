"""What a failed step means for the rest of its job (the "failure action types" of the architecture)."""

import pytest

from docmill.model.statuses import FailureAction, JobStatus, SkipReason, StepKind, StepStatus
from docmill.templates.plan import Plan
from docmill.testing.play import Play
from docmill.testing.samples import Draft, make_plan, receipt, single_step

SKIP, CONTINUE, FAIL = FailureAction.SKIP_DEPENDENTS, FailureAction.CONTINUE, FailureAction.FAIL_JOB


def two_then_two(action: FailureAction) -> Plan:
    """(a ∥ b), then c after a and d after b."""
    return make_plan(
        [
            Draft(key="a", on_failure=action),
            Draft(key="b"),
            Draft(key="c", group=2, after=("a",)),
            Draft(key="d", group=2, after=("b",)),
        ]
    )


def test_fail_job_lets_running_siblings_finish_and_skips_the_rest() -> None:
    play = Play(two_then_two(FAIL))
    play.claim("a", "b")
    play.fail("a", permanent=True)
    assert play.job() is JobStatus.IN_PROGRESS
    assert play.statuses == {
        "a": StepStatus.FAILED,
        "b": StepStatus.IN_PROGRESS,
        "c": StepStatus.SKIPPED,
        "d": StepStatus.SKIPPED,
        "finish": StepStatus.SKIPPED,
    }
    assert play.step("d").reason is SkipReason.JOB_FAILED
    assert play.complete("b")
    assert play.step("b").status is StepStatus.COMPLETED
    assert play.job() is JobStatus.FAILED


def test_fail_job_gives_a_failing_sibling_no_further_attempt() -> None:
    play = Play(two_then_two(FAIL))
    play.claim("a", "b")
    play.fail("a", permanent=True)
    play.fail("b")
    assert play.step("b").status is StepStatus.SKIPPED
    assert play.step("b").failures == 1
    assert play.job() is JobStatus.FAILED


def test_fail_job_skips_a_sibling_that_waits_for_its_retry() -> None:
    play = Play(two_then_two(FAIL))
    play.claim("a", "b")
    play.fail("b")
    play.fail("a", permanent=True)
    assert play.step("b").status is StepStatus.SKIPPED
    assert play.job() is JobStatus.FAILED


def test_fail_job_withdraws_a_question_but_lets_an_outside_executor_answer() -> None:
    plan = make_plan([Draft(key="a"), Draft(key="ask", kind=StepKind.HUMAN), Draft(key="hub", kind=StepKind.EXTERNAL)])
    play = Play(plan)
    play.claim("a", "ask", "hub")
    play.suspend("ask")
    play.suspend("hub")
    play.fail("a", permanent=True)
    assert play.step("ask").status is StepStatus.SKIPPED
    assert not play.complete("ask")
    assert play.job() is JobStatus.WAITING
    assert play.complete("hub")
    assert play.job() is JobStatus.FAILED


def test_a_question_asked_after_the_job_failed_is_withdrawn_at_once() -> None:
    play = Play(make_plan([Draft(key="a"), Draft(key="ask", kind=StepKind.HUMAN)]))
    play.claim("a", "ask")
    play.fail("a", permanent=True)
    assert play.suspend("ask")
    assert play.step("ask").status is StepStatus.SKIPPED
    assert play.job() is JobStatus.FAILED


def test_skip_dependents_skips_what_depends_on_the_step_and_nothing_else() -> None:
    play = Play(two_then_two(SKIP))
    play.break_("a")
    assert play.step("c").reason is SkipReason.DEPENDENCY_FAILED
    play.run("b", "d", "finish")
    assert play.job() is JobStatus.PARTIAL_SUCCESS


def test_skips_are_transitive_whatever_the_skipped_steps_own_action_is() -> None:
    plan = make_plan(
        [
            Draft(key="other"),
            Draft(key="a", on_failure=SKIP),
            Draft(key="b", group=2, after=("a",), on_failure=CONTINUE),
            Draft(key="c", group=3, after=("b",)),
            Draft(key="d", group=4, after=("c", "other")),
        ]
    )
    play = Play(plan)
    play.break_("a")
    assert [play.step(key).reason for key in "bcd"] == [SkipReason.DEPENDENCY_FAILED] * 3
    play.run("other", "finish")
    assert play.job() is JobStatus.PARTIAL_SUCCESS


def test_skips_reach_a_dependent_that_stands_earlier_in_the_same_group() -> None:
    plan = make_plan([Draft(key="late", after=("early",)), Draft(key="early", on_failure=SKIP), Draft(key="other")])
    play = Play(plan)
    assert play.step("late").status is StepStatus.PENDING
    play.break_("early")
    assert play.step("late").reason is SkipReason.DEPENDENCY_FAILED


def test_continue_lets_dependents_run_and_the_job_end_in_partial_success() -> None:
    play = Play(two_then_two(CONTINUE))
    play.break_("a")
    play.run("b", "c", "d", "finish")
    assert play.job() is JobStatus.PARTIAL_SUCCESS


def test_a_step_skipped_by_its_condition_satisfies_its_dependents_and_is_no_failure() -> None:
    play = Play(two_then_two(FAIL))
    play.claim("a")
    assert play.skip("a")
    assert play.step("a").reason is SkipReason.CONDITION
    play.run("b", "c", "d", "finish")
    assert play.job() is JobStatus.COMPLETED


def test_all_steps_failed_is_a_failed_job_though_its_finish_completed() -> None:
    play = Play(make_plan([Draft(key="a", on_failure=CONTINUE), Draft(key="b", on_failure=SKIP)]))
    play.break_("a", "b")
    play.run("finish")
    assert play.job() is JobStatus.FAILED


def test_skipped_because_of_a_failure_counts_as_failed_when_the_job_is_judged() -> None:
    play = Play(make_plan([Draft(key="a", on_failure=SKIP), Draft(key="b", group=2, after=("a",))]))
    play.break_("a")
    play.run("finish")
    assert play.job() is JobStatus.FAILED


def test_skipped_by_condition_does_not_count_as_failed_when_the_job_is_judged() -> None:
    play = Play(make_plan([Draft(key="a", on_failure=SKIP), Draft(key="b")]))
    play.break_("a")
    play.claim("b")
    play.skip("b")
    play.run("finish")
    assert play.job() is JobStatus.PARTIAL_SUCCESS


def test_which_failure_came_first_decides_why_a_step_was_skipped() -> None:
    plan = make_plan([Draft(key="a", on_failure=SKIP), Draft(key="b"), Draft(key="c", group=2, after=("a",))])
    soft_first, hard_first = Play(plan), Play(plan)
    soft_first.claim("a", "b")
    soft_first.fail("a", permanent=True)
    soft_first.fail("b", permanent=True)
    hard_first.claim("a", "b")
    hard_first.fail("b", permanent=True)
    hard_first.fail("a", permanent=True)
    assert soft_first.step("c").reason is SkipReason.DEPENDENCY_FAILED
    assert hard_first.step("c").reason is SkipReason.JOB_FAILED
    assert soft_first.job() is hard_first.job() is JobStatus.FAILED


def test_the_finish_step_waits_until_every_earlier_step_settled() -> None:
    play = Play(two_then_two(SKIP))
    play.claim("a", "b")
    play.fail("a", permanent=True)
    assert play.step("finish").status is StepStatus.PENDING
    play.complete("b")
    play.run("d")
    assert play.step("finish").status is StepStatus.READY


def test_the_finish_step_is_not_skipped_with_the_dependents_of_a_failed_step() -> None:
    play = Play(make_plan([Draft(key="a", on_failure=SKIP)]))
    play.break_("a")
    assert play.step("finish").status is StepStatus.READY


@pytest.mark.parametrize("action", FailureAction)
def test_a_failed_finish_step_fails_the_job_whatever_its_action_says(action: FailureAction) -> None:
    play = Play(make_plan([Draft(key="a")], finish=Draft(key="finish", on_failure=action)))
    play.run("a")
    play.break_("finish")
    assert play.job() is JobStatus.FAILED


def test_groups_run_in_order_even_without_dependencies() -> None:
    play = Play(make_plan([Draft(key="a"), Draft(key="b", group=2)]))
    assert play.step("b").status is StepStatus.PENDING
    play.run("a")
    assert play.step("b").status is StepStatus.READY


def test_a_delayed_step_is_ready_at_once_but_not_due() -> None:
    play = Play(make_plan([Draft(key="a", delay=30.0)]))
    assert play.step("a").status is StepStatus.READY
    assert not play.claim("a")
    play.wait(30)
    assert play.claim("a")


def test_a_job_is_pending_until_its_first_claim() -> None:
    play = Play(single_step())
    assert play.job() is JobStatus.PENDING
    play.claim("a")
    assert play.job() is JobStatus.IN_PROGRESS
    play.release("a")
    assert play.job() is JobStatus.IN_PROGRESS


def test_progress_reaches_one_hundred_per_cent_when_a_job_ends_with_skips() -> None:
    play = Play(receipt())
    play.run("ocr", "classify", "extract")
    play.break_("budget")
    play.run("vendor")
    play.break_("notify")
    play.run("approve", "finish")
    assert play.step("check_budget").reason is SkipReason.DEPENDENCY_FAILED
    assert play.job() is JobStatus.PARTIAL_SUCCESS
    assert play.state.settled == len(play.plan.steps)
