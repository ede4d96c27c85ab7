"""Batches that are cancelled, and what failed in them run again."""

import pytest

from docmill.db.tables import batches as batches_table
from docmill.engine import failpoints
from docmill.engine.bell import CONTROL
from docmill.engine.rooms import AT_ONCE
from docmill.model.errors import Conflict, InvalidInput
from docmill.model.statuses import FailureAction, JobStatus
from docmill.services.batches import Batches
from docmill.services.jobs import Jobs
from docmill.services.retrying import Retry
from docmill.testing.samples import Draft, make_plan
from docmill.testing.world import World
from tests.contract.batching import by_entity, fail, named, some
from tests.contract.bells import CountingBell


def test_cancelling_ends_what_runs_and_what_is_held_and_nothing_begins(
    world: World, batches: Batches, bell: CountingBell
) -> None:
    view = batches.submit(some(world, 7), limit=2)
    runs = by_entity(world)
    assert batches.cancel(view.id) == 7
    assert not world.complete(runs["0"])
    assert by_entity(world) == {}
    view = batches.get(view.id)
    assert (view.status, view.counts, view.cancelling) == (JobStatus.CANCELLED, {JobStatus.CANCELLED: 7}, False)
    assert view.finished_at is not None
    assert bell.rung[-1] == {CONTROL}
    with pytest.raises(Conflict, match="already finished"):
        batches.cancel(view.id)


def test_cancelling_leaves_finished_jobs_as_they_are(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 3), limit=1)
    fail(world, by_entity(world)["0"])
    assert batches.cancel(view.id) == 2
    assert batches.get(view.id).counts == {JobStatus.FAILED: 1, JobStatus.CANCELLED: 2}


def test_a_cancel_that_died_half_way_lets_nothing_in_and_is_finished_by_the_sweeper(
    world: World, batches: Batches
) -> None:
    view = batches.submit(some(world, 6), limit=2)
    failpoints.arm("cancel.stored:1:raise")
    try:
        with pytest.raises(failpoints.FailpointRaised):
            batches.cancel(view.id)
    finally:
        failpoints.arm(None)
    assert batches.get(view.id).cancelling
    runs = by_entity(world)
    assert sorted(runs) == ["0", "1"]
    fail(world, runs["0"])
    assert batches.get(view.id).active == 1
    world.sweep()
    view = batches.get(view.id)
    assert (view.counts, view.cancelling) == ({JobStatus.FAILED: 1, JobStatus.CANCELLED: 5}, False)


def test_what_a_sweeper_cancels_first_is_counted_too(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 5), limit=2)
    fail(world, by_entity(world)["0"])

    def sweep(name: str) -> None:
        if name == "cancel.stored":
            failpoints.hook(None)
            world.sweep()

    failpoints.hook(sweep)
    try:
        assert batches.cancel(view.id) == 4
    finally:
        failpoints.hook(None)
    assert batches.get(view.id).counts == {JobStatus.FAILED: 1, JobStatus.CANCELLED: 4}


def test_more_jobs_than_one_transaction_takes_are_cancelled_and_run_again(world: World, batches: Batches) -> None:
    count = AT_ONCE + 20
    view = batches.submit(some(world, count), limit=3)
    assert batches.cancel(view.id) == count
    again = batches.retry(view.id, [JobStatus.CANCELLED])
    assert (again.again, again.passed_over) == (count, ())
    view = batches.get(view.id)
    assert (view.active, view.held, view.finished_at) == (3, count - 3, None)


def test_retrying_runs_what_failed_within_the_limit(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 6), limit=6)
    runs = by_entity(world)
    for name in "1234":
        fail(world, runs[name])
    batches.set_limit(view.id, 3)
    retried = batches.retry(view.id)
    assert (retried.again, retried.passed_over) == (4, ())
    view = batches.get(view.id)
    assert (view.active, view.held) == (3, 3)
    for name in "05":
        world.complete(runs[name])
    world.run_to_end()
    view = batches.get(view.id)
    assert (view.status, view.active, view.held) == (JobStatus.COMPLETED, 0, 0)


def test_only_the_failed_are_retried_unless_others_are_asked_for(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 3), limit=3)
    fail(world, by_entity(world)["0"])
    batches.cancel(view.id)
    assert batches.retry(view.id).again == 1
    assert batches.retry(view.id).again == 0
    assert batches.retry(view.id, [JobStatus.CANCELLED, JobStatus.FAILED]).again == 2
    for statuses in ([], [JobStatus.COMPLETED], [JobStatus.PENDING]):
        with pytest.raises(InvalidInput):
            batches.retry(view.id, statuses)


def test_a_partial_success_is_retried_from_what_failed_in_it(world: World, batches: Batches) -> None:
    plan = make_plan([Draft(key="good"), Draft(key="extra", on_failure=FailureAction.SKIP_DEPENDENTS)])
    view = batches.submit([world.new_job(plan)])
    runs = {run.step.step_key: run for run in world.claim(10)}
    world.complete(runs["good"])
    fail(world, runs["extra"])
    world.run_to_end()
    assert batches.get(view.id).status is JobStatus.PARTIAL_SUCCESS
    assert batches.retry(view.id, [JobStatus.PARTIAL_SUCCESS]).again == 1
    assert [run.step.step_key for run in world.claim(10)] == ["extra"]


def test_entities_that_have_another_job_by_now_are_passed_over_by_name(world: World, batches: Batches) -> None:
    view = batches.submit(named(world, "a", "b"))
    batches.cancel(view.id)
    batches.submit(named(world, "b"))
    retried = batches.retry(view.id, [JobStatus.CANCELLED])
    assert (retried.again, retried.passed_over) == (1, ("document:b",))


def test_a_single_job_that_is_run_again_waits_for_room_too(world: World, batches: Batches, bell: CountingBell) -> None:
    view = batches.submit(some(world, 3), limit=1)
    fail(world, by_entity(world)["0"])
    jobs = Jobs(world.database, bell)
    jobs.retry(batches.results(view.id)[0].job_id, Retry(everything=True))
    jobs.close()
    view = batches.get(view.id)
    assert (view.active, view.held) == (1, 2)


def test_a_job_whose_batch_was_pruned_runs_again_without_it(world: World, batches: Batches, bell: CountingBell) -> None:
    view = batches.submit(some(world, 1))
    job_id = batches.results(view.id)[0].job_id
    world.run_to_end()
    with world.database.write() as connection:
        connection.execute(batches_table.delete())
    jobs = Jobs(world.database, bell)
    jobs.retry(job_id, Retry(everything=True))
    jobs.close()
    assert len(by_entity(world)) == 1
