"""What the processing architecture says of the finish step, statement by statement."""

import pytest

from docmill.model.statuses import JobStatus, StepKind
from docmill.testing.world import World
from tests.contract.stories import Story, plan_of
from tests.contract.transactions import FINISH, HEAD, IMPORT, faults, finishing, notes, run


def test_every_template_must_include_a_finish_processing_step() -> None:
    assert faults(HEAD + "  - {step_key: ocr, type: look}\n") == {"finish_missing"}


def test_the_finish_step_is_the_final_step() -> None:
    assert faults(HEAD + FINISH + "  - {step_key: ocr, type: look}\n") == {"finish_not_last"}
    plan = plan_of(IMPORT)
    assert plan.groups[-1] == (plan.finish,)


@pytest.mark.parametrize("processable_type", ["transaction", "script", "scene", "schedule"])
def test_finish_processing_applies_to_all_task_types(world: World, processable_type: str) -> None:
    template = (HEAD + FINISH).replace("processable_type: transaction", f"processable_type: {processable_type}")
    ended = run(world, template)
    assert (ended.status, notes(world, ended)) == ("COMPLETED", ["Ready"])


def test_finish_processing_runs_after_all_other_steps_complete_successfully(world: World) -> None:
    ended = run(world, IMPORT)
    assert ended.status == "COMPLETED"
    *others, last = notes(world, ended)
    assert (sorted(others), last) == (["budget", "classification", "extraction", "ocr", "vendor"], "Ready")
    rows = world.steps(ended.job_id)
    assert rows["finish_processing"].started_at >= max(rows[key].finished_at for key in others)


def test_finish_processing_triggers_final_status_updates_in_the_application(world: World) -> None:
    ended = run(world, HEAD + FINISH)
    assert notes(world, ended) == ["Ready"]


def test_finish_processing_does_not_require_ai_processing_it_is_a_system_step() -> None:
    assert plan_of(IMPORT).step("finish_processing").kind is StepKind.SYSTEM
    assert "finish_kind" in faults(HEAD + FINISH.replace("{", "{kind: ai, "))


def test_finish_processing_enables_task_specific_completion_logic_through_processor_methods(world: World) -> None:
    ended = run(world, HEAD + FINISH.replace("finishTransactionProcessing", "noteLarge"))
    assert notes(world, ended) == ["large finish_processing"]


def test_the_finish_method_is_applied_exactly_once_though_it_fails_at_first(world: World) -> None:
    ended = run(world, HEAD + FINISH.replace("finishTransactionProcessing", "finishReluctantly"))
    assert finishing[ended.job_id] > 1
    assert (ended.status, notes(world, ended)) == ("COMPLETED", ["Ready"])


def test_the_finish_method_is_applied_when_some_optional_steps_failed(world: World) -> None:
    ended = run(world, IMPORT.replace("budget, type: meet", "budget, type: break").replace("type: meet", "type: look"))
    assert (ended.status, ended.steps["budget"]) == ("PARTIAL_SUCCESS", "FAILED")
    assert notes(world, ended) == ["ocr", "classification", "extraction", "vendor", "Ready"]


def test_the_finish_method_is_not_applied_when_the_job_failed(world: World) -> None:
    ended = run(world, IMPORT.replace("extraction, type: look", "extraction, type: break"))
    assert (ended.status, ended.steps["finish_processing"]) == ("FAILED", "SKIPPED")
    assert notes(world, ended) == ["ocr", "classification"]


def test_a_finish_method_that_fails_leaves_nothing_and_fails_the_job(world: World) -> None:
    ended = run(world, HEAD + FINISH.replace("finishTransactionProcessing", "finishNever"))
    assert (ended.status, ended.steps["finish_processing"], notes(world, ended)) == ("FAILED", "FAILED", [])


def test_the_job_is_marked_complete_when_the_finish_step_succeeds(world: World) -> None:
    story = Story(world, HEAD + "  - {step_key: ocr, type: look}\n" + FINISH)
    story.run("ocr")
    assert story.job() is JobStatus.IN_PROGRESS
    story.run("finish_processing")
    assert story.job() is JobStatus.COMPLETED


def test_the_example_configuration_of_a_finish_step_is_accepted_as_written() -> None:
    finish = """\
  - step_key: finish_processing
    display_name: Finish Processing
    execution_group: 5
    depends_on: [all_previous_steps]
    type: FinishProcessing
    processor_method: finishTransactionProcessing
"""
    plan = plan_of(IMPORT.replace(FINISH, finish))
    step = plan.step("finish_processing")
    assert (step.display_name, step.execution_group) == ("Finish Processing", 5)
    assert step.depends_on == tuple(range(5))
    assert step.processor[0].method == "finishTransactionProcessing"
