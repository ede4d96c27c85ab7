"""A worker process: one loop for computes, threads with a connection each for lanes, heartbeat, sweeper and readers."""

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.secrets import CALLBACK_TOKENS, installation_secret
from docmill.engine.asking import Models
from docmill.engine.at_once import StepsAtOnce
from docmill.engine.bell import CONTROL, open_bell
from docmill.engine.children import Children, ChildSettings
from docmill.engine.chores import Chore, Chores
from docmill.engine.failpoints import failpoint
from docmill.engine.inflight import Inflight
from docmill.engine.known import KnownJobs
from docmill.engine.lane import StoreThread
from docmill.engine.lane_a import LaneA
from docmill.engine.lane_b import LaneB
from docmill.engine.lease import Heartbeat, Lease, LeaseSettings
from docmill.engine.loading import Loader, PromptResolver
from docmill.engine.pools import PoolSettings, PoolUse, Slots
from docmill.engine.pruning import Pruner
from docmill.engine.pulse import Pulse
from docmill.engine.runner import Runner
from docmill.engine.store import PlanSource, Store
from docmill.engine.sweeper import Sweep, Sweeper
from docmill.engine.takeover import WorkerLock
from docmill.model.statuses import StepKind
from docmill.model.tokens import Tokens
from docmill.plugin import Registry

log = logging.getLogger("docmill.engine")

_SWITCH_INTERVAL = 0.001
"""Seconds a thread keeps the interpreter: the default of 5 ms would be added to every commit under load."""
_GC_THRESHOLD = (50_000, 20, 20)
"""The default of 700 objects makes the collector walk thousands of live records many times a second, for nothing."""

_SETTLING = 1.0
"""Seconds a drain waits at least for the transactions under way when it begins."""


