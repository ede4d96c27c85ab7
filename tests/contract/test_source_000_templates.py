"""What source 000, the Processing Architecture, says of templates, steps, statuses, failures and processors.

A test for each statement, named after it. Where the design decides otherwise (design §10) the name says so.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from sqlalchemy import text

from docmill.model.statuses import FailureAction, JobStatus, StepKind, StepStatus
from docmill.plugin import (
    ApplyContext,
    Database,
    PermanentError,
    RetryableError,
    StepContext,
    entity_loader,
    processor,
    step,
)
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.faults import TemplateInvalid
from docmill.testing.samples import Draft, make_plan
from docmill.testing.world import World
from tests.contract.stories import Ended, Story, plan_of, run_job

HERE = sys.modules[__name__]

HEAD = "name: import\nprocessable_type: transaction\nservice_name: transaction\nsteps:\n"
FINISH = "  - {step_key: finish_processing, type: FinishProcessing, processor_method: finishTransactionProcessing}\n"

IMPORT = (
    HEAD
    + """\
  - {step_key: ocr, type: look, processor_method: note}
  - {step_key: classification, type: look, depends_on: [ocr], processor_method: note}
  - {step_key: extraction, type: look, depends_on: [classification], processor_method: note}
  - {step_key: budget, type: meet, depends_on: [extraction], optional: true, processor_method: note}
  - {step_key: vendor, type: meet, depends_on: [extraction], optional: true, processor_method: note}
"""
    + FINISH
)
"""The transaction import of "Template Structure"."""

_arrived: dict[str, asyncio.Event] = {}
_finishing: Counter[str] = Counter()


@step("look")
async def look(ctx: StepContext, entity: Mapping[str, object]) -> dict[str, object]:
    """Tells what it saw of the entity."""
    return {"saw": entity["notes"], "kind": ctx.metadata.get("kind"), "value": 7}


@step("meet")
async def meet(ctx: StepContext, entity: Mapping[str, object]) -> dict[str, object]:
    """Ends only when a second step of its job runs at the same time."""
    other = _arrived.pop(ctx.job_id, None)
    if other is None:
        other = _arrived[ctx.job_id] = asyncio.Event()
        await other.wait()
    other.set()
    return {"saw": entity["notes"]}


@step("tell")
async def tell(ctx: StepContext, input: Mapping[str, object]) -> dict[str, object]:
    """Gives back what it was given."""
    return dict(input)


@step("break")
async def fail(ctx: StepContext) -> None:
    """Never works."""
    raise PermanentError("The page is blank.")


def _note(ctx: ApplyContext, what: str) -> None:
    known = ctx.db.execute("select count(*) from notes where entity_id = :id", {"id": ctx.entity_id}).scalar()
    row = {"id": ctx.entity_id, "place": known, "note": what}
    ctx.db.execute("insert into notes (entity_id, place, note) values (:id, :place, :note)", row)


@processor("transaction", "note")
def note(ctx: ApplyContext, result: object) -> None:
    """Writes to the entity that this step was here."""
    _note(ctx, ctx.step_key)


@processor("transaction", "noteLarge")
def note_large(ctx: ApplyContext, result: object) -> None:
    """The same for large ones."""
    _note(ctx, f"large {ctx.step_key}")


@processor("budget", "note")
def note_budget(ctx: ApplyContext, result: object) -> None:
    """Of the same name in another service."""
    _note(ctx, f"budget {ctx.step_key}")


@processor("transaction", "finishTransactionProcessing")
def finish_transaction(ctx: ApplyContext, result: object) -> None:
    """The task-specific end of a transaction."""
    _note(ctx, "Ready")


@processor("transaction", "finishReluctantly")
def finish_reluctantly(ctx: ApplyContext, result: object) -> None:
    """Writes, and fails at the first attempt: asked the fast way and then the full way."""
    _note(ctx, "Ready")
    _finishing[ctx.job_id] += 1
    if _finishing[ctx.job_id] <= 2:
        raise RetryableError("Not yet.", retry_after=0.0)


@processor("transaction", "finishNever")
def finish_never(ctx: ApplyContext, result: object) -> None:
    """Writes, and fails."""
    _note(ctx, "Ready")
    raise PermanentError("The books are closed.")


@entity_loader("transaction")
def load_transaction(db: Database, entity_id: str) -> Mapping[str, object]:
    """The transaction with everything noted about it."""
    found = db.execute("select note from notes where entity_id = :id order by place", {"id": entity_id})
    return {"notes": list(found.scalars())}


@pytest.fixture(autouse=True)
def notes_table(request: pytest.FixtureRequest) -> Iterator[None]:
    if "world" not in request.fixturenames:
        yield
        return
    world: World = request.getfixturevalue("world")
    with world.database.write() as connection:
        connection.execute(text("create table notes (entity_id text, place int, note text)"))
    yield
    _arrived.clear()


def run(world: World, template: str, **fields: object) -> Ended:
    return run_job(world, template, HERE, **fields)


def notes(world: World, ended: Ended) -> list[str]:
    with world.looking() as connection:
        query = text("select note from notes where entity_id = :id order by place")
        return list(connection.execute(query, {"id": ended.entity_id}).scalars())


def faults(template: str) -> set[str]:
    with pytest.raises(TemplateInvalid) as refused:
        compile_template(template, catalogue=Catalogue.permissive())
    return {fault.code for fault in refused.value.faults}


# Mandatory Finish Processing Step


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
    assert _finishing[ended.job_id] > 1
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


# Step Execution


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


# Status Tracking

TWO = HEAD + "  - {step_key: ocr, type: look}\n  - {step_key: extra, type: look, optional: true, group: 1}\n" + FINISH


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
    """The specification counts completed steps only; see design §10."""
    story = Story(world, TWO)
    assert story.progress() == 0
    story.claim()
    story.fail("extra")
    assert story.progress() == 1 / 3
    story.complete("ocr")
    assert story.progress() == 2 / 3
    story.finish()
    assert (story.progress(), story.job()) == (1, JobStatus.PARTIAL_SUCCESS)


# Error Handling: failure action types

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
    """The specification skips direct dependents only; a dependent of a skipped step cannot run, see design §10."""
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


# Dynamic Processor System


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
    ended = run_job(world, plan, HERE)
    assert ended.status == "FAILED"
    assert "knows no processor transaction.nobody" in world.steps(ended.job_id)["ocr"].error["message"]


# Database Schema: a job refers to its template


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
