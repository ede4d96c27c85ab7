"""Retention: what is old and needed by nobody goes, with all that belongs to it, and nothing else does."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Select, Table, func, insert, select, update

from docmill.db.tables import (
    ai_calls,
    batches,
    callbacks,
    issues,
    job_events,
    job_steps,
    step_parts,
)
from docmill.db.tables import (
    jobs as jobs_table,
)
from docmill.engine.batch import Batch, NewBatch, Part
from docmill.engine.bell import SocketBell
from docmill.engine.pruning import BATCH, Pruned, Pruner, prunable, prune
from docmill.model.errors import InvalidInput
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.statuses import FINISHED_JOBS, JobStatus
from docmill.services.jobs import Jobs, Retry
from docmill.testing.oracle import START
from docmill.testing.samples import chain, single_step
from docmill.testing.world import OTHER_ORG, World

LATER = START + timedelta(days=36_500)
BELONGING: tuple[Table, ...] = (job_steps, job_events, step_parts, issues, callbacks)


@pytest.fixture
def jobs(world: World) -> Iterator[Jobs]:
    with closing(SocketBell(world.run_dir)) as bell, closing(Jobs(world.database, bell)) as jobs:
        yield jobs


def count(world: World, table: Table) -> int:
    with world.looking() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def finished(world: World, **changes: Any) -> str:
    """A job that has run to its end."""
    job = replace(world.new_job(single_step()), **changes)
    world.commit(Batch(submissions=[job]))
    world.run_to_end()
    return job.id


def add(world: World, table: Table, **values: object) -> None:
    with world.database.write() as connection:
        connection.execute(insert(table), [{"id": new_id(), "org_id": DEFAULT_ORG, **values}])


def issue(world: World, job_id: str, status: str) -> None:
    add(
        world,
        issues,
        processable_type="document",
        processable_id="d",
        job_id=job_id,
        code="c",
        severity="error",
        blocking=False,
        corrects=False,
        status=status,
        title="t",
        details={},
        created_at=START,
    )


def test_a_job_goes_with_all_that_belongs_to_it_and_its_accounts_stay(world: World, jobs: Jobs) -> None:
    job_id = world.submit(single_step())
    run = world.claim_one()
    part = Part(job_id=job_id, position=0, epoch=run.state.epoch, name="page", value="1")
    world.commit(Batch(parts=[part]))
    world.complete(run)
    world.run_to_end()
    issue(world, job_id, "resolved")
    add(world, callbacks, job_id=job_id, position=0, payload={}, outcome="applied", received_at=START)
    add(
        world,
        ai_calls,
        job_id=job_id,
        position=0,
        provider="local",
        model="m",
        outcome="answered",
        input_tokens=1,
        output_tokens=1,
        cost_nanos=5,
        duration_ms=1,
        priced=True,
        reserved_nanos=0,
        expires_at=START,
        created_at=START,
    )
    assert all(count(world, table) for table in BELONGING)
    assert jobs.prune(finished_before=LATER) == Pruned(jobs=1)
    assert [count(world, table) for table in (jobs_table, *BELONGING)] == [0] * 6
    assert count(world, ai_calls) == 1


def test_only_what_is_old_enough_goes_and_the_oldest_first(world: World, jobs: Jobs) -> None:
    ids = [finished(world) for _ in range(4)]
    ends = [world.job(job_id).finished_at for job_id in ids]
    assert jobs.prune(finished_before=ends[0]) == Pruned()
    assert jobs.prune(finished_before=ends[3]) == Pruned(jobs=3)
    assert list(world.states()) == [ids[3]]
    more = [finished(world) for _ in range(2)]
    assert jobs.prune(finished_before=LATER, limit=2) == Pruned(jobs=2)
    assert list(world.states()) == [more[1]]


def test_a_dry_run_counts_and_deletes_nothing(world: World, jobs: Jobs) -> None:
    for _ in range(3):
        finished(world)
    assert jobs.prune(finished_before=LATER, dry_run=True) == Pruned(jobs=3)
    assert jobs.prune(finished_before=LATER, dry_run=True, limit=2) == Pruned(jobs=2)
    assert world.count() == 3


def test_the_status_may_be_chosen_among_the_finished_ones(world: World, jobs: Jobs) -> None:
    done, cancelled = finished(world), world.submit(single_step())
    jobs.cancel(cancelled)
    assert jobs.prune(finished_before=LATER, statuses=[JobStatus.CANCELLED]) == Pruned(jobs=1)
    assert list(world.states()) == [done]
    with pytest.raises(InvalidInput, match="Only finished jobs"):
        jobs.prune(finished_before=LATER, statuses=[JobStatus.PENDING])


def test_what_somebody_may_still_need_is_kept(world: World, jobs: Jobs) -> None:
    """An open issue, a child that has not finished, a batch that has not."""
    with_issue = finished(world)
    issue(world, with_issue, "open")
    parent = finished(world)
    child = world.new_job(single_step())
    batch = NewBatch(id=new_id(), org_id=DEFAULT_ORG, max_active=1)
    first = replace(world.new_job(single_step()), batch_id=batch.id)
    second = replace(world.new_job(single_step()), batch_id=batch.id, held=True)
    world.commit(Batch(submissions=[first], batches=[batch]))
    world.run_to_end()
    with world.database.write() as connection:
        connection.execute(update(batches).values(finished_at=None))
    running = world.submit(single_step())
    world.commit(Batch(submissions=[replace(child, parent_job_id=parent)]))
    assert jobs.prune(finished_before=LATER) == Pruned()
    assert set(world.states()) == {with_issue, parent, first.id, running, child.id}
    assert second.id not in world.states()
    world.run_to_end()
    with world.database.write() as connection:
        connection.execute(update(batches).values(finished_at=START))
        connection.execute(update(issues).values(status="resolved"))
    assert jobs.prune(finished_before=LATER) == Pruned(jobs=5, batches=1)


def test_a_batch_goes_with_its_last_job(world: World, jobs: Jobs) -> None:
    batch = NewBatch(id=new_id(), org_id=DEFAULT_ORG)
    both = [replace(world.new_job(single_step()), batch_id=batch.id) for _ in range(2)]
    world.commit(Batch(submissions=both, batches=[batch]))
    world.run_to_end()
    assert jobs.prune(finished_before=LATER, limit=1) == Pruned(jobs=1)
    assert count(world, batches) == 1
    assert jobs.prune(finished_before=LATER) == Pruned(jobs=1, batches=1)
    assert count(world, batches) == 0


def test_the_jobs_of_another_organisation_are_left_alone(world: World, jobs: Jobs) -> None:
    world.submit(single_step(), org_id=OTHER_ORG)
    world.run_to_end()
    assert jobs.prune(finished_before=LATER) == Pruned()
    assert world.count() == 1


def test_more_than_one_transaction_holds_are_pruned_one_after_the_other(world: World, jobs: Jobs) -> None:
    world.commit(Batch(submissions=[world.new_job(single_step()) for _ in range(BATCH + 5)]))
    world.run_to_end()
    assert prune(world.store, LATER, FINISHED_JOBS, 1_000) == Pruned(jobs=BATCH)
    assert jobs.prune(finished_before=LATER) == Pruned(jobs=5)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_what_somebody_holds_is_passed_over_and_not_waited_for(world: World) -> None:
    held, free = finished(world), finished(world)
    with world.database.engine.connect() as connection, connection.begin():
        connection.execute(select(jobs_table.c.id).where(jobs_table.c.id == held).with_for_update())
        assert prune(world.store, LATER, FINISHED_JOBS, 10) == Pruned(jobs=1)
    assert list(world.states()) == [held]
    assert free not in world.states()


def test_a_job_that_runs_again_is_no_longer_pruned(world: World, jobs: Jobs) -> None:
    job_id = world.submit(chain(2))
    world.run_to_end()
    jobs.retry(job_id, Retry(everything=True))
    assert jobs.prune(finished_before=LATER) == Pruned()


def test_a_report_on_a_pruned_job_is_void(world: World, jobs: Jobs) -> None:
    world.submit(single_step())
    run = world.claim_one()
    jobs.cancel(run.job.id)
    assert jobs.prune(finished_before=LATER) == Pruned(jobs=1)
    assert not world.complete(run)


def test_in_the_background_a_transaction_at_a_time_and_then_it_rests(world: World) -> None:
    """For all organisations, and again at once only while there is more."""
    world.submit(single_step(), org_id=OTHER_ORG)
    world.commit(Batch(submissions=[world.new_job(single_step()) for _ in range(BATCH)]))
    world.run_to_end()
    pruner, now = Pruner(timedelta(0)), LATER
    assert pruner.due(now)
    assert pruner.prune(world.store, now) == Pruned(jobs=BATCH)
    assert pruner.due(now)
    assert pruner.prune(world.store, now) == Pruned(jobs=1)
    assert not pruner.due(now + timedelta(seconds=59))
    assert pruner.due(now + timedelta(seconds=60))


def test_what_is_younger_than_the_retention_stays(world: World) -> None:
    end = world.job(finished(world)).finished_at
    pruner = Pruner(timedelta(days=90))
    assert pruner.prune(world.store, end + timedelta(days=89)) == Pruned()
    assert pruner.prune(world.store, end + timedelta(days=91)) == Pruned(jobs=1)


def plan_of(world: World, query: Select[Any]) -> str:
    """How the database would find these rows, in its own words."""
    with world.store.session.read() as connection:
        text = str(query.compile(connection, compile_kwargs={"literal_binds": True}))
        prefix = "explain" if connection.dialect.name == "postgresql" else "explain query plan"
        return "\n".join(str(row) for row in connection.exec_driver_sql(f"{prefix} {text}"))


def test_what_there_is_to_prune_is_found_by_its_indexes(world: World) -> None:
    world.commit(Batch(submissions=[world.new_job(single_step()) for _ in range(1000)]))
    world.run_to_end()
    if world.database.kind == "postgresql":
        with world.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("vacuum analyze")
    plan = plan_of(world, prunable(LATER, FINISHED_JOBS).limit(BATCH))
    assert "ix_processing_jobs_finished" in plan
    assert "Sort" not in plan, "the oldest are found in order"
    assert "Seq Scan" not in plan
    assert "SCAN" not in plan
