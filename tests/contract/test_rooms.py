"""A batch never has more active jobs than its limit, and always as many as there is room and work for."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select, text

from docmill.db.tables import batches
from docmill.engine.batch import Batch, NewBatch, NewJob, Report
from docmill.engine.events import Cancelled, Rerun
from docmill.engine.sql.entities import TRY_ALONE, entity_slot
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.statuses import JobStatus
from docmill.testing.samples import single_step
from docmill.testing.waiting import until
from docmill.testing.world import World


def submit(world: World, count: int, limit: int) -> tuple[str, Sequence[NewJob]]:
    """A batch of so many jobs, of which the first `limit` may begin."""
    batch = NewBatch(id=new_id(), org_id=DEFAULT_ORG, max_active=limit)
    jobs = [replace(world.new_job(single_step()), batch_id=batch.id, held=n >= limit) for n in range(count)]
    world.commit(Batch(batches=[batch], submissions=jobs))
    return batch.id, jobs


def counts(world: World, batch_id: str) -> tuple[int, int, bool]:
    """Active and held as the row says, which must be what the jobs say; and whether the batch has finished."""
    with world.looking() as connection:
        row = connection.execute(select(batches).where(batches.c.id == batch_id)).one()
    states = world.states().values()
    held = sum(state.held for state in states)
    active = sum(not state.held and not state.status.finished for state in states)
    assert (row.active, row.held) == (active, held)
    return active, held, row.finished_at is not None


def test_only_as_many_begin_as_there_is_room_for(world: World) -> None:
    batch_id, _ = submit(world, count=7, limit=3)
    assert counts(world, batch_id) == (3, 4, False)
    assert len(world.claim(100)) == 3


def test_whoever_finishes_lets_the_next_in_until_all_are_done(world: World) -> None:
    batch_id, _ = submit(world, count=7, limit=3)
    left = 4
    while runs := world.claim(100):
        assert len(runs) <= 3
        for run in runs:
            finish = run.step.finish
            assert world.complete(run)
            left -= finish and left > 0
            active, held, _ = counts(world, batch_id)
            assert active <= 3
            assert held == left
    assert counts(world, batch_id) == (0, 0, True)
    assert {state.status for state in world.states().values()} == {JobStatus.COMPLETED}


def test_jobs_that_are_cancelled_make_room_whether_they_had_begun_or_not(world: World) -> None:
    batch_id, jobs = submit(world, count=5, limit=2)
    world.report(jobs[4].id, Cancelled())
    assert counts(world, batch_id) == (2, 2, False)
    world.report(jobs[0].id, Cancelled())
    assert counts(world, batch_id) == (2, 1, False)
    world.commit(Batch(reports=[Report(job_id=job.id, event=Cancelled()) for job in jobs[1:4]]))
    assert counts(world, batch_id) == (0, 0, True)


def test_a_new_run_of_its_jobs_keeps_to_the_limit_too(world: World) -> None:
    batch_id, jobs = submit(world, count=4, limit=2)
    world.run_to_end()
    again = Rerun(positions=frozenset({0}), held=True)
    world.commit(Batch(reports=[Report(job_id=job.id, event=again) for job in jobs]))
    assert counts(world, batch_id) == (2, 2, False)
    world.run_to_end()
    assert counts(world, batch_id) == (0, 0, True)


def test_room_that_nobody_used_is_found_by_the_sweeper(world: World) -> None:
    batch_id, _ = submit(world, count=4, limit=1)
    with world.database.write() as connection:
        connection.execute(batches.update().values(max_active=3))
    world.sweep()
    assert counts(world, batch_id) == (3, 1, False)


def test_a_batch_submitted_twice_is_submitted_once(world: World) -> None:
    batch = NewBatch(id=new_id(), org_id=DEFAULT_ORG, max_active=1)
    jobs = [replace(world.new_job(single_step()), batch_id=batch.id, held=n >= 1) for n in range(3)]
    world.commit(Batch(batches=[batch], submissions=jobs))
    outcome = world.commit(Batch(batches=[batch], submissions=jobs))
    assert outcome.submitted == 0
    assert counts(world, batch.id) == (1, 2, False)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_nobody_holds_a_batch_while_waiting_for_an_entity(world: World) -> None:
    """Who has the entity alone completes a job of the same batch, and must not be kept from it."""
    batch_id, (job,) = submit(world, count=1, limit=1)
    world.run_to_end()
    with ThreadPoolExecutor(1) as thread:
        with world.other.session.write() as connection:
            slot = entity_slot(job.org_id, job.entity_type, job.entity_id)
            assert connection.execute(text(TRY_ALONE), {"slot": slot}).scalar()
            waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            rerun = thread.submit(world.report, job.id, Rerun(positions=frozenset({0})))
            until(lambda: connection.execute(text(waits)).scalar_one() == 1, 30.0, what="the rerun to wait")
            connection.execute(select(batches).where(batches.c.id == batch_id).with_for_update(nowait=True)).one()
        assert rerun.result(30) == (True,)
    assert counts(world, batch_id) == (1, 0, False)
