"""No write is accepted under a lease that is no longer the step's own."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from docmill.db.tables.workers import WorkerStatus
from docmill.engine.batch import Batch, Part, Report, StepRun
from docmill.engine.events import (
    Cancelled,
    Checkpointed,
    Completed,
    Crashed,
    Deferred,
    Event,
    Failed,
    Released,
    Rerun,
    Skipped,
    Suspended,
)
from docmill.model.ids import derived_id
from docmill.testing.oracle import START
from docmill.testing.samples import chain, diamond, single_step
from docmill.testing.world import ANN, BOB, World, lease

LATE: dict[str, Callable[[StepRun], Event]] = {
    "complete": lambda run: Completed(**lease(run), result='"late"'),
    "checkpoint": lambda run: Checkpointed(**lease(run), result='"late"'),
    "fail": lambda run: Failed(**lease(run), error='"late"', result='"late"'),
    "skip": lambda run: Skipped(**lease(run)),
    "defer": lambda run: Deferred(**lease(run), until=START),
    "suspend": lambda run: Suspended(**lease(run), deadline=None, result='"late"'),
    "crash": lambda run: Crashed(**lease(run)),
    "release": lambda run: Released(**lease(run)),
}


def swept(world: World, run: StepRun) -> None:
    world.set_worker(ANN, WorkerStatus.DEAD)
    assert world.sweep(own=BOB).recovered == 1


def swept_and_claimed_anew(world: World, run: StepRun) -> None:
    swept(world, run)
    assert world.claim_one(worker=BOB).state.epoch == run.state.epoch + 2


def cancelled(world: World, run: StepRun) -> None:
    assert world.report(run.job.id, Cancelled()) == (True,)


def cancelled_and_rerun(world: World, run: StepRun) -> None:
    cancelled(world, run)
    assert world.report(run.job.id, Rerun(positions=frozenset({run.step.position}))) == (True,)


def failed_and_retried(world: World, run: StepRun) -> None:
    assert world.report(run.job.id, Failed(**lease(run), error="{}", retry_after=0.0)) == (True,)
    assert len(world.claim(worker=BOB)) == 1


LOSSES = (swept, swept_and_claimed_anew, cancelled, cancelled_and_rerun, failed_and_retried)


@pytest.mark.parametrize("lose", LOSSES, ids=lambda function: function.__name__)
def test_whatever_a_worker_reports_after_it_lost_the_step_is_void(
    world: World, lose: Callable[[World, StepRun], None]
) -> None:
    job_id = world.submit(chain(2))
    run = world.claim_one()
    lose(world, run)
    before, events = world.state(job_id), world.events(job_id)
    follow_up = world.new_job(single_step(), id=derived_id("late"))
    for name, event in LATE.items():
        report = Report(job_id=job_id, event=event(run), follow_ups=(follow_up,))
        part = Part(job_id=job_id, **lease(run), name="late", value="1")
        outcome = world.commit(Batch(reports=[report], parts=[part], worker=ANN, reserve=lambda queue: True))
        assert (outcome.accepted, outcome.parts_accepted, outcome.started) == ((False,), (False,), ()), name
    assert world.state(job_id) == before
    assert world.events(job_id) == events
    assert world.steps(job_id)["s0"].result is None
    assert world.parts(job_id) == {}
    assert world.count() == 1


def test_a_lost_report_takes_none_of_its_neighbours_with_it(world: World) -> None:
    lost, good = world.submit(single_step()), world.submit(single_step())
    runs = {run.job.id: run for run in world.claim()}
    cancelled(world, runs[lost])
    reports = [Report(job_id=id_, event=Completed(**lease(run))) for id_, run in runs.items()]
    outcome = world.commit(Batch(reports=reports))
    assert dict(zip(runs, outcome.accepted, strict=True)) == {lost: False, good: True}
    assert world.statuses(good)["a"] == "COMPLETED"


def test_a_report_on_a_job_that_is_not_there_is_refused(world: World) -> None:
    assert world.report(derived_id("nobody"), Completed(position=0, epoch=1)) == (False,)


def test_an_epoch_never_given_is_refused(world: World) -> None:
    world.submit(single_step())
    run = world.claim_one()
    assert world.report(run.job.id, Completed(position=0, epoch=run.state.epoch + 1)) == (False,)


def test_the_same_completion_again_is_no_news_and_no_loss(world: World) -> None:
    """A commit whose answer was lost is sent again."""
    job_id = world.submit(chain(2))
    run = world.claim_one()
    assert world.complete(run, '"first"')
    events = world.events(job_id)
    assert world.complete(run, '"first"')
    assert world.events(job_id) == events


def test_a_second_finish_with_another_result_changes_nothing(world: World) -> None:
    job_id = world.submit(diamond())
    world.complete(world.claim_one(), None)
    first, second = world.claim()
    assert world.complete(first, '"first"')
    # Beside news on the same job, which has its rows written.
    assert world.report(
        job_id,
        Completed(**lease(first), result='"second"'),
        Completed(**lease(second), result='"other"'),
    ) == (True, True)
    steps = world.steps(job_id)
    assert (steps["b"].result, steps["c"].result) == ("first", "other")


def test_two_stores_that_remember_the_same_job_do_not_overwrite_each_other(world: World) -> None:
    """Each store keeps what it last saw; the version on the locked row says whether that is still true."""
    job_id = world.submit(diamond())
    other = world.new_store()
    world.complete(world.claim_one())
    first, second = world.claim(2, store=other)
    assert world.complete(first)
    assert world.report(job_id, Completed(**lease(second)), store=other) == (True,)
    assert world.statuses(job_id) == {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED", "d": "READY"}


def test_siblings_that_finish_in_one_batch_join_once(world: World) -> None:
    job_id = world.submit(diamond())
    world.complete(world.claim_one())
    runs = world.claim()
    assert all(world.report(job_id, *[Completed(**lease(run)) for run in runs]))
    assert [run.step.step_key for run in world.claim()] == ["d"]


def test_an_answer_is_fenced_by_the_epoch_it_was_asked_under(world: World) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    assert world.report(job_id, Suspended(**lease(run), deadline=None)) == (True,)
    assert world.report(job_id, Completed(position=0, epoch=run.state.epoch + 1)) == (False,)
    assert world.report(job_id, Checkpointed(**lease(run), result="1")) == (False,)
    assert world.report(job_id, Completed(**lease(run), result='"yes"')) == (True,)
    assert world.steps(job_id)["a"].result == "yes"


def test_a_worker_declared_dead_finds_its_steps_gone(world: World) -> None:
    world.submit(single_step())
    run = world.claim_one()
    assert world.store.sql.running_steps(ANN, 10) == [run.key]
    swept(world, run)
    assert world.store.sql.running_steps(ANN, 10) == []


def test_time_passes_for_a_deferred_step_without_its_worker(world: World) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    until = world.job(job_id).created_at - timedelta(seconds=1)
    assert world.report(job_id, Deferred(**lease(run), until=until)) == (True,)
    assert world.complete(run) is False
    assert world.claim_one(worker=BOB).state.worker == BOB
