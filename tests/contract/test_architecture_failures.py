"""What the processing architecture says of failing steps; where Docmill decides otherwise, the name says so."""

from docmill.model.statuses import FailureAction, JobStatus, StepStatus
from docmill.testing.world import World
from tests.contract.stories import Story, plan_of
from tests.contract.transactions import FINISH, HEAD, IMPORT, TWO, notes, run

BUDGET = (
    HEAD
    + """\
  - {step_key: budget, type: look, on_failure_action: ACTION}
  - {step_key: vendor, type: look}
  - {step_key: validation, type: look, depends_on: [budget]}
  - {step_key: report, type: look, depends_on: [validation]}
  - {step_key: address, type: look, depends_on: [vendor]}
"""
    + FINISH
)


def broken_budget(world: World, action: str) -> Story:
    """A job whose budget step failed while the vendor step went well."""
    story = Story(world, BUDGET.replace("ACTION", action))
    assert story.claim() == {"budget", "vendor"}
    story.complete("vendor")
    story.fail("budget")
    return story


def test_fail_job_is_the_default_failure_action() -> None:
    assert plan_of(IMPORT).step("ocr").on_failure is FailureAction.FAIL_JOB


def test_fail_job_marks_the_entire_job_as_failed(world: World) -> None:
    assert broken_budget(world, "fail_job").job() is JobStatus.FAILED


def test_fail_job_skips_all_dependent_steps_automatically(world: World) -> None:
    steps = broken_budget(world, "fail_job").steps()
    assert steps["validation"] is steps["report"] is steps["finish_processing"] is StepStatus.SKIPPED


def test_skip_dependents_lets_the_job_continue_running(world: World) -> None:
    story = broken_budget(world, "skip_dependents")
    assert story.job() is JobStatus.IN_PROGRESS
    story.finish()
    assert story.job() is JobStatus.PARTIAL_SUCCESS


def test_skip_dependents_skips_what_depends_on_the_step_directly_or_not(world: World) -> None:
    """The architecture skips direct dependents only; but a dependent of a skipped step cannot run."""
    steps = broken_budget(world, "skip_dependents").steps()
    assert steps["validation"] is steps["report"] is StepStatus.SKIPPED


def test_skip_dependents_lets_other_parallel_or_independent_steps_continue_normally(world: World) -> None:
    """Budget matching fails, so budget validation is skipped, but vendor matching continues."""
    story = broken_budget(world, "skip_dependents")
    story.finish()
    assert story.steps()["vendor"] is story.steps()["address"] is StepStatus.COMPLETED


def test_continue_lets_the_job_continue_as_if_the_step_succeeded(world: World) -> None:
    story = broken_budget(world, "continue")
    assert story.claim() == {"validation", "address"}


def test_continue_lets_dependent_steps_run_normally(world: World) -> None:
    story = broken_budget(world, "continue")
    story.finish()
    assert story.steps()["validation"] is story.steps()["report"] is StepStatus.COMPLETED


def test_continue_marks_the_step_as_failed_without_impact_on_the_flow(world: World) -> None:
    story = broken_budget(world, "continue")
    story.finish()
    assert (story.steps()["budget"], story.job()) == (StepStatus.FAILED, JobStatus.PARTIAL_SUCCESS)


def test_the_error_message_of_a_failed_step_is_stored(world: World) -> None:
    ended = run(world, HEAD + "  - {step_key: ocr, type: break}\n" + FINISH)
    assert world.steps(ended.job_id)["ocr"].error["message"] == "The page is blank."


def test_optional_steps_do_not_block_job_completion(world: World) -> None:
    story = Story(world, TWO)
    story.claim()
    story.fail("extra")
    story.complete("ocr")
    story.run("finish_processing")
    assert story.job() is JobStatus.PARTIAL_SUCCESS


def test_failed_dependencies_cause_dependent_steps_to_be_skipped(world: World) -> None:
    assert broken_budget(world, "skip_dependents").steps()["validation"] is StepStatus.SKIPPED


def test_a_job_can_be_retried_as_a_whole_or_from_a_step(world: World) -> None:
    story = broken_budget(world, "skip_dependents")
    story.finish()
    story.rerun("budget")
    assert (story.job(), story.steps()["vendor"]) == (JobStatus.PENDING, StepStatus.COMPLETED)
    story.finish()
    assert story.job() is JobStatus.COMPLETED
    story.rerun()
    assert set(story.steps().values()) <= {StepStatus.PENDING, StepStatus.READY}


def test_ocr_extraction_failing_means_that_there_is_no_data_to_process(world: World) -> None:
    """The example of fail_job."""
    ended = run(world, IMPORT.replace("ocr, type: look", "ocr, type: break"))
    others = {status for key, status in ended.steps.items() if key != "ocr"}
    assert (ended.status, ended.steps["ocr"], others) == ("FAILED", "FAILED", {"SKIPPED"})
    assert notes(world, ended) == []


def test_sending_a_notification_fails_but_does_not_stop_processing(world: World) -> None:
    """The example of continue: what depends on the notification runs, and the transaction is ready."""
    template = (
        HEAD
        + """\
  - {step_key: notification, type: break, on_failure_action: continue}
  - {step_key: after, type: look, depends_on: [notification], processor_method: note}
"""
        + FINISH
    )
    ended = run(world, template)
    assert (ended.status, ended.steps["notification"]) == ("PARTIAL_SUCCESS", "FAILED")
    assert notes(world, ended) == ["after", "Ready"]
