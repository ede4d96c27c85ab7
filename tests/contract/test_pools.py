"""Background processing: how many steps run at once, who is served first, and that nothing waits for a bell."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

from docmill.engine import lane_a
from docmill.engine.batch import Batch
from docmill.engine.bell import Bell, open_bell
from docmill.engine.lease import LeaseSettings
from docmill.engine.pools import PoolSettings
from docmill.engine.worker import Worker, WorkerSettings, default_pools
from docmill.model.statuses import StepKind
from docmill.plugin import PermanentError, Registry, StepContext, step
from docmill.templates.plan import Plan
from docmill.testing.samples import Draft, make_plan
from docmill.testing.waiting import until
from docmill.testing.world import World

FINISH = Draft(key="finish", step_type="done")
_began: list[str] = []
_gates: dict[str, asyncio.Event] = {}


@step("held")
async def held(ctx: StepContext) -> None:
    """Runs until the test opens its gate."""
    gate = _gates.setdefault(ctx.step_key, asyncio.Event())
    _began.append(ctx.step_key)
    await gate.wait()


@step("broken")
async def broken(ctx: StepContext) -> None:
    """Never works."""
    raise PermanentError("The page is blank.")


@step("done")
async def done(ctx: StepContext) -> None:
    """Works at once."""


class Serving:
    """A worker at work, and the gates of its steps."""

    def __init__(self, world: World, worker: Worker, bell: Bell) -> None:
        self._world = world
        self._worker = worker
        self._bell = bell

    def submit(self, plan: Plan) -> str:
        """Submit a job and ring for it."""
        job_id = self._world.submit(plan)
        self._bell.ring({step.pool for step in plan.steps})
        return job_id

    def counts(self, pool: str) -> tuple[int, int, int]:
        """Idle slots, busy slots, failures so far. While the worker looks for work, the slots it looks for are busy."""
        use = next(use for use in self._worker.use() if use.name == pool)
        return use.idle, use.busy, use.failed

    def open(self, *keys: str) -> None:
        assert self._worker._loop is not None
        for key in keys:
            self._worker._loop.call_soon_threadsafe(_gates[key].set)


@contextmanager
def serving(world: World, *pools: PoolSettings) -> Iterator[Serving]:
    _began.clear()
    _gates.clear()
    registry = Registry()
    registry.add_module(sys.modules[__name__])
    lease = LeaseSettings(duration=60.0, heartbeat=0.2, sweep=0.1)
    settings = WorkerSettings(run_dir=world.run_dir, pools=pools or default_pools(), lease=lease, drain_seconds=0.1)
    worker = Worker(world.database, registry, settings)
    with ThreadPoolExecutor(1) as thread, closing(open_bell(world.database, world.run_dir)) as bell:
        end = thread.submit(lambda: asyncio.run(worker.run()))
        try:
            assert worker.ready.wait(30.0)
            yield Serving(world, worker, bell)
        finally:
            worker.stop()
            end.result(60.0)


def plan(*keys: str, pool: str = "rule", step_type: str = "held") -> Plan:
    """Steps that may all run at once."""
    drafts = [Draft(key=key, pool=pool, kind=StepKind.RULE, step_type=step_type) for key in keys]
    return make_plan(drafts, name=f"{pool}-{'-'.join(keys)}", finish=FINISH)


def ended(world: World, job_id: str) -> str:
    until(lambda: world.job(job_id).finished_at, 30.0, what="the job to end")
    return str(world.job(job_id).status)


def running(world: World, jobs: Sequence[str]) -> list[str]:
    steps = [step for job_id in jobs for step in world.steps(job_id).items()]
    return [key for key, row in steps if row.status == "IN_PROGRESS"]


def test_a_pool_runs_ten_steps_at_once_unless_told_otherwise(world: World) -> None:
    keys = [f"s{number}" for number in range(12)]
    job_id = world.submit(plan(*keys))
    with serving(world) as worker:
        until(lambda: len(_began) >= 10, 30.0, what="the pool to be full")
        assert worker.counts("rule") == (0, 10, 0)
        assert sorted(running(world, [job_id])) == sorted(_began)
        assert len(_began) == 10
        worker.open(*_began[:2])
        until(lambda: len(_began) == 12, 30.0, what="the last two to begin")
        worker.open(*keys)
        assert ended(world, job_id) == "COMPLETED"
        until(lambda: worker.counts("rule") == (10, 0, 0), 30.0, what="the slots to be free")


def test_a_slot_is_idle_busy_and_after_an_error_idle_again(world: World) -> None:
    with serving(world) as worker:
        until(lambda: worker.counts("rule") == (10, 0, 0), 30.0, what="all slots to be idle")
        bad = worker.submit(plan("bad", step_type="broken"))
        assert ended(world, bad) == "FAILED"
        until(lambda: worker.counts("rule") == (10, 0, 1), 30.0, what="the slot to be idle again")
        good = worker.submit(plan("good"))
        until(lambda: _began == ["good"], 30.0, what="the next step to begin")
        until(lambda: worker.counts("rule") == (9, 1, 1), 30.0, what="one slot to be busy")
        worker.open("good")
        assert ended(world, good) == "COMPLETED"


@pytest.mark.parametrize(("throttle", "most"), [(3, 3), (None, 10)])
def test_no_more_steps_are_claimed_in_one_round_than_the_pool_allows(
    world: World, throttle: int | None, most: int
) -> None:
    jobs = [world.new_job(plan("a")) for _ in range(10)]
    world.commit(Batch(submissions=jobs))
    ids = [job.id for job in jobs]
    pools = [PoolSettings(name="rule", claims_per_cycle=throttle), PoolSettings(name="system")]
    with serving(world, *pools) as worker:
        until(lambda: len(_began) == 10, 30.0, what="all to begin")
        # All that one transaction claims begins at the same moment.
        rounds = Counter(world.steps(job_id)["a"].started_at for job_id in ids)
        worker.open("a")
        assert {ended(world, job_id) for job_id in ids} == {"COMPLETED"}
    assert max(rounds.values()) == most


@pytest.mark.parametrize("first", ["analysis", "forming", "model"])
def test_pools_of_higher_priority_claim_first(world: World, first: str) -> None:
    order = [first, *sorted({"analysis", "forming", "model"} - {first})]
    pools = [PoolSettings(name=name, priority=-place) for place, name in enumerate(order)]
    jobs = [world.new_job(plan(name, pool=name)) for name in reversed(order)]
    world.commit(Batch(submissions=jobs))
    with serving(world, PoolSettings(name="system"), *pools) as worker:
        until(lambda: len(_began) == 3, 30.0, what="all to begin")
        assert _began == order
        worker.open(*order)
        assert {ended(world, job.id) for job in jobs} == {"COMPLETED"}


def test_a_pool_without_a_free_slot_is_passed_over_and_holds_up_no_other(world: World) -> None:
    pools = [PoolSettings(name="full", capacity=1, priority=9), PoolSettings(name="rule"), PoolSettings(name="system")]
    with serving(world, *pools) as worker:
        stuck = worker.submit(plan("first", "second", pool="full"))
        until(lambda: len(_began) == 1, 30.0, what="the pool to be full")
        other = worker.submit(plan("other", step_type="done"))
        assert ended(world, other) == "COMPLETED"
        assert sorted(world.statuses(stuck).values()) == ["IN_PROGRESS", "READY"]
        until(lambda: _open_all(worker), 30.0, what="both to have begun")
        assert ended(world, stuck) == "COMPLETED"


def test_what_is_queued_or_being_processed_is_not_queued_again(world: World) -> None:
    """Neither in its own queue nor in another: a step is one row."""
    job = world.new_job(plan("a", pool="ocr"))
    for _ in range(2):
        world.commit(Batch(submissions=[job]))
    (run,) = world.claim(queue="ocr")
    world.commit(Batch(submissions=[job]))
    for queue in ("ocr", "ocr!", "rule", "system"):
        assert world.claim(queue=queue) == ()
    assert world.complete(run)
    assert world.statuses(job.id)["a"] == "COMPLETED"


def _open_all(worker: Serving) -> bool:
    both = len(_began) == 2
    worker.open(*_gates)
    return both


def test_work_is_found_though_nobody_rings(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queues are looked at every few seconds whatever happens; the bell only makes it quicker."""
    monkeypatch.setattr(lane_a, "_POLL", 0.1)
    with serving(world) as worker:
        # The first one by its bell: the look that every worker takes when it starts is over then.
        assert ended(world, worker.submit(plan("rung", step_type="done"))) == "COMPLETED"
        assert ended(world, world.submit(plan("silent", step_type="done"))) == "COMPLETED"
