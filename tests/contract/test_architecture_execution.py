"""What the processing architecture says of execution groups and of the template a job runs by."""

import pytest

from docmill.model.errors import InvalidInput
from docmill.model.statuses import JobStatus
from docmill.services.submission import new_job
from docmill.services.templates import Templates
from docmill.testing.samples import Draft, make_plan
from docmill.testing.world import World, compiled
from tests.contract.stories import Story, plan_of
from tests.contract.transactions import FINISH, HEAD, IMPORT, run


def test_steps_are_processed_in_execution_groups_sequentially(world: World) -> None:
    story = Story(world, IMPORT)
    story.run("ocr")
    story.run("classification")
    story.run("extraction")
    story.run("budget", "vendor")
    story.run("finish_processing")
    assert story.job() is JobStatus.COMPLETED


def test_steps_within_the_same_group_execute_concurrently(world: World) -> None:
    """`meet` ends only when both run at once."""
    ended = run(world, IMPORT)
    assert (ended.steps["budget"], ended.steps["vendor"]) == ("COMPLETED", "COMPLETED")


def test_dependent_steps_see_the_database_updates_of_earlier_groups(world: World) -> None:
    """Fresh entity data after each group: a later group sees what an earlier group's processors wrote."""
    ended = run(world, IMPORT)
    saw = {key: result["saw"] for key, result in ended.results.items() if isinstance(result, dict) and "saw" in result}
    assert saw == {
        "ocr": [],
        "classification": ["ocr"],
        "extraction": ["ocr", "classification"],
        "budget": ["ocr", "classification", "extraction"],
        "vendor": ["ocr", "classification", "extraction"],
    }


def test_each_step_stores_results_for_use_by_subsequent_steps(world: World) -> None:
    second = "  - {step_key: second, type: tell, depends_on: [first], input: {got: results.first.value + 1}}\n"
    ended = run(world, HEAD + "  - {step_key: first, type: look}\n" + second + FINISH)
    assert ended.results["second"] == {"got": 8}


def test_steps_can_be_skipped_based_on_conditions(world: World) -> None:
    """The condition sees the entity as the group before left it."""
    template = (
        HEAD
        + """\
  - {step_key: first, type: look, processor_method: note}
  - {step_key: wanted, type: look, depends_on: [first], condition: "'first' in entity.notes"}
  - {step_key: unwanted, type: look, depends_on: [first], condition: "'other' in entity.notes"}
"""
        + FINISH
    )
    ended = run(world, template)
    assert (ended.status, ended.steps["wanted"], ended.steps["unwanted"]) == ("COMPLETED", "COMPLETED", "SKIPPED")


def test_a_job_keeps_the_template_version_it_was_created_with(world: World) -> None:
    """Begun under version 1 it ends by version 1's plan, and so does its rerun; new jobs take version 2."""
    old, new = (make_plan([Draft(key="ocr"), Draft(key=key, group=2)], name="import") for key in ("first", "second"))
    story = Story(world, old)
    story.run("ocr")
    newer = Story(world, new)
    assert world.job(story.job_id).template_id != world.job(newer.job_id).template_id
    story.finish()
    for each, keys in ((story, ["ocr", "first", "finish"]), (newer, ["ocr", "second", "finish"])):
        assert (each.job(), list(world.steps(each.job_id))) == (JobStatus.COMPLETED, keys)
    story.rerun()
    story.finish()
    assert list(world.steps(story.job_id)) == ["ocr", "first", "finish"]
    assert story.job() is JobStatus.COMPLETED


# Template Structure


def test_the_transaction_import_has_the_groups_orders_and_dependencies_of_the_example() -> None:
    plan = plan_of(IMPORT)
    tree = {
        step.step_key: (step.execution_group, [plan.steps[place].step_key for place in step.depends_on], step.optional)
        for step in plan.steps[:-1]
    }
    assert tree == {
        "ocr": (1, [], False),
        "classification": (2, ["ocr"], False),
        "extraction": (3, ["classification"], False),
        "budget": (4, ["extraction"], True),
        "vendor": (4, ["extraction"], True),
    }
    assert plan.positions["budget"] < plan.positions["vendor"], "order 1 and order 2 of their group"
    assert plan.steps[-1].step_key == "finish_processing"


# Processing Flow Orchestration


def test_the_processable_type_is_validated_before_a_job_is_created(world: World) -> None:
    template = Templates(world.database).register(compiled(plan_of(IMPORT)))
    with pytest.raises(InvalidInput, match="processes transaction, not budget"):
        new_job(template, "budget:7")
    assert new_job(template, "transaction:7").entity_type == "transaction"


@pytest.mark.parametrize(("processable_type", "saw"), [("transaction", []), ("budget", "of a budget")])
def test_the_data_of_an_entity_is_fetched_by_its_type(world: World, processable_type: str, saw: object) -> None:
    """One system, several entity types: the loader of the type is asked."""
    template = HEAD.replace("processable_type: transaction", f"processable_type: {processable_type}")
    ended = run(world, template + "  - {step_key: ocr, type: look}\n  - {step_key: end, type: FinishProcessing}\n")
    result = ended.results["ocr"]
    assert isinstance(result, dict)
    assert (ended.status, result["saw"]) == ("COMPLETED", saw)
