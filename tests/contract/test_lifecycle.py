"""Failing, retrying, waiting, cancelling and running again, as the database remembers them."""

from datetime import timedelta

from docmill.db.tables.workers import WorkerStatus
from docmill.engine.batch import Batch, Part, Report, StepRun
from docmill.engine.events import Cancelled, Checkpointed, Completed, Failed, Rerun, Skipped, Suspended
from docmill.model.ids import derived_id
from docmill.model.statuses import FailureAction, StepKind
from docmill.testing.oracle import START
from docmill.testing.samples import Draft, chain, diamond, fan_out, make_plan, single_step
from docmill.testing.world import ANN, BOB, Clock, World, lease, timed

ERROR = '{"code":"no_luck","message":"it \\"rained\\""}'


def store_part(world: World, run: StepRun, name: str, value: str) -> bool:
    batch = Batch(parts=[Part(job_id=run.job.id, **lease(run), name=name, value=value)])
    return world.commit(batch).parts_accepted[0]


def test_a_failed_attempt_is_tried_again_when_its_delay_has_passed(world: World) -> None:
    clock = Clock(START)
    timed(world.store, clock)
    job_id = world.submit(single_step())
    run = world.claim_one()
    assert world.report(job_id, Failed(**lease(run), error=ERROR, jitter=0.5)) == (True,)
    step = world.steps(job_id)["a"]
    assert (step.status, step.failures, step.due_at) == ("READY", 1, START + timedelta(seconds=12.5))
    assert step.error == {"code": "no_luck", "message": 'it "rained"'}
    assert world.claim() == ()
    clock.advance(12.5)
    assert world.complete(world.claim_one())
    assert world.steps(job_id)["a"].error is None


def test_a_retry_after_is_honoured(world: World) -> None:
    clock = Clock(START)
    timed(world.store, clock)
    job_id = world.submit(single_step())
    run = world.claim_one()
    world.report(job_id, Failed(**lease(run), error=ERROR, retry_after=77.0))
    assert world.steps(job_id)["a"].due_at == START + timedelta(seconds=77)


def test_a_permanent_failure_ends_the_job_and_skips_what_had_not_begun(world: World) -> None:
    job_id = world.submit(chain(3))
    run = world.claim_one()
    outcome = world.commit(
        Batch(reports=[Report(job_id=job_id, event=Failed(**lease(run), error=ERROR, permanent=True))])
    )
    assert outcome.finished == (job_id,)
    assert world.statuses(job_id) == {"s0": "FAILED", "s1": "SKIPPED", "s2": "SKIPPED", "finish": "SKIPPED"}
    assert (world.job(job_id).status, world.job(job_id).settled) == ("FAILED", 4)
    assert world.events(job_id)[-1].data["errors"]["s0"]["code"] == "no_luck"


def test_a_tolerated_failure_makes_a_partial_success(world: World) -> None:
    tolerated = Draft(key="a", on_failure=FailureAction.CONTINUE, max_attempts=1)
    job_id = world.submit(make_plan([tolerated, Draft(key="b")]))
    bad, good = world.claim()
    world.report(job_id, Failed(**lease(bad), error=ERROR), Completed(**lease(good)))
    world.run_to_end()
    assert world.job(job_id).status == "PARTIAL_SUCCESS"


def test_a_step_whose_condition_does_not_hold_is_skipped_and_the_job_goes_on(world: World) -> None:
    job_id = world.submit(chain(2))
    run = world.claim_one()
    assert world.report(job_id, Skipped(**lease(run))) == (True,)
    world.run_to_end()
    assert world.steps(job_id)["s0"].reason == "condition"
    assert world.job(job_id).status == "COMPLETED"


def test_a_failing_apply_keeps_its_result_and_repeats_only_apply(world: World) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    world.report(job_id, Failed(**lease(run), error=ERROR, result='{"paid":1}', retry_after=0.0))
    again = world.claim_one()
    assert again.state.checkpointed
    assert world.complete(again, None)
    assert world.steps(job_id)["a"].result == {"paid": 1}


def test_a_checkpoint_outlives_the_worker_that_wrote_it(world: World) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    assert world.report(job_id, Checkpointed(**lease(run), result='{"paid":1}')) == (True,)
    world.set_worker(ANN, WorkerStatus.DEAD)
    world.sweep(own=BOB)
    again = world.claim_one(worker=BOB)
    assert (again.state.checkpointed, again.state.crashes) == (True, 1)
    assert world.complete(again, None)
    assert world.steps(job_id)["a"].result == {"paid": 1}


def test_a_part_is_stored_once_and_its_first_value_stays(world: World) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    assert store_part(world, run, "page 1", '"first"')
    assert store_part(world, run, "page 1", '"second"')
    assert store_part(world, run, 'page "2", {x}', '{"n": 1.0}')
    assert world.parts(job_id) == {(0, "page 1"): "first", (0, 'page "2", {x}'): {"n": 1.0}}


