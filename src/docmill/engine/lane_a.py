"""Lane A: our own SQL only. Claims, checkpoints, parts, and completions of steps without a processor, group-committed.

There is no timer: while one transaction commits, reports gather; when it ends, all that wait go into the next.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic

import orjson

from docmill.db.database import Database, is_refusal
from docmill.engine.batch import AtOnce, Batch, Outcome, Part, QueueClaim, Report, StepRun
from docmill.engine.bell import CONTROL, Bell
from docmill.engine.events import Checkpointed, Completed, Failed, Released, Suspended
from docmill.engine.failpoints import failpoint
from docmill.engine.inflight import Inflight
from docmill.engine.known import KnownJobs
from docmill.engine.lane import StoreThread
from docmill.engine.lease import Lease
from docmill.engine.pools import Reservation, Slots
from docmill.engine.store import PlanSource, Store

MAX_STEPS = 500
MAX_BYTES = 4 * 1024 * 1024
_POLL = 5.0
"""Seconds between looks at the queues when nobody rings."""
_RING_GAP = 0.01
"""Seconds between two rings to other processes."""
_RECHECK = 0.05
"""Seconds until a step that seems lost is looked at again."""

log = logging.getLogger("docmill.engine")


@dataclass(frozen=True, slots=True)
class Item:
    """One report or part on its way into a transaction, and whom to tell."""

    entry: Report | Part
    queue: str | None
    """Slot to free when the transaction takes the report; None: the step keeps its slot."""
    done: Callable[[bool], None] | None
    """Called on the lane's thread with whether it was accepted."""
    size: int


