"""The sweeper: finds what is due although nobody said so. Truth is in the database; everything else is a hint.

It expires workers whose lease ran out or whose process is gone, gives their steps back (their epochs raised), fails
waits past their deadline, and looks ahead to the next timer. Any number of sweepers may run at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import random

from sqlalchemy import ColumnElement, Connection, update

from docmill.db.clock import database_now
from docmill.db.tables import workers
from docmill.db.tables.workers import WorkerStatus
from docmill.engine.batch import Batch, Report
from docmill.engine.cancelling import BEFORE_ALL, cancel_some
from docmill.engine.events import Crashed, Failed
from docmill.engine.failpoints import failpoint
from docmill.engine.sql.statements import CANCELLED_BATCHES, FORGOTTEN_CALLBACKS, HUNGRY_BATCHES
from docmill.engine.store import Store
from docmill.engine.takeover import gone_workers

_BATCH = 200
_LIMIT = {"limit": _BATCH}
_DEADLINE_PASSED = '{"code":"deadline_passed","message":"No answer came before the deadline of this step."}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What one sweep found."""

    dead: tuple[str, ...]
    recovered: int
    overdue: int
    next_due: datetime | None
    now: datetime
    left_ready: frozenset[str]


class Sweeper:
    """Sweeps on one store of its own."""

    def __init__(
        self,
        store: Store,
        *,
        run_dir: Path,
        own_id: Callable[[], str],
        patience: float,
        may_judge: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._patience = patience
        self._run_dir = run_dir
        self._own_id = own_id
        self._may_judge = may_judge

    def sweep(self, queues: tuple[str, ...]) -> Sweep:
        """Look once at everything."""
        dead = [*self._bury_gone(), *(self._bury_expired() if self._may_judge() else ())]
        ready: set[str] = set()
        with self._store.session.read():
            if self._store.sql.end_silent(self._patience):
                # What it had locked was passed over by every claim so far.
                ready.update(queues)
        recovered = self._drain(self._orphans, ready)
        # Before the deadlines: an answer that came in time counts, though its receiver died.
        self._answer_forgotten(ready)
        overdue = self._drain(self._overdue, ready)
        self._feed_batches(ready)
        with self._store.session.read() as connection:
            now = database_now(connection)
            next_due = self._store.sql.next_due(queues, now)
        return Sweep(
            dead=tuple(dead),
            recovered=recovered,
            overdue=overdue,
            next_due=next_due,
            now=now,
            left_ready=frozenset(ready),
        )

    def _bury_gone(self) -> list[str]:
        """Processes on this host that are no more, whatever their lease says."""
        buried = []
        for worker_id in gone_workers(self._run_dir, own=self._own_id()):
            # Committed while the lock is held, before the file goes: if we die here, the next sweeper finds it again.
            with self._store.session.write() as connection:
                dead = _mark_dead(connection, workers.c.id == worker_id)
            if dead:
                buried.append(worker_id)
            failpoint("sweep.marked")
        return buried

    def _bury_expired(self) -> list[str]:
        with self._store.session.read() as connection:
            query = workers.select().where(
                workers.c.status == WorkerStatus.ALIVE, workers.c.expires_at < database_now(connection)
            )
            expired = [row.id for row in connection.execute(query)]
        return [worker_id for worker_id in expired if self._bury_if_expired(worker_id)]

    def _bury_if_expired(self, worker_id: str) -> bool:
        with self._store.session.write() as connection:
            # Read again under the row's lock: a renewal may have come in between.
            return _mark_dead(
                connection, (workers.c.id == worker_id) & (workers.c.expires_at < database_now(connection))
            )

    def _drain(self, find: Callable[[], list[Report]], ready: set[str]) -> int:
        """Batch after batch until a round finds nothing it could change (what others hold is theirs)."""
        total = 0
        while True:
            reports = find()
            if not reports:
                return total
            outcome = self._store.commit(Batch(reports=reports, wait=False))
            failpoint("sweep.batch")
            ready.update(outcome.left_ready)
            changed = sum(outcome.accepted)
            total += changed
            if changed == 0 or len(reports) < _BATCH:
                return total

    def _answer_forgotten(self, ready: set[str]) -> None:
        """Callbacks that were stored and not acted on: whoever received them is no more."""
        while True:
            with self._store.session.read():
                found = [(job, position) for job, position in self._store.sql.query(FORGOTTEN_CALLBACKS, _LIMIT)]
            if not found:
                return
            outcome = self._store.commit(Batch(answer=found, wait=False))
            failpoint("sweep.batch")
            ready.update(outcome.left_ready)
            if not outcome.callbacks or len(found) < _BATCH:
                return

    def _feed_batches(self, ready: set[str]) -> None:
        """Batches with room for jobs they hold back: those jobs were held by somebody when room was made."""
        with self._store.session.read():
            hungry = self._store.sql.query(HUNGRY_BATCHES, _LIMIT)
            cancelled = self._store.sql.query(CANCELLED_BATCHES, _LIMIT)
        for (batch_id,) in hungry:
            ready.update(self._store.commit(Batch(look_at=[batch_id])).left_ready)
        for (batch_id,) in cancelled:
            # Whoever said so may have died in the middle of it.
            last: str | None = BEFORE_ALL
            while last is not None:
                last = cancel_some(self._store, batch_id, last, wait=False).last

    def _orphans(self) -> list[Report]:
        with self._store.session.read():
            found = self._store.sql.orphaned_steps(_BATCH)
        return [Report(job_id=job, event=Crashed(position=position, epoch=epoch)) for job, position, epoch in found]

    def _overdue(self) -> list[Report]:
        with self._store.session.read() as connection:
            found = self._store.sql.overdue_steps(database_now(connection), _BATCH)
        return [
            Report(
                job_id=job,
                event=Failed(position=position, epoch=epoch, error=_DEADLINE_PASSED, jitter=random()),
            )
            for job, position, epoch in found
        ]


def _mark_dead(connection: Connection, condition: ColumnElement[bool]) -> bool:
    """Zero rows: it said goodbye, renewed its lease, or somebody else was first."""
    statement = update(workers).where(condition, workers.c.status == WorkerStatus.ALIVE)
    return connection.execute(statement.values(status=WorkerStatus.DEAD)).rowcount > 0
