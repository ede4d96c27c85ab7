"""A transaction happens whole or not at all."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from sqlalchemy import insert, text

from docmill.db.tables import job_events
from docmill.engine import failpoints
from docmill.engine.batch import Batch, Part, QueueClaim, Report
from docmill.engine.events import Completed, Rerun
from docmill.engine.sql.rows import Beginning, WrongCount
from docmill.engine.store import Store
from docmill.testing.samples import chain, diamond, single_step
from docmill.testing.world import ANN, World, lease

WRITES = (
    "insert_jobs",
    "insert_steps",
    "update_steps",
    "update_jobs",
    "insert_events",
    "delete_parts",
    "upsert_parts",
)


class Interrupted(Exception):
    """Something nobody foresaw."""


def interrupt(store: Store, method: str, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    original: Callable[..., object] = getattr(type(store.sql), method)

    def interrupted(self: object, *arguments: object) -> None:
        if after:
            original(self, *arguments)
        raise Interrupted

    monkeypatch.setattr(type(store.sql), method, interrupted)


def everything(world: World) -> object:
    with world.looking() as connection:
        names = ("processing_jobs", "processing_job_steps", "processing_job_events", "processing_step_parts")
        return [connection.execute(text(f"select * from {name} order by 1, 2")).all() for name in names]


def full_batch(world: World) -> Batch:
    """One of everything a transaction can write."""
    done, running = world.submit(single_step()), world.submit(diamond())
    runs = {run.job.id: run for run in world.claim()}
    world.complete(runs[done])
    world.complete(world.claim_one())
    world.submit(single_step())
    run = runs[running]
    world.complete(run)
    first, second = (run for run in world.claim(2))
    return Batch(
        reports=[
            Report(job_id=done, event=Rerun(positions=frozenset({0}), keep_checkpoints=False)),
            Report(job_id=running, event=Completed(**lease(first)), follow_ups=(world.new_job(chain(2)),)),
        ],
        parts=[Part(job_id=running, **lease(second), name="p", value="1")],
        submissions=[world.new_job(single_step())],
        claims=[QueueClaim(queue="system", limit=5)],
        worker=ANN,
    )


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("method", WRITES)
def test_an_error_at_any_write_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, after: bool
) -> None:
    batch = full_batch(world)
    before = everything(world)
    with monkeypatch.context() as patch:
        interrupt(world.store, method, patch, after=after)
        with pytest.raises(Interrupted):
            world.commit(batch)
    assert everything(world) == before
    # The same store does the same batch once nothing is in its way.
    outcome = world.commit(batch)
    assert (outcome.accepted, outcome.parts_accepted, outcome.submitted) == ((True, True), (True,), 2)


def test_an_error_just_before_the_commit_leaves_nothing_behind(world: World) -> None:
    batch = full_batch(world)
    before = everything(world)
    try:
        failpoints.arm("commit.inside:1:raise")
        with pytest.raises(failpoints.FailpointRaised):
            world.commit(batch)
    finally:
        failpoints.arm(None)
    assert everything(world) == before


def test_a_row_that_is_not_as_planned_rolls_everything_back(world: World) -> None:
    """The fence in the database itself: an epoch changed behind the store's back, without its version."""
    job_id, other = world.submit(chain(2)), world.submit(chain(2))
    runs = {run.job.id: run for run in world.claim()}
    with world.database.write() as connection:
        connection.execute(text("update processing_job_steps set epoch = 9 where job_id = :id"), {"id": job_id})
    before = everything(world)
    with pytest.raises(WrongCount):
        world.commit(
            Batch(reports=[Report(job_id=id_, event=Completed(**lease(runs[id_]))) for id_ in (job_id, other)])
        )
    assert everything(world) == before
    assert world.complete(runs[other])


def test_a_job_whose_version_moved_behind_the_lock_rolls_everything_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = world.submit(chain(2))
    run = world.claim_one()
    version = world.job(job_id).version
    with world.database.write() as connection:
        connection.execute(text("update processing_jobs set version = 7 where id = :id"), {"id": job_id})
    before = everything(world)
    with monkeypatch.context() as patch:
        now = datetime.now(UTC)
        patch.setattr(
            type(world.store.sql), "begin", lambda self, ids, **_: Beginning(now, dict.fromkeys(ids, version), {})
        )
        with pytest.raises(WrongCount):
            world.complete(run)
    assert everything(world) == before
    with world.database.write() as connection:
        connection.execute(text("update processing_jobs set version = :v where id = :id"), {"id": job_id, "v": version})


def test_a_store_goes_on_after_the_database_refused_a_row(world: World) -> None:
    """An event that is already there; the writes before it were sent, the answers after it never came."""
    job_id, other = world.submit(chain(2)), world.submit(chain(2))
    runs = {run.job.id: run for run in world.claim()}
    event = world.events(job_id)[-1]
    stray = {"job_id": job_id, "version": event.version + 1, "org_id": event.org_id, "at": event.at}
    with world.database.write() as connection:
        connection.execute(insert(job_events).values(data={}, hash=b"", **stray))
    with pytest.raises(Exception, match=r"(?i)unique"):
        world.complete(runs[job_id])
    assert world.complete(runs[other])
    with world.database.write() as connection:
        connection.execute(
            job_events.delete().where(job_events.c.version == stray["version"], job_events.c.hash == b"")
        )
    assert world.complete(runs[job_id])