class LaneA(StoreThread):
    """The thread of lane A."""

    def __init__(
        self,
        database: Database,
        plans: PlanSource,
        known: KnownJobs,
        *,
        lease: Lease,
        slots: Slots,
        inflight: Inflight,
        bell: Bell,
        on_started: Callable[[Sequence[StepRun]], None],
        at_once: AtOnce | None = None,
    ) -> None:
        super().__init__("lane-a", database, plans, known)
        self._lease = lease
        self._slots = slots
        self._inflight = inflight
        self._bell = bell
        self._on_started = on_started
        self._at_once = at_once
        self._items: deque[Item] = deque()
        self._hints = set(slots.queues)
        self._turns = dict.fromkeys(slots.queues, 0)
        self._timers: list[tuple[datetime, str]] = []
        self._reconcile = False
        self._next_poll = 0.0
        self._recheck_at: float | None = None
        self._unrung: set[str] = set()
        self._ring_at = 0.0
        self.clock_offset = timedelta(0)
        """The database's clock minus ours."""

    # Called from any thread.

    def put(self, item: Item) -> None:
        """Hand in a report or part."""
        with self._wake:
            self._items.append(item)
            self._wake.notify()

    def ring(self, queues: frozenset[str]) -> None:
        """Something may be ready in these queues; CONTROL: look whether our steps are still ours."""
        with self._wake:
            if CONTROL in queues:
                self._reconcile = True
                self._hints.update(self._slots.queues)
            self._hints.update(queue for queue in queues if queue in self._turns)
            self._wake.notify()

    def set_timers(self, timers: Sequence[tuple[datetime, str]]) -> None:
        """Look at the queue when the time has come."""
        with self._wake:
            self._timers = sorted({*self._timers, *timers})
            self._wake.notify()

    @property
    def queues(self) -> tuple[str, ...]:
        return self._slots.queues

    def take_over(self, outcome: Outcome, doubtful: bool) -> None:
        """What lane B's transaction started and left ready; `doubtful` as in `persist`."""
        if outcome.started:
            self._inflight.add(outcome.started)
            self._on_started(outcome.started)
        if doubtful:
            self.ring(frozenset({CONTROL}))
        self._announce(outcome)
        if self._hints:
            # Its slots may serve what waits.
            with self._wake:
                self._wake.notify()

    def note_clock(self, database_now: datetime) -> None:
        """How far the database's clock is from ours, give or take the time it took to ask."""
        self.clock_offset = database_now - datetime.now(UTC)

    def now(self) -> datetime:
        """The database's time, as well as we know it without asking."""
        return datetime.now(UTC) + self.clock_offset

    # The thread.

    def run(self) -> None:
        while True:
            self._resting.set()
            items, claims, reconcile = self._next()
            if not items and not claims and not reconcile and self.stopping.is_set():
                return
            if not self._lease.hold(self.stopping.is_set):
                return
            self._ring_others()
            if reconcile:
                self._look_after_own()
            if items or claims:
                self._commit(items, claims)

    def _next(self) -> tuple[list[Item], list[QueueClaim], bool]:
        """What the next transaction does; waits until there is something."""
        with self._wake:
            while True:
                self._due_timers()
                claims = self._claims()
                late = bool(self._unrung) and monotonic() >= self._ring_at
                if self._items or claims or late or self._reconcile or self.stopping.is_set():
                    break
                self._wake.wait(self._patience())
            self._resting.clear()
            reconcile, self._reconcile = self._reconcile, False
            items: list[Item] = []
            size = 0
            while self._items and len(items) < MAX_STEPS and size < MAX_BYTES:
                item = self._items.popleft()
                size += item.size
                items.append(item)
            return items, claims, reconcile

    def _patience(self) -> float:
        patience = (self._recheck_at or self._next_poll) - monotonic()
        if self._unrung:
            patience = min(patience, self._ring_at - monotonic())
        if self._timers:
            patience = min(patience, (self._timers[0][0] - self.now()).total_seconds())
        return max(0.0, patience)

    def _due_timers(self) -> None:
        now = self.now()
        while self._timers and self._timers[0][0] <= now:
            self._hints.add(self._timers.pop(0)[1])
            failpoint("timer.due")
        if self._recheck_at is not None and monotonic() >= self._recheck_at:
            self._reconcile, self._recheck_at = True, None
        if monotonic() >= self._next_poll:
            self._reconcile = True
            self._next_poll = monotonic() + _POLL
            self._hints.update(self._slots.queues)

    def _claims(self) -> list[QueueClaim]:
        """Reserve slots in every queue that may have something, pools of high priority first."""
        claims = []
        for queue in self._slots.queues if self._hints else ():
            if queue not in self._hints:
                continue
            pool = self._slots.pools.get(queue) or self._slots.pools[queue[:-1]]
            limit = self._slots.reserve_up_to(queue, min(MAX_STEPS, pool.claims_per_cycle or MAX_STEPS))
            if limit:
                # The hint is used up now, not after the claim: whoever rings meanwhile is not forgotten.
                self._hints.discard(queue)
                self._turns[queue] += 1
                claims.append(QueueClaim(queue=queue, limit=limit, turn=self._turns[queue]))
        return claims

    def _commit(self, items: list[Item], claims: list[QueueClaim]) -> None:
        try:
            self._commit_together(items, claims)
        except Exception as error:
            if not items:
                raise
            # One of them holds something that the database refuses. The others must not suffer for it.
            log.warning("lane A: a batch of %d was refused, going one by one: %s", len(items), error)
            for claim in claims:
                self._slots.release(claim.queue, claim.limit)
            for item in items:
                self._commit_alone(item)

    def _commit_alone(self, item: Item) -> None:
        try:
            self._commit_together([item], [])
        except Exception as error:
            replacement = _refused(item, error) if is_refusal(error) else None
            if replacement is None:
                raise
            self._commit_together([replacement], [])

    def _commit_together(self, items: list[Item], claims: list[QueueClaim]) -> None:
        reports = [item for item in items if isinstance(item.entry, Report)]
        parts = [item for item in items if isinstance(item.entry, Part)]
        worker = self._lease.worker_id
        # The slots of finished steps are free once we commit: what follows may use them in the same transaction.
        freed = Counter(item.queue for item in reports if item.queue is not None)

        def work(store: Store) -> Outcome:
            reservation = Reservation(self._slots, freed)
            try:
                outcome = store.commit(
                    Batch(
                        reports=[item.entry for item in reports],  # type: ignore[misc]  # sorted out above
                        parts=[item.entry for item in parts],  # type: ignore[misc]
                        claims=claims,
                        worker=worker,
                        reserve=reservation.take,
                        at_once=self._at_once,
                    )
                )
            except BaseException:
                reservation.undo()
                raise
            reservation.settle()
            return outcome

        outcome, doubtful = self.persist(work)
        self._settle(outcome, claims)
        for item, good in zip(reports, outcome.accepted, strict=True):
            self._tell(item, good)
        for item, good in zip(parts, outcome.parts_accepted, strict=True):
            self._tell(item, good)
        if outcome.started:
            failpoint("claim.taken")
            self._inflight.add(outcome.started)
            self._on_started(outcome.started)
        if doubtful:
            # A commit whose answer was lost may have claimed steps that nobody here knows of.
            self.ring(frozenset({CONTROL}))
        self._announce(outcome)

    def _settle(self, outcome: Outcome, claims: list[QueueClaim]) -> None:
        """Give back the slots that the claims did not use."""
        used: dict[str, int] = {}
        for run in outcome.started:
            if not run.on_the_spot:
                used[run.queue] = used.get(run.queue, 0) + 1
        with self._wake:
            for claim in claims:
                self._slots.release(claim.queue, claim.limit - used.get(claim.queue, 0))
                if claim.queue not in outcome.exhausted:
                    self._hints.add(claim.queue)

    def _announce(self, outcome: Outcome) -> None:
        """Steps left ready: for us when a slot frees, for others at once; timers for what is due later."""
        if outcome.due:
            self.set_timers([(due_at, queue) for queue, due_at in outcome.due if queue in self._turns])
            failpoint("retry.scheduled")
        if outcome.left_ready:
            with self._wake:
                self._hints.update(queue for queue in outcome.left_ready if queue in self._turns)
                # What we have room for we claim ourselves in the next transaction.
                self._unrung.update(
                    queue for queue, count in outcome.left_ready.items() if count > self._slots.free(queue)
                )
        self._ring_others()

    def _ring_others(self) -> None:
        """Tell other processes, but not a hundred times a second."""
        with self._wake:
            if not self._unrung or monotonic() < self._ring_at:
                return
            queues, self._unrung = self._unrung, set()
            self._ring_at = monotonic() + _RING_GAP
        self._bell.ring(queues)

    @staticmethod
    def _tell(item: Item, good: bool) -> None:
        if item.done is not None:
            item.done(good)

    def _look_after_own(self) -> None:
        """Compare the steps we run with those the database says are ours."""
        worker = self._lease.worker_id

        def work(store: Store) -> set[tuple[str, int, int]]:
            with store.session.read():
                return set(store.sql.running_steps(worker, 100_000))

        ours, _ = self.persist(work)
        unknown = self._inflight.compare(ours)
        self._recheck_at = monotonic() + _RECHECK if self._inflight.doubtful else None
        if unknown:
            reports = [
                Report(job_id=job, event=Released(position=position, epoch=epoch)) for job, position, epoch in unknown
            ]
            self.persist(lambda store: store.commit(Batch(reports=reports)))
            self.ring(frozenset(self._slots.queues))


def _refused(item: Item, error: Exception) -> Item | None:
    """What to report instead of what the database refuses; None: there is nothing to put in its place."""
    match item.entry:
        case Report(event=Checkpointed() | Completed() | Failed() | Suspended() as event):
            return _failed(item.entry.job_id, event.position, event.epoch, error, item.queue, item.done)
        case Part() as part:
            # The step fails with its part, and then learns that it has nothing more to say.
            done = item.done
            tell = None if done is None else lambda good: done(False)
            return _failed(part.job_id, part.position, part.epoch, error, item.queue, tell)
        case _:
            return None


def _failed(
    job_id: str, position: int, epoch: int, error: Exception, queue: str | None, done: Callable[[bool], None] | None
) -> Item:
    message = f"The database refused the outcome of this step: {error}"[:500].replace("\0", "")
    record = orjson.dumps({"code": "result_refused", "message": message}).decode()
    event = Failed(position=position, epoch=epoch, error=record, permanent=True)
    return Item(Report(job_id=job_id, event=event), queue, done, 500)