def default_pools() -> tuple[PoolSettings, ...]:
    """A pool for each kind of step."""
    return tuple(PoolSettings(name=kind.value) for kind in StepKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How one worker process behaves."""

    run_dir: Path
    pools: Sequence[PoolSettings] = field(default_factory=default_pools)
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    children: ChildSettings = field(default_factory=ChildSettings)
    drain_seconds: float = 20.0
    retention: timedelta | None = None
    """How long finished jobs are kept; None: for ever."""
    read_patience: float = 60.0
    """Seconds for one read on behalf of a step, the entity loader of a plug-in included."""
    chores: Sequence[Chore] = ()
    """What else is to be looked after in the background, by parts that the engine knows nothing of."""


class SweeperThread(StoreThread):
    """Sweeps at its interval, and at once when asked."""

    def __init__(
        self,
        database: Database,
        plans: PlanSource,
        *,
        run_dir: Path,
        lease: Lease,
        interval: float,
        queues: tuple[str, ...],
        on_sweep: Callable[[Sweep], None],
        retention: timedelta | None = None,
    ) -> None:
        super().__init__("sweeper", database, plans)
        self._run_dir = run_dir
        self._lease = lease
        self._interval = interval
        self._queues = queues
        self._on_sweep = on_sweep
        self._pruner = None if retention is None else Pruner(retention)

    def run(self) -> None:
        while True:
            if self._lease.holds:
                sweep, _ = self.persist(self._sweep)
                self._on_sweep(sweep)
                self._prune(sweep.now)
            if self.stopping.wait(self._interval):
                return

    def _prune(self, now: datetime) -> None:
        pruner = self._pruner
        if pruner is not None and pruner.due(now):
            self.persist(lambda store: pruner.prune(store, now))

    def _sweep(self, store: Store) -> Sweep:
        lease = self._lease
        sweeper = Sweeper(
            store,
            run_dir=self._run_dir,
            own_id=lambda: lease.worker_id,
            patience=self._database.patience,
            may_judge=lambda: lease.may_judge,
        )
        return sweeper.sweep(self._queues)


class Worker:
    """Assembles the parts; `run` lives until `stop` is called (from any thread or signal handler)."""

    def __init__(
        self,
        database: Database,
        registry: Registry,
        settings: WorkerSettings,
        resolver: PromptResolver | None = None,
        *,
        models: Models | None = None,
        children: Children | None = None,
    ) -> None:
        """`children`: some that were started before, to be ended with the worker; None: of its own."""
        self._models = models
        self._database = database
        self._registry = registry
        self._settings = settings
        self._resolver = resolver
        self._slots = Slots(settings.pools)
        self._children = children or Children(settings.children)
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None
        self._stop_asked = False
        self.ready = Event()
        """Set once the worker is registered and claims."""

    def use(self) -> list[PoolUse]:
        """The pools as they are now."""
        return self._slots.use()

    def stop(self) -> None:
        """Drain and end."""
        self._stop_asked = True
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)

    async def run(self) -> None:
        """Serve until stopped. Raises what ended a lane, should one end."""
        sys.setswitchinterval(_SWITCH_INTERVAL)
        # What is loaded now stays; the small records of the engine come and go without cycles.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLD)
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        if self._stop_asked:
            self._children.close()
            return
        settings, slots = self._settings, self._slots
        database = self._database.as_engine()
        plans, known = PlanSource(), KnownJobs()
        lease = Lease(settings.lease.duration)
        lock = WorkerLock(settings.run_dir)
        bell = open_bell(database, settings.run_dir)
        loader = Loader(
            self._database,
            self._registry,
            self._resolver,
            patience=settings.read_patience,
            database_answers=lambda: lease.holds,
        )
        inflight = Inflight(on_lost=lambda keys: runner.drop(keys))
        runner = Runner(
            registry=self._registry,
            loader=loader,
            slots=slots,
            inflight=inflight,
            children=self._children,
            lease=lease,
            tokens=Tokens(await asyncio.to_thread(self._secret)),
            models=self._models,
        )
        at_once = StepsAtOnce(self._registry, slots, runner.context)
        lane_a = LaneA(
            database,
            plans,
            known,
            lease=lease,
            slots=slots,
            inflight=inflight,
            bell=bell,
            on_started=runner.start,
            at_once=at_once,
        )
        lane_b = LaneB(database, plans, known, lease=lease, slots=slots, on_outcome=lane_a.take_over, at_once=at_once)
        runner.lane_a, runner.lane_b = lane_a, lane_b

        def on_new_id(worker_id: str) -> None:
            lock.take(worker_id)
            # Whatever ran under the old id is lost; the database will say so when asked.
            lane_a.ring(frozenset({CONTROL}))

        chores = Chores(settings.chores)

        def on_sweep(sweep: Sweep) -> None:
            _after_sweep(sweep, lane_a, bell.ring)
            chores.ask(sweep.now)

        # Several times between two looks: a beat that comes a little late is no reason to worry.
        pulse = Pulse(min(1.0, settings.lease.heartbeat / 4))
        heartbeat = Heartbeat(database, settings.lease, lease, on_new_id=on_new_id, beats=lambda: pulse.beats)
        sweeper = SweeperThread(
            database,
            plans,
            run_dir=settings.run_dir,
            lease=lease,
            interval=settings.lease.sweep,
            queues=slots.queues,
            on_sweep=on_sweep,
            retention=settings.retention,
        )
        await asyncio.to_thread(heartbeat.register)
        for thread in (lane_a, lane_b, sweeper):
            thread.on_death = self._die
            thread.start()
        heartbeat.on_death = self._die
        chores.start()
        pulse.start()
        heartbeat.start()
        bell.listen(lease.worker_id, lane_a.ring)
        log.info("worker %s is ready", lease.worker_id)
        self.ready.set()
        try:
            await self._stop.wait()
        finally:
            log.info("worker %s drains", lease.worker_id)
            slots.close()
            failpoint("drain.begun")
            if self._failure is None:
                ends_at = self._loop.time() + settings.drain_seconds
                for lane in (lane_a, lane_b):
                    # What it is claiming this moment is ours too, to be finished or given back.
                    await asyncio.to_thread(lane.settle, max(_SETTLING, ends_at - self._loop.time()))
                await runner.drain(ends_at - self._loop.time())
                await asyncio.to_thread(lane_b.close)
                await asyncio.to_thread(lane_a.close)
            await asyncio.to_thread(sweeper.close)
            await asyncio.to_thread(chores.close)
            await asyncio.to_thread(heartbeat.stop)
            pulse.stop()
            bell.close()
            loader.close()
            self._children.close()
            lock.drop()
        if self._failure is not None:
            raise self._failure

    def _secret(self) -> bytes:
        with self._database.as_engine().read() as connection:
            now = database_now(connection)
        return installation_secret(self._database, CALLBACK_TOKENS, now=now)

    def _die(self, error: BaseException) -> None:
        """A lane ended by an error nobody foresaw: the process must not live on half alive."""
        self._failure = error
        self.stop()


def _after_sweep(sweep: Sweep, lane_a: LaneA, ring: Callable[[frozenset[str]], None]) -> None:
    lane_a.note_clock(sweep.now)
    if sweep.dead:
        steps = f"{sweep.recovered} step{'' if sweep.recovered == 1 else 's'}"
        log.warning("took over %s from workers that died: %s", steps, ", ".join(sweep.dead))
    if sweep.left_ready:
        lane_a.ring(sweep.left_ready)
        ring(sweep.left_ready)
    if sweep.next_due is not None:
        lane_a.set_timers([(sweep.next_due, queue) for queue in lane_a.queues])
