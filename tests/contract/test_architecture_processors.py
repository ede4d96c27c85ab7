"""What the processing architecture says of processors: who gets a result, and what becomes of it."""

from types import ModuleType

import pytest

from docmill.plugin import ApplyContext, processor
from docmill.testing.world import World
from tests.contract.stories import plan_of
from tests.contract.transactions import FINISH, HEAD, note_large, notes, run


@pytest.mark.parametrize(("service", "noted"), [("transaction", "ocr"), ("budget", "budget ocr")])
def test_a_result_is_routed_by_the_templates_service_name_and_the_steps_processor_method(
    world: World, service: str, noted: str
) -> None:
    finish = "  - {step_key: finish, type: FinishProcessing}\n"
    head = HEAD.replace("service_name: transaction", f"service_name: {service}")
    ended = run(world, head + "  - {step_key: ocr, type: look, processor_method: note}\n" + finish)
    assert (ended.status, notes(world, ended)) == ("COMPLETED", [noted])


def test_a_step_without_a_processor_method_keeps_its_result_and_changes_nothing(world: World) -> None:
    ended = run(world, HEAD + "  - {step_key: ocr, type: look}\n" + FINISH)
    assert notes(world, ended) == ["Ready"]
    assert ended.results["ocr"] == {"saw": [], "kind": None, "value": 7}


@pytest.mark.parametrize(
    ("kind", "noted"), [("large", ["large ocr", "Ready"]), ("small", ["ocr", "Ready"]), ("odd", ["Ready"])]
)
def test_the_processor_is_chosen_by_the_result(world: World, kind: str, noted: list[str]) -> None:
    choice = "[{when: result.kind == 'large', method: noteLarge}, {when: result.kind == 'small', method: note}]"
    template = HEAD + f"  - {{step_key: ocr, type: look, processor_method: {choice}}}\n" + FINISH
    ended = run(world, template, metadata={"kind": kind})
    assert (ended.status, notes(world, ended)) == ("COMPLETED", noted)


def test_a_processor_that_is_unknown_where_the_step_runs_fails_it_and_says_so(world: World) -> None:
    plan = plan_of(HEAD + "  - {step_key: ocr, type: look, processor_method: nobody}\n" + FINISH)
    ended = run(world, plan)
    assert ended.status == "FAILED"
    assert "knows no processor transaction.nobody" in world.steps(ended.job_id)["ocr"].error["message"]


def test_a_new_processor_is_written_registered_and_configured_and_nothing_else_changes(world: World) -> None:
    """The three steps of adding one: a function, its place in a plug-in, its name in the template."""

    def process_new_step_type(ctx: ApplyContext, result: object) -> None:
        note_large(ctx, result)

    module = ModuleType("transaction_processors")
    module.process_new_step_type = processor("transaction", "processNewStepType")(process_new_step_type)  # type: ignore[attr-defined]
    template = HEAD + "  - {step_key: new_step, type: look, processor_method: processNewStepType}\n" + FINISH
    ended = run(world, template, module)
    assert (ended.status, notes(world, ended)) == ("COMPLETED", ["large new_step", "Ready"])


SAID = HEAD + "  - {step_key: ocr, type: say, processor_method: noteTotal}\n" + FINISH


def test_the_answer_of_a_model_is_parsed_from_the_message_of_the_result(world: World) -> None:
    ended = run(world, SAID, metadata={"said": '{"total": 12}'})
    assert (ended.status, notes(world, ended)) == ("COMPLETED", ["total 12", "Ready"])


def test_a_processor_of_a_step_without_result_data_has_nothing_to_do_and_succeeds(world: World) -> None:
    ended = run(world, SAID)
    assert (ended.status, notes(world, ended)) == ("COMPLETED", ["Ready"])


def test_a_processor_that_does_not_succeed_fails_its_step_and_leaves_nothing(world: World) -> None:
    """The architecture has processors return false; here they raise."""
    template = SAID.replace("type: say", "type: say, max_attempts: 1")
    ended = run(world, template, metadata={"said": "no JSON"})
    assert (ended.status, ended.steps["ocr"], notes(world, ended)) == ("FAILED", "FAILED", [])
    assert "JSONDecodeError" in world.steps(ended.job_id)["ocr"].error["message"]
