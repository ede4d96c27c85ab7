"""What a worker remembers of jobs spares it looks, is never believed too long, and ends with the jobs."""

from collections.abc import Sequence

import pytest

from docmill.engine.events import Cancelled
from docmill.engine.failpoints import FailpointRaised
from docmill.engine.known import KnownJobs
from docmill.engine.lane import StoreThread
from docmill.engine.sql.rows import JobRow, StepRow
from docmill.engine.store import Store
from docmill.testing.samples import chain
from docmill.testing.world import World


def sharing(world: World, known: KnownJobs) -> Store:
    """A store on a connection of its own, of the worker that remembers these."""
    return Store(world.new_store().session, world.plans, known)


def watched(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs that this store reads from the database, from now on."""
    read: list[str] = []
    load = store.sql.load

    def noting(ids: Sequence[str]) -> tuple[list[JobRow], list[StepRow]]:
        read.extend(ids)
        return load(ids)

    monkeypatch.setattr(store.sql, "load", noting)
    return read


def test_what_one_lane_committed_the_other_need_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownJobs()
    world.store, other = sharing(world, known), sharing(world, known)
    read = watched(other, monkeypatch)
    world.submit(chain(2))
    (run,) = world.claim(store=world.store)
    world.store = other
    assert world.complete(run)
    assert read == []


def test_what_somebody_else_changed_is_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, elsewhere = sharing(world, KnownJobs()), sharing(world, KnownJobs())
    world.store = mine
    job = world.submit(chain(2))
    run = world.claim_one()
    assert world.report(job, Cancelled(), store=elsewhere) == (True,)
    read = watched(mine, monkeypatch)
    assert not world.complete(run), "the job was cancelled in another process"
    assert read == [job]


def test_a_job_that_ends_in_either_lane_is_forgotten_by_both(world: World) -> None:
    known = KnownJobs()
    lane_a, lane_b = sharing(world, known), sharing(world, known)
    for _ in range(3):
        world.store = lane_a
        world.submit(chain(2))
        for turn in range(3):
            run = world.claim_one()
            assert len(known) == 1
            world.store = (lane_b, lane_a)[turn % 2]
            assert world.complete(run)
        assert len(known) == 0


def test_of_more_jobs_than_are_remembered_the_oldest_are_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownJobs(2)
    world.store = sharing(world, known)
    jobs = [world.submit(chain(2)) for _ in range(3)]
    assert len(known) == 2
    read = watched(world.store, monkeypatch)
    assert {run.job.id for run in world.claim()} == {*jobs}
    assert read == jobs[:1]


def test_whoever_changes_a_job_now_and_then_remembers_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(world.new_store().session, world.plans)
    world.store = store
    job = world.submit(chain(2))
    read = watched(store, monkeypatch)
    assert world.report(job, Cancelled()) == (True,)
    assert read == [job]


def test_a_lane_that_comes_late_does_not_bring_back_what_was_before(world: World) -> None:
    known = KnownJobs()
    world.store = sharing(world, known)
    job = world.submit(chain(2))
    early = known.get(job)
    world.claim_one()
    late = known.get(job)
    assert early is not None
    assert late is not None
    assert early.version < late.version
    known.remember([early])
    assert known.get(job) is late


class _Lane(StoreThread):
    """Fails once, and tells how many jobs are remembered at each attempt."""

    def __init__(self, world: World, known: KnownJobs) -> None:
        super().__init__("test", world.database.as_engine(), world.plans, known)
        self._remembered = known
        self.seen: list[int] = []

    def run(self) -> None:
        self.persist(self._attempt)

    def _attempt(self, store: Store) -> None:
        self.seen.append(len(self._remembered))
        if len(self.seen) == 1:
            raise FailpointRaised("lost")


def test_after_a_failure_nothing_is_believed_since_versions_may_mean_something_else(world: World) -> None:
    known = KnownJobs()
    world.store = sharing(world, known)
    world.submit(chain(2))
    lane = _Lane(world, known)
    lane.start()
    lane.close()
    assert lane.seen == [1, 0]
