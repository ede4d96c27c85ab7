"""Retry capability at job or step level: what runs again, what is used again, and what must not be repeated."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import select

from docmill.db.tables import jobs as jobs_table
from docmill.engine import failpoints
from docmill.engine.batch import Batch, NewBatch
from docmill.engine.bell import SocketBell
from docmill.engine.events import Failed, Rerun
from docmill.model.errors import Conflict, DatabaseUnavailable, InvalidInput
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.statuses import FailureAction, JobStatus
from docmill.services.jobs import Jobs, Retry
from docmill.testing.samples import Draft, chain, make_plan, single_step
from docmill.testing.world import World, lease

SKIP = FailureAction.SKIP_DEPENDENTS


@pytest.fixture
def jobs(world: World) -> Iterator[Jobs]:
    with closing(SocketBell(world.run_dir)) as bell, closing(Jobs(world.database, bell)) as jobs:
        yield jobs


def play(world: World, job_id: str, *, failing: str | None = None) -> list[str]:
    """Run what is due to its end, one step failing for good; the steps that ran."""
    ran = []
    while runs := world.claim(100):
        for run in runs:
            ran.append(run.step.step_key)
            if run.step.step_key == failing and run.job.id == job_id:
                world.report(job_id, Failed(**lease(run), error='{"code":"no"}', permanent=True))
            else:
                world.complete(run, None if run.state.checkpointed else '"done"')
    return ran


def test_a_failed_job_is_retried_where_it_failed(world: World, jobs: Jobs) -> None:
    job_id = world.submit(chain(3))
    play(world, job_id, failing="s1")
    jobs.retry(job_id)
    assert play(world, job_id) == ["s1", "s2", "finish"]
    assert world.state(job_id).status is JobStatus.COMPLETED


def test_a_tolerated_failure_is_retried_too(world: World, jobs: Jobs) -> None:
    plan = make_plan(
        [Draft(key="good"), Draft(key="extra", on_failure=SKIP), Draft(key="on", group=2, after=("extra",))]
    )
    job_id = world.submit(plan)
    play(world, job_id, failing="extra")
    assert world.state(job_id).status is JobStatus.PARTIAL_SUCCESS
    jobs.retry(job_id)
    assert play(world, job_id) == ["extra", "on", "finish"]
    assert world.state(job_id).status is JobStatus.COMPLETED


def test_a_cancelled_job_is_taken_up_where_it_was(world: World, jobs: Jobs) -> None:
    job_id = world.submit(chain(2))
    world.complete(world.claim_one())
    jobs.cancel(job_id)
    jobs.retry(job_id)
    assert play(world, job_id) == ["s1", "finish"]


def test_a_completed_job_has_nothing_to_retry_unless_told_what(world: World, jobs: Jobs) -> None:
    job_id = world.submit(chain(2))
    play(world, job_id)
    with pytest.raises(Conflict, match="nothing in it failed"):
        jobs.retry(job_id)
    jobs.retry(job_id, Retry(everything=True))
    assert play(world, job_id) == ["s0", "s1", "finish"]
    jobs.retry(job_id, Retry(from_step="s1"))
    assert play(world, job_id) == ["s1", "finish"]
    jobs.retry(job_id, Retry(steps=["s0"]))
    assert play(world, job_id) == ["s0", "s1", "finish"]
    with pytest.raises(InvalidInput, match="give one of them"):
        jobs.retry(job_id, Retry(everything=True, steps=["s0"]))


def test_of_a_batch_without_room_the_new_run_waits_for_its_turn(world: World, jobs: Jobs) -> None:
    batch = NewBatch(id=new_id(), org_id=DEFAULT_ORG, max_active=1)
    first = replace(world.new_job(single_step()), batch_id=batch.id)
    second = replace(world.new_job(single_step()), batch_id=batch.id, held=True)
    world.commit(Batch(submissions=[first, second], batches=[batch]))
    play(world, first.id, failing="a")
    third = replace(world.new_job(single_step()), batch_id=batch.id)
    assert third.id not in world.states()
    jobs.retry(first.id)
    assert play(world, first.id) == ["a", "finish"]
    assert world.state(first.id).status is JobStatus.COMPLETED


def undoing(world: World) -> str:
    """A job that undoes ship, charge and reserve, of which nothing has run yet."""
    plan = make_plan(
        [
            Draft(key="reserve", processor="reserve", compensation="release"),
            Draft(key="charge", group=2, processor="charge", compensation="refund"),
            Draft(key="ship", group=3, processor="ship", compensation="recall"),
            Draft(key="bill", group=4, compensation="unbill"),
        ],
        name="saga",
        compensate=True,
    )
    job_id = world.submit(plan)
    for _ in range(3):
        world.complete(world.claim_one())
    run = world.claim_one()
    world.report(job_id, Failed(**lease(run), error='{"code":"no"}', permanent=True))
    with world.looking() as connection:
        return str(connection.execute(select(jobs_table.c.id).where(jobs_table.c.parent_job_id == job_id)).scalar_one())


@pytest.mark.parametrize("retry", [Retry(), Retry(everything=True), Retry(steps=["charge"]), Retry(from_step="charge")])
def test_the_retry_of_an_undoing_never_repeats_what_was_undone(world: World, jobs: Jobs, retry: Retry) -> None:
    undo_id = undoing(world)
    assert play(world, undo_id, failing="charge") == ["ship", "charge"]
    assert world.state(undo_id).status is JobStatus.FAILED
    jobs.retry(undo_id, retry)
    assert play(world, undo_id) == ["charge", "reserve", "undone"]
    assert world.state(undo_id).status is JobStatus.COMPLETED


def test_what_an_undoing_cannot_do_again_is_said(world: World, jobs: Jobs) -> None:
    undo_id = undoing(world)
    play(world, undo_id, failing="charge")
    with pytest.raises(Conflict, match="ship has been undone"):
        jobs.retry(undo_id, Retry(steps=["ship"]))
    with pytest.raises(InvalidInput, match="cannot be computed afresh"):
        jobs.retry(undo_id, Retry(keep_checkpoints=False))
    jobs.retry(undo_id)
    play(world, undo_id)
    with pytest.raises(Conflict, match="all of it has been undone"):
        jobs.retry(undo_id, Retry(everything=True))


def test_the_engine_itself_undoes_nothing_twice(world: World) -> None:
    """Whoever asks for it, and in whatever words."""
    undo_id = undoing(world)
    play(world, undo_id)
    world.report(undo_id, Rerun(positions=frozenset(range(5)), keep_checkpoints=False))
    assert play(world, undo_id) == ["undone"]


def test_a_retry_whose_answer_was_lost_begins_one_run_though_that_has_ended_meanwhile(world: World, jobs: Jobs) -> None:
    job_id = world.submit(single_step())
    play(world, job_id)

    def unheard(point: str) -> None:
        if point == "commit.after":
            failpoints.hook(None)
            play(world, job_id)
            raise DatabaseUnavailable("The server went away.")

    failpoints.hook(unheard)
    try:
        jobs.retry(job_id, Retry(everything=True))
    finally:
        failpoints.hook(None)
    assert (world.state(job_id).run, world.state(job_id).status) == (2, JobStatus.COMPLETED)


def test_an_undoing_is_not_retried_once_its_job_has_run_again(world: World, jobs: Jobs) -> None:
    steps = [Draft(key="book", compensation="unbook"), Draft(key="pay", group=2)]
    job_id = world.submit(make_plan(steps, name="saga", compensate=True))
    play(world, job_id, failing="pay")
    (undoing,) = [child.id for child in jobs.get(job_id).children]
    assert world.state(undoing).status is JobStatus.COMPLETED
    world.report(undoing, Rerun(positions=frozenset()))
    jobs.cancel(undoing)
    jobs.retry(job_id)
    play(world, job_id)
    assert world.state(job_id).status is JobStatus.COMPLETED
    with pytest.raises(Conflict, match="has run again"):
        jobs.retry(undoing)
