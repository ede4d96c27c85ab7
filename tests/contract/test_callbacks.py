"""Callbacks of the processing architecture: idempotent, order-free, checked, stored before they are acted on."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from docmill.db.tables import jobs as jobs_table
from docmill.engine import failpoints
from docmill.engine.batch import Batch, Part, StepRun
from docmill.engine.failpoints import FailpointRaised
from docmill.engine.follow_ups import follow_ups_to_part, part_name
from docmill.model.callbacks import CallbackOutcome as Outcome
from docmill.model.ids import derived_id
from docmill.model.statuses import StepKind
from docmill.plugin import FollowUp
from docmill.testing.samples import Draft, make_plan
from docmill.testing.world import OTHER_ORG, World
from tests.contract.outside import KEY, Outside, asking, changed, outside


@pytest.fixture
def out(world: World) -> Iterator[Outside]:
    with outside(world, {"signing": KEY, "trusting": None}) as opened:
        yield opened


def wants(out: Outside, run: StepRun, template: str) -> None:
    """What the runner keeps when a step asks for a follow-up job and then waits."""
    wanted = FollowUp(template=template, entity_type="document", entity_id=f"{run.job.id}-child")
    part = Part(
        job_id=run.job.id,
        position=run.step.position,
        epoch=run.state.epoch,
        name=part_name(run),
        value=follow_ups_to_part([wanted]),
    )
    assert out.world.commit(Batch(parts=[part])).parts_accepted == (True,)


@pytest.mark.parametrize("quick", [False, True], ids=["waiting", "quicker than its worker"])
def test_an_answer_submits_the_follow_ups_that_the_step_wanted_when_it_began_to_wait(out: Outside, quick: bool) -> None:
    out.world.template(make_plan([], name="child"))
    out.world.submit(asking("ask"))
    (run,) = out.world.claim(queue="external")
    wants(out, run, "child")
    if quick:
        assert out.receive(run).outcome is Outcome.RECEIVED
        assert out.suspend(run)
    else:
        assert out.suspend(run)
        assert out.receive(run).outcome is Outcome.APPLIED
    out.receive(run)
    with out.world.looking() as connection:
        children = select(jobs_table.c.entity_id).where(jobs_table.c.parent_job_id == run.job.id)
        assert list(connection.execute(children).scalars()) == [f"{run.job.id}-child"]


def test_an_answer_whose_follow_up_has_no_template_fails_the_step_and_says_so(out: Outside) -> None:
    out.world.submit(asking("ask"))
    (run,) = out.world.claim(queue="external")
    wants(out, run, "nowhere")
    assert out.suspend(run)
    assert out.receive(run).outcome is Outcome.APPLIED
    step = out.world.steps(run.job.id)["ask"]
    assert step.status == "FAILED"
    assert "nowhere" in step.error["message"]


def test_an_answer_completes_its_step_and_the_job_goes_on(out: Outside) -> None:
    run = out.one()
    answer = out.receive(run)
    assert (answer.success, answer.skipped, answer.outcome) == (True, False, Outcome.APPLIED)
    assert out.world.steps(run.job.id)["ask"].result == {"message": "forty-two"}
    assert out.world.statuses(run.job.id) == {"ask": "COMPLETED", "finish": "READY"}


def test_an_answer_with_a_processor_is_applied_by_a_worker(out: Outside) -> None:
    run = out.one(asking("ask", processor="save"))
    assert out.receive(run).outcome is Outcome.APPLIED
    step = out.world.steps(run.job.id)["ask"]
    assert (step.status, step.checkpointed, step.result) == ("READY", True, {"message": "forty-two"})
    (again,) = out.world.claim(queue="external")
    assert again.state.checkpointed


def test_the_next_group_is_ready_when_the_last_of_its_group_is_answered(out: Outside) -> None:
    drafts = [Draft(key="a", kind=StepKind.EXTERNAL), Draft(key="b", kind=StepKind.EXTERNAL), Draft(key="c", group=2)]
    job_id = out.world.submit(make_plan(drafts))
    first, second = out.send_out()
    out.receive(second)
    assert "c" not in out.world.statuses(job_id)
    out.receive(first)
    assert out.world.statuses(job_id)["c"] == "READY"


def test_completed_without_result_data_completes_the_step_with_no_result(out: Outside) -> None:
    run = out.one()
    answer = out.receive(run, resultData=None)
    assert (answer.success, answer.outcome) == (True, Outcome.APPLIED)
    assert (out.status(run), out.world.steps(run.job.id)["ask"].result) == ("COMPLETED", None)


def test_a_failure_is_retried_as_the_template_says(out: Outside) -> None:
    run = out.one(asking("ask", max_attempts=2))
    answer = out.receive(run, status="FAILED", errorMessage="Out of paper.")
    assert (answer.success, answer.outcome) == (True, Outcome.APPLIED)
    step = out.world.steps(run.job.id)["ask"]
    assert (step.status, step.failures) == ("READY", 1)
    assert step.error == {"code": "executor_failed", "message": "Out of paper.", "attempt": 1}
    (again,) = out.send_out()
    out.receive(again, status="FAILED")
    assert out.world.job(run.job.id).status == "FAILED"


def test_a_callback_for_a_completed_step_is_skipped(out: Outside) -> None:
    run = out.one()
    out.receive(run)
    before = out.world.state(run.job.id)
    answer = out.receive(run, resultData={"message": "another"})
    assert (answer.success, answer.skipped, answer.message) == (True, True, "Step already completed")
    assert out.outcomes() == ["applied", "duplicate"]
    assert out.world.state(run.job.id) == before
    assert out.world.steps(run.job.id)["ask"].result == {"message": "forty-two"}


def test_a_callback_for_an_answer_still_being_applied_is_skipped(out: Outside) -> None:
    run = out.one(asking("ask", processor="save"))
    out.receive(run)
    assert out.receive(run).outcome is Outcome.DUPLICATE
    (again,) = out.world.claim(queue="external")
    answer = out.receive(run)
    assert (answer.success, answer.skipped, answer.outcome) == (True, True, Outcome.DUPLICATE)
    assert out.world.complete(again, None)
    assert out.receive(run).message == "Step already completed"


def test_a_failure_after_the_answer_changes_nothing(out: Outside) -> None:
    run = out.one()
    out.receive(run)
    assert out.receive(run, status="FAILED").outcome is Outcome.DUPLICATE
    assert out.status(run) == "COMPLETED"


def test_an_answer_after_the_failure_is_too_late(out: Outside) -> None:
    run = out.one()
    out.receive(run, status="FAILED")
    answer = out.receive(run)
    assert (answer.success, answer.outcome, answer.code) == (False, Outcome.LATE, "token_spent")
    assert out.status(run) == "READY"


def test_answers_may_come_in_any_order(out: Outside) -> None:
    job_id = out.world.submit(asking("a", "b", "c"))
    a, b, c = out.send_out()
    for run in (c, a, b):
        assert out.receive(run).outcome is Outcome.APPLIED
    assert out.world.statuses(job_id)["finish"] == "READY"


def test_progress_is_noted_and_moves_nothing(out: Outside) -> None:
    run = out.one()
    before = out.world.state(run.job.id)
    answer = out.receive(run, status="IN_PROGRESS", resultData={"pages": 3})
    assert (answer.success, answer.outcome) == (True, Outcome.NOTED)
    assert out.world.state(run.job.id) == before
    out.receive(run)
    late = out.receive(run, status="IN_PROGRESS")
    assert (late.success, late.skipped, late.outcome) == (True, True, Outcome.DUPLICATE)
    assert late.message == "Step already completed"
    assert out.status(run) == "COMPLETED"


@pytest.mark.parametrize("job_id", ["not an id", derived_id("nobody")])
def test_an_unknown_job_is_stored_and_refused(out: Outside, job_id: str) -> None:
    answer = out.receive(out.one(), jobId=job_id)
    assert (answer.success, answer.outcome, answer.code) == (False, Outcome.UNKNOWN, "unknown_job")
    assert out.outcomes() == ["unknown"]


def test_an_unknown_step_is_stored_and_refused(out: Outside) -> None:
    run = out.one()
    answer = out.receive(run, stepKey="nobody")
    assert (answer.success, answer.outcome, answer.code) == (False, Outcome.UNKNOWN, "unknown_step")
    assert [row["job_id"] for row in out.stored()] == [run.job.id]


def test_a_step_that_does_not_wait_for_callbacks_has_none(out: Outside) -> None:
    run = out.one()
    answer = out.receive(run, stepKey="finish")
    assert (answer.outcome, answer.code) == (Outcome.REFUSED, "not_external")


def test_an_answer_that_is_quicker_than_its_dispatch_is_applied_when_the_step_waits(out: Outside) -> None:
    out.world.submit(asking("ask"))
    (run,) = out.world.claim(queue="external")
    answer = out.receive(run)
    assert (answer.success, answer.outcome) == (True, Outcome.RECEIVED)
    assert out.status(run) == "IN_PROGRESS"
    assert out.suspend(run)
    assert out.status(run) == "COMPLETED"
    assert out.outcomes() == ["applied"]


def test_of_several_quick_answers_the_first_counts(out: Outside) -> None:
    out.world.submit(asking("ask"))
    (run,) = out.world.claim(queue="external")
    for number in range(3):
        out.receive(run, resultData={"number": number})
    out.suspend(run)
    assert out.outcomes() == ["applied", "duplicate", "duplicate"]
    assert out.world.steps(run.job.id)["ask"].result == {"number": 0}


def test_a_quick_failure_is_applied_when_the_step_waits(out: Outside) -> None:
    out.world.submit(asking("ask"))
    (run,) = out.world.claim(queue="external")
    assert out.receive(run, status="FAILED").outcome is Outcome.RECEIVED
    out.suspend(run)
    assert (out.status(run), out.world.steps(run.job.id)["ask"].failures) == ("READY", 1)


def test_what_a_receiver_left_behind_is_found_by_the_sweeper(out: Outside) -> None:
    run = out.one()
    failpoints.arm("callback.stored:1:raise")
    try:
        with pytest.raises(FailpointRaised):
            out.receive(run)
    finally:
        failpoints.arm(None)
    assert (out.outcomes(), out.status(run)) == (["received"], "WAITING")
    sweep = out.world.sweep()
    assert out.status(run) == "COMPLETED"
    assert out.outcomes() == ["applied"]
    assert "system" in sweep.left_ready


def test_the_sweeper_leaves_answers_alone_whose_step_is_being_sent(out: Outside) -> None:
    out.world.submit(asking("ask"))
    (run,) = out.world.claim(queue="external")
    out.receive(run)
    out.world.sweep()
    assert out.outcomes() == ["received"]


def test_an_answer_in_time_counts_though_its_receiver_died_and_the_deadline_passed(out: Outside) -> None:
    out.world.submit(asking("ask"))
    (run,) = out.send_out(within=-1.0)
    failpoints.arm("callback.stored:1:raise")
    try:
        with pytest.raises(FailpointRaised):
            out.receive(run)
    finally:
        failpoints.arm(None)
    out.world.sweep()
    assert out.status(run) == "COMPLETED"


def test_the_token_and_refused_data_are_not_stored(out: Outside) -> None:
    run = out.one()
    out.receive(run, token="nonsense", resultData={"secret": "x" * 1000}, errorMessage="y" * 1000)
    out.receive(run)
    refused, applied = (str(row["payload"]) for row in out.stored())
    assert "xxx" not in refused
    assert len(refused) < 600
    assert "forty-two" in applied
    assert out.token(run) not in applied + refused


def test_stored_callbacks_can_be_listed(out: Outside) -> None:
    run = out.one()
    out.callbacks.receive(out.payload(run), now=datetime.now(UTC), headers={"Webhook-Id": "msg_1"})
    out.receive(run)
    found = out.callbacks.list(run.job.id.upper())
    assert [(view.message_id, view.step_key, view.outcome) for view in found] == [
        ("msg_1", "ask", Outcome.APPLIED),
        (None, "ask", Outcome.DUPLICATE),
    ]
    assert all(view.settled_at is not None for view in found)
    assert out.callbacks.list(run.job.id, org_id=OTHER_ORG) == []
    assert out.callbacks.list("nobody") == []


def test_an_answer_against_the_output_schema_is_a_failed_attempt(out: Outside) -> None:
    schema = {"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}
    run = out.one(changed(asking("ask"), output_schema=schema))
    assert out.receive(run, resultData={"total": "a lot"}).outcome is Outcome.APPLIED
    step = out.world.steps(run.job.id)["ask"]
    assert (step.status, step.failures, step.error["code"]) == ("READY", 1, "output_invalid")
    assert "total" in step.error["message"]
    (again,) = out.send_out()
    out.receive(again, resultData={"total": 5})
    assert out.status(run) == "COMPLETED"
