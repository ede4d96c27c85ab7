"""What the processing architecture says of statuses and progress; where Docmill decides otherwise, the name says so."""

from docmill.model.statuses import FINISHED_JOBS, JOB_TRANSITIONS, JobStatus, StepStatus
from docmill.testing.world import World
from tests.contract.stories import Story
from tests.contract.transactions import FINISH, HEAD, TWO, run


def test_the_job_statuses_are_those_of_the_specification_and_waiting_and_cancelled() -> None:
    specified = {"PENDING", "IN_PROGRESS", "COMPLETED", "FAILED", "PARTIAL_SUCCESS"}
    assert set(JobStatus) == specified | {"WAITING", "CANCELLED"}


def test_the_step_statuses_are_those_of_the_specification_and_waiting_and_cancelled() -> None:
    specified = {"PENDING", "READY", "IN_PROGRESS", "COMPLETED", "FAILED", "SKIPPED"}
    assert set(StepStatus) == specified | {"WAITING", "CANCELLED"}


def test_a_job_is_pending_when_it_is_created_and_waits_to_start(world: World) -> None:
    assert Story(world, TWO).job() is JobStatus.PENDING


def test_a_job_is_in_progress_when_at_least_one_step_is_running(world: World) -> None:
    story = Story(world, TWO)
    story.claim()
    assert story.job() is JobStatus.IN_PROGRESS


def test_a_job_is_completed_when_all_steps_finished_successfully(world: World) -> None:
    story = Story(world, TWO)
    story.finish()
    assert (story.job(), set(story.steps().values())) == (JobStatus.COMPLETED, {StepStatus.COMPLETED})


def test_a_job_is_failed_when_a_critical_step_failed(world: World) -> None:
    story = Story(world, TWO)
    story.claim()
    story.complete("extra")
    story.fail("ocr")
    assert story.job() is JobStatus.FAILED


def test_a_job_is_failed_when_all_steps_failed(world: World) -> None:
    story = Story(world, TWO.replace("type: look}", "type: look, optional: true}"))
    story.claim()
    story.fail("ocr", "extra")
    story.finish()
    assert story.job() is JobStatus.FAILED


def test_a_job_is_a_partial_success_when_some_optional_steps_failed(world: World) -> None:
    story = Story(world, TWO)
    story.claim()
    story.complete("ocr")
    story.fail("extra")
    story.finish()
    assert story.job() is JobStatus.PARTIAL_SUCCESS


def test_a_step_is_pending_ready_in_progress_and_completed_in_turn(world: World) -> None:
    story = Story(
        world, HEAD + "  - {step_key: a, type: look}\n  - {step_key: b, type: look, depends_on: [a]}\n" + FINISH
    )
    assert story.steps()["b"] is StepStatus.PENDING, "its dependencies are not met"
    story.run("a")
    assert story.steps()["b"] is StepStatus.READY, "its dependencies are satisfied"
    story.claim()
    assert story.steps()["b"] is StepStatus.IN_PROGRESS
    story.complete("b")
    assert story.steps()["b"] is StepStatus.COMPLETED


def test_progress_is_settled_steps_over_all_steps_so_that_a_finished_job_shows_one_hundred_per_cent(
    world: World,
) -> None:
    """The architecture counts completed steps only."""
    story = Story(world, TWO)
    assert story.progress() == 0
    story.claim()
    story.fail("extra")
    assert story.progress() == 1 / 3
    story.complete("ocr")
    assert story.progress() == 2 / 3
    story.finish()
    assert (story.progress(), story.job()) == (1, JobStatus.PARTIAL_SUCCESS)


def test_a_job_goes_from_pending_to_in_progress_to_completed_failed_or_partial_success() -> None:
    """The arrows of the status flow, and none that leads past them."""
    ends = {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.PARTIAL_SUCCESS}
    assert JOB_TRANSITIONS[JobStatus.PENDING] == {JobStatus.IN_PROGRESS, JobStatus.CANCELLED}
    assert ends <= JOB_TRANSITIONS[JobStatus.IN_PROGRESS]
    assert ends | {JobStatus.CANCELLED} == FINISHED_JOBS


def test_a_step_is_failed_when_its_execution_failed(world: World) -> None:
    story = Story(world, TWO)
    story.claim()
    story.fail("extra")
    assert story.steps()["extra"] is StepStatus.FAILED


def test_a_step_is_skipped_when_its_condition_is_not_met_or_its_dependency_failed(world: World) -> None:
    template = (
        HEAD
        + """\
  - {step_key: unwanted, type: look, condition: metadata.kind == 'large'}
  - {step_key: broken, type: break, optional: true}
  - {step_key: dependent, type: look, depends_on: [broken]}
"""
        + FINISH
    )
    ended = run(world, template)
    reasons = {key: world.steps(ended.job_id)[key].reason for key in ("unwanted", "dependent")}
    assert (ended.steps["unwanted"], ended.steps["dependent"]) == ("SKIPPED", "SKIPPED")
    assert reasons == {"unwanted": "condition", "dependent": "dependency_failed"}
