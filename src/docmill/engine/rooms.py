"""Room in batches: how many of a batch's jobs may be active at once, counted in the batch's row under its lock.

The lock comes after those of jobs, and jobs to be freed are locked without waiting, so nobody waits in a circle.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import orjson

from docmill.engine.batch import NewBatch
from docmill.engine.events import Event, Freed, Rerun
from docmill.engine.failpoints import failpoint
from docmill.engine.locked import LockedJob
from docmill.engine.sql.rows import HotSql, WrongCount
from docmill.engine.sql.statements import INSERT_BATCH, LOCK_BATCH, LOCK_HELD, UPDATE_BATCH
from docmill.engine.state import JobState
from docmill.model.errors import Conflict

AT_ONCE = 500
"""Jobs freed by one transaction, so that a limit raised by thousands keeps nobody waiting; the rest follow."""

_Counts = tuple[int, int]
"""Active, held."""


class Rooms:
    """The batches that one transaction touches."""

    def __init__(self, sql: HotSql, now: datetime, load: Callable[[dict[str, int]], Iterable[LockedJob]]) -> None:
        self._sql = sql
        self._now = now
        self._load = load

    def open(self, batches: Sequence[NewBatch], jobs: Iterable[LockedJob]) -> None:
        """Insert new batches with the jobs that were submitted for them."""
        counts: dict[str, list[int]] = {batch.id: [0, 0] for batch in batches}
        for job in jobs:
            if job.was.head.batch_id in counts:
                counts[job.was.head.batch_id][job.state.held] += 1
        for batch in batches:
            active, held = counts[batch.id]
            row = {
                "id": batch.id,
                "org_id": batch.org_id,
                "title": batch.title,
                "max_active": batch.max_active,
                "total": active + held,
                "active": active,
                "held": held,
                "digest": batch.digest,
                "metadata": orjson.dumps(batch.metadata).decode(),
                "created_by": batch.created_by,
                "now": self._now,
                "finished_at": None if active else self._now,
            }
            if self._sql.run_each(INSERT_BATCH, [row]) == 0 and active:
                # Its counters know nothing of these jobs.
                raise Conflict(f"There is a batch {batch.id} already, with other jobs.", batch_id=batch.id)

    def settle(self, jobs: Iterable[LockedJob], look_at: Sequence[str]) -> None:
        """Count what these jobs came to, and free as many held ones as there is room for."""
        members: dict[str, list[LockedJob]] = {batch_id: [] for batch_id in look_at}
        for job in jobs:
            if job.was.head.batch_id is not None and _counts(job.was.state) != _counts(job.state):
                members.setdefault(job.was.head.batch_id, []).append(job)
        for batch_id in sorted(members):
            self._settle(batch_id, members[batch_id])

    def _settle(self, batch_id: str, members: Sequence[LockedJob]) -> None:
        rows = self._sql.query(LOCK_BATCH, {"id": batch_id})
        if not rows:
            # Pruned: nobody else would let its jobs go on.
            for job in members:
                job.fold(Freed(), self._now)
            return
        max_active, active, held, cancelling = rows[0]
        before = (active, held)
        for job in members:
            was_active, was_held = _counts(job.was.state)
            now_active, now_held = _counts(job.state)
            active += now_active - was_active
            held += now_held - was_held
        room = 0 if cancelling else min(max_active - active, held, AT_ONCE)
        freed = self._free(batch_id, room, members) if room > 0 else 0
        active, held = active + freed, held - freed
        if (active, held) != before:
            self._count(batch_id, active, held, cancelling=bool(cancelling))
        failpoint("batch.counted")

    def _count(self, batch_id: str, active: int, held: int, *, cancelling: bool) -> None:
        finished = not active and not held
        row = {
            "id": batch_id,
            "active": active,
            "held": held,
            "finished_at": self._now if finished else None,
            # The cancel is done; whoever runs the jobs again wants them to run.
            "cancelling": cancelling and not finished,
        }
        if self._sql.run_each(UPDATE_BATCH, [row]) != 1:
            raise WrongCount(f"batch {batch_id} would have {active} active jobs, more than its limit")

    def _free(self, batch_id: str, room: int, members: Sequence[LockedJob]) -> int:
        """Free up to `room` jobs, oldest first: those held back in this very transaction, and those of before.

        Members that have been freed or ended here still look held in the database: they must not use up the limit.
        """
        found = self._sql.query(LOCK_HELD, {"batch_id": batch_id, "limit": room + len(members)})
        held = {job.was.head.id: job for job in members if job.state.held}
        held.update((job.was.head.id, job) for job in self._load(dict(found)))
        freed = 0
        for job_id in sorted(held):
            if freed < room and held[job_id].fold(Freed(), self._now):
                freed += 1
        return freed


def in_turn(job: LockedJob, event: Event) -> Event:
    """A new run of a batch's job waits for room as the first one did, whoever asks for it."""
    if isinstance(event, Rerun) and job.was.head.batch_id is not None:
        return replace(event, held=True)
    return event


def _counts(state: JobState) -> _Counts:
    """What a job adds to its batch: (active, held)."""
    if state.status.finished:
        return 0, 0
    return (0, 1) if state.held else (1, 0)
