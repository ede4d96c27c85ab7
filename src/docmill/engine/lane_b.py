"""Lane B: processors. Up to 32 applies of one organisation in one transaction, with the completion of their steps.

First without savepoints (each costs a round trip, and more than 64 overflow PostgreSQL's subtransaction cache); on any
error the batch rolls back and each step runs alone, so one bad apply costs its neighbours a retry and nothing else.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from sqlalchemy import Connection

from docmill.db.database import Database
from docmill.engine.batch import AtOnce, Batch, NewJob, Outcome, Report, StepRun
from docmill.engine.context import AppliedDatabase, Applying
from docmill.engine.events import Completed
from docmill.engine.failpoints import failpoint
from docmill.engine.follow_ups import Wanted, newest_template, resolve_follow_ups
from docmill.engine.issues import NewIssue
from docmill.engine.known import KnownJobs
from docmill.engine.lane import StoreThread
from docmill.engine.lease import Lease
from docmill.engine.pools import Reservation, Slots
from docmill.engine.raised import raised_by_processor
from docmill.engine.store import PlanSource, Store
from docmill.engine.transaction import Transaction
from docmill.engine.write_only import NeedsFullDatabase, WriteOnlyDatabase

MAX_STEPS = 32

log = logging.getLogger("docmill.engine")


@dataclass(frozen=True, slots=True)
class Apply:
    """One result to apply, and whom to tell."""

    run: StepRun
    processor: Callable[[Any, Any], None]
    result: str
    stored: bool
    """The result is checkpointed already and need not be written again."""
    follow_ups: tuple[NewJob, ...]
    issues: tuple[NewIssue, ...]
    recovered: str | None
    """The failure that the result makes up for."""
    done: Callable[[], None]
    """Applied and completed, or lost to another worker: in either case no longer ours."""
    failed: Callable[[BaseException], None]


class LaneB(StoreThread):
    """The thread of lane B."""

    def __init__(
        self,
        database: Database,
        plans: PlanSource,
        known: KnownJobs,
        *,
        lease: Lease,
        slots: Slots,
        on_outcome: Callable[[Outcome, bool], None],
        at_once: AtOnce | None = None,
    ) -> None:
        super().__init__("lane-b", database, plans, known)
        self._lease = lease
        self._slots = slots
        self._on_outcome = on_outcome
        self._at_once = at_once
        self._waiting: deque[Apply] = deque()
        self._thorough: set[Callable[[Any, Any], None]] = set()
        """Processors that were found to need more than the fast way."""

    def put(self, apply: Apply) -> None:
        """Hand in a result. Called from any thread."""
        with self._wake:
            self._waiting.append(apply)
            self._wake.notify()

    def run(self) -> None:
        while True:
            self._resting.set()
            batch = self._next()
            if not batch or not self._lease.hold(self.stopping.is_set):
                return
            self._apply_all(batch)

    def _next(self) -> list[Apply]:
        with self._wake:
            while not self._waiting:
                if self.stopping.is_set():
                    return []
                self._wake.wait()
            self._resting.clear()
            org_id = self._waiting[0].run.job.org_id
            batch: list[Apply] = []
            others: deque[Apply] = deque()
            while self._waiting and len(batch) < MAX_STEPS:
                apply = self._waiting.popleft()
                (batch if apply.run.job.org_id == org_id else others).append(apply)
            # Others keep their place in front.
            self._waiting.extendleft(reversed(others))
        return sorted(batch, key=lambda apply: (apply.run.job.entity_type, apply.run.job.entity_id))

    def _apply_all(self, batch: list[Apply]) -> None:
        if not any(apply.processor in self._thorough for apply in batch):
            try:
                self._commit(batch, write_only=True)
                return
            except NeedsFullDatabase:
                pass
            except Exception as error:
                log.debug("lane B: %d applies go the full way: %s", len(batch), error)
        try:
            self._commit(batch)
        except Exception as error:
            if len(batch) == 1:
                batch[0].failed(error)
                return
            log.debug("lane B: %d applies fall back to one by one: %s", len(batch), error)
            for apply in batch:
                try:
                    self._commit([apply])
                except Exception as own:
                    apply.failed(own)

    def _commit(self, batch: Sequence[Apply], *, write_only: bool = False) -> None:
        """Apply and complete in one transaction, tried again for as long as only the database is at fault."""
        outcome, doubtful = self.persist(lambda store: self._transact(store, batch, write_only))
        for apply in batch:
            apply.done()
        self._on_outcome(outcome, doubtful)

    def _transact(self, store: Store, batch: Sequence[Apply], write_only: bool) -> Outcome:
        # The slots of these steps are free once we commit: what follows may use them in the same transaction.
        reservation = Reservation(self._slots, Counter(apply.run.queue for apply in batch))

        try:
            with store.session.write() as connection:
                # What a processor writes, and what it sees, is its own organisation's.
                store.session.act_for(batch[0].run.job.org_id)
                transaction = store.begin()
                transaction.lock(Batch(hold=[apply.run.job.id for apply in batch]))
                if write_only:
                    reports = self._write_only(batch, connection, transaction)
                else:
                    reports = [_applied(apply, AppliedDatabase(connection), connection, transaction) for apply in batch]
                complete = Batch(
                    reports=reports, worker=self._lease.worker_id, reserve=reservation.take, at_once=self._at_once
                )
                accepted = transaction.fold(reports)
                outcome = transaction.finish(complete, accepted)
                failpoint("commit.inside")
            store.remember(transaction)
            failpoint("commit.after")
        except BaseException:
            reservation.undo()
            raise
        reservation.settle()
        return outcome

    def _write_only(self, batch: Sequence[Apply], connection: Connection, transaction: Transaction) -> list[Report]:
        database = WriteOnlyDatabase(connection)
        reports = []
        with database.together():
            for apply in batch:
                try:
                    reports.append(_applied(apply, database, connection, transaction))
                except NeedsFullDatabase:
                    self._thorough.add(apply.processor)
                    raise
        return reports


def _applied(
    apply: Apply, database: AppliedDatabase | WriteOnlyDatabase, connection: Connection, transaction: Transaction
) -> Report:
    """Run the processor, if the step is still ours, and say what to complete."""
    run = apply.run
    # Read under the job's lock: what is ours now is ours until the commit.
    if not transaction.holds(run.job.id, run.step.position, run.state.epoch):
        return _completion(apply)
    follow_ups, issues = _run_processor(apply, database, connection, transaction)
    return _completion(apply, follow_ups, issues)


def _completion(apply: Apply, follow_ups: tuple[NewJob, ...] = (), issues: tuple[NewIssue, ...] = ()) -> Report:
    run = apply.run
    event = Completed(
        position=run.step.position,
        epoch=run.state.epoch,
        result=None if apply.stored else apply.result,
        error=apply.recovered,
    )
    return Report(
        job_id=run.job.id,
        event=event,
        follow_ups=(*apply.follow_ups, *follow_ups),
        issues=(*apply.issues, *issues),
    )


def _run_processor(
    apply: Apply, database: AppliedDatabase | WriteOnlyDatabase, connection: Connection, transaction: Transaction
) -> tuple[tuple[NewJob, ...], tuple[NewIssue, ...]]:
    context = Applying(apply.run, database, transaction.now)
    failpoint("apply.before")
    apply.processor(context, orjson.loads(apply.result))
    database.raise_swallowed()
    failpoint("apply.after")
    if isinstance(database, WriteOnlyDatabase) and context.follow_ups:
        database.refuse()
    wanted = Wanted(apply.run.run, context.follow_ups)
    newest = partial(newest_template, connection)
    follow_ups = resolve_follow_ups(newest, apply.run, wanted, offset=len(apply.follow_ups))
    return follow_ups, raised_by_processor(apply.run, context.issues)