def test_many_parts_of_many_steps_are_stored_in_one_transaction(world: World) -> None:
    job_id = world.submit(fan_out(3))
    parts = [Part(job_id=job_id, **lease(run), name=f"p{n}", value=str(n)) for run in world.claim() for n in range(100)]
    assert all(world.commit(Batch(parts=parts)).parts_accepted)
    assert len(world.parts(job_id)) == 300


def test_parts_outlive_the_worker_that_wrote_them(world: World) -> None:
    job_id = world.submit(single_step())
    store_part(world, world.claim_one(), "page 1", "1")
    world.set_worker(ANN, WorkerStatus.DEAD)
    world.sweep(own=BOB)
    again = world.claim_one(worker=BOB)
    assert store_part(world, again, "page 2", "2")
    assert set(world.parts(job_id)) == {(0, "page 1"), (0, "page 2")}


def test_follow_ups_are_submitted_with_the_completion_and_once(world: World) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    follow_up = world.new_job(chain(2), id=derived_id("follow-up", job_id))
    report = Report(job_id=job_id, event=Completed(**lease(run)), follow_ups=(follow_up,))
    assert world.commit(Batch(reports=[report])).submitted == 1
    # The answer was lost and the report comes again.
    again = world.commit(Batch(reports=[report]))
    assert (again.accepted, again.submitted) == ((True,), 0)
    assert world.count() == 2
    assert world.job(follow_up.id).status == "PENDING"


def test_a_suspended_step_waits_for_its_answer(world: World) -> None:
    job_id = world.submit(make_plan([Draft(key="ask", kind=StepKind.HUMAN)]))
    run = world.claim_one(queue="human")
    deadline = START + timedelta(days=36500)
    world.report(job_id, Suspended(**lease(run), deadline=deadline, result='{"question":1}'))
    step = world.steps(job_id)["ask"]
    assert (world.job(job_id).status, step.deadline_at, step.worker_id) == ("WAITING", deadline, None)
    assert step.result == {"question": 1}
    assert world.report(job_id, Completed(**lease(run), result='{"answer":2}')) == (True,)
    assert world.steps(job_id)["ask"].result == {"answer": 2}
    assert world.job(job_id).status == "IN_PROGRESS"


def test_cancel_works_at_any_moment(world: World) -> None:
    running, waiting, begun = (world.submit(diamond()) for _ in range(3))
    runs = {run.job.id: run for run in world.claim()}
    world.report(waiting, Suspended(**lease(runs[waiting]), deadline=None))
    world.complete(runs[begun])
    fresh = world.submit(diamond())
    for job_id in (fresh, running, waiting, begun):
        assert world.report(job_id, Cancelled()) == (True,)
        assert world.job(job_id).status == "CANCELLED"
        assert world.report(job_id, Cancelled()) == (False,)
    assert world.statuses(begun) == {"a": "COMPLETED", **dict.fromkeys(("b", "c", "d", "finish"), "CANCELLED")}
    assert world.claim() == ()


def finished_with_checkpoint(world: World) -> str:
    job_id = world.submit(chain(2))
    run = world.claim_one()
    store_part(world, run, "page 1", "1")
    world.report(job_id, Completed(**lease(run), result='"paid"', paid=True))
    world.complete(world.claim_one(), '"free"')
    world.run_to_end()
    assert world.job(job_id).status == "COMPLETED"
    return job_id


def test_a_rerun_keeps_checkpoints_and_parts(world: World) -> None:
    job_id = finished_with_checkpoint(world)
    assert world.report(job_id, Rerun(positions=frozenset({0, 1}))) == (True,)
    job, steps = world.job(job_id), world.steps(job_id)
    assert (job.status, job.run, job.settled, job.finished_at) == ("PENDING", 2, 0, None)
    assert (steps["s0"].checkpointed, steps["s0"].result) == (True, "paid")
    assert (steps["s1"].checkpointed, steps["s1"].result) == (False, None)
    assert world.parts(job_id) == {(0, "page 1"): 1}
    world.run_to_end()
    assert world.job(job_id).status == "COMPLETED"


def test_a_rerun_drops_checkpoints_and_parts_when_told_to(world: World) -> None:
    job_id = finished_with_checkpoint(world)
    assert world.report(job_id, Rerun(positions=frozenset({0}), keep_checkpoints=False)) == (True,)
    steps = world.steps(job_id)
    assert [(steps[key].checkpointed, steps[key].result) for key in ("s0", "s1")] == [(False, None)] * 2
    assert world.parts(job_id) == {}


def test_a_rerun_of_a_later_step_leaves_the_earlier_ones_alone(world: World) -> None:
    job_id = finished_with_checkpoint(world)
    world.report(job_id, Rerun(positions=frozenset({1}), keep_checkpoints=False))
    assert world.statuses(job_id) == {"s0": "COMPLETED", "s1": "READY", "finish": "PENDING"}
    assert world.parts(job_id) == {(0, "page 1"): 1}


def test_a_running_job_is_not_rerun(world: World) -> None:
    job_id = world.submit(single_step())
    assert world.report(job_id, Rerun(positions=frozenset({0}))) == (False,)
