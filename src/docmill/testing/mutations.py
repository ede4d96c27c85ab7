"""The suite is itself tested: each of these takes one safeguard out of a worker (DOCMILL_MUTATION names it).

A plug-in module of the tests, loaded at worker start; product code knows nothing of it. For each, a test demands that
the witness reports a violation.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from docmill.db.clock import database_now
from docmill.engine import decide, rooms, sweeper
from docmill.engine.events import Answered
from docmill.engine.lane_b import Apply, LaneB
from docmill.engine.runner import Runner
from docmill.engine.sql import postgres, statements
from docmill.engine.transaction import Transaction
from docmill.model.statuses import StepStatus


def _no_report_fence() -> None:
    """Reports are accepted whatever epoch they carry."""
    fenced = decide._report

    def report(fold: Any, event: Any) -> bool:
        return fenced(fold, replace(event, epoch=fold.steps[event.position].epoch))

    decide._report = report


def _no_apply_fence() -> None:
    """A processor runs whoever holds the step."""

    def holds(self: Transaction, job_id: str, position: int, epoch: int) -> bool:
        return self._jobs[job_id].state.steps[position].status is StepStatus.IN_PROGRESS

    Transaction.holds = holds  # type: ignore[method-assign]


def _no_fence() -> None:
    _no_report_fence()
    _no_apply_fence()


def _no_job_lock() -> None:
    """Jobs are read without being locked. (SQLite has no such lock to take out: it refuses a write on a stale read.)"""
    postgres.LOCK_JOBS = postgres.LOCK_JOBS.replace("for no key update", "")
    postgres.LOCK_CANDIDATES = postgres.LOCK_CANDIDATES.replace("for no key update of j skip locked", "")


def _no_epoch_bump() -> None:
    """A step given back by the sweeper keeps its epoch."""
    crash = decide._crash

    def keeping(fold: Any, position: int, step: Any) -> None:
        crash(fold, position, step._replace(epoch=step.epoch - 1))

    decide._crash = keeping


def _no_checkpoint() -> None:
    """What was paid for is stored only with the completion."""
    conclude = Runner._conclude

    async def unpaid(self: Runner, run: Any, context: Any, step_type: Any, result: str, *, stored: bool) -> Any:
        return await conclude(self, run, context, replace(step_type, paid=False), result, stored=stored)

    Runner._conclude = unpaid  # type: ignore[method-assign]


def _no_fallback() -> None:
    """One bad apply fails its whole batch."""

    def apply_all(self: LaneB, batch: list[Apply]) -> None:
        try:
            self._commit(batch)
        except Exception as error:
            for apply in batch:
                apply.failed(error)

    LaneB._apply_all = apply_all  # type: ignore[method-assign]


def _no_sweep() -> None:
    """Nobody looks for what is due."""

    def sweep(self: sweeper.Sweeper, queues: tuple[str, ...]) -> sweeper.Sweep:
        with self._store.session.read() as connection:
            now = database_now(connection)
        return sweeper.Sweep(dead=(), recovered=0, overdue=0, next_due=None, now=now, left_ready=frozenset())

    sweeper.Sweeper.sweep = sweep  # type: ignore[method-assign]


def _no_callback_dedupe() -> None:
    """Every answer moves its step, whether it waits for one or not."""
    fenced = decide._report

    def report(fold: Any, event: Any) -> bool:
        if not isinstance(event, Answered):
            return fenced(fold, event)
        decide._answer(fold, event.position, fold.steps[event.position])
        return True

    decide._report = report


def _no_batch_lock() -> None:
    """A batch's counters are read without being locked. (SQLite has no such lock to take out, as above.)"""
    locking = statements.LOCK_BATCH
    unlocked = locking._replace(postgres=locking.postgres.replace("for no key update", ""))
    rooms.LOCK_BATCH = unlocked  # type: ignore[attr-defined]


def _no_batch_limit() -> None:
    """Where there is room for one, a few more slip in; and the database does not refuse them."""
    free = rooms.Rooms._free

    def slack(self: rooms.Rooms, batch_id: str, room: int, members: Any) -> int:
        return free(self, batch_id, room + 5, members)

    rooms.Rooms._free = slack  # type: ignore[method-assign]
    unguarded = [text.partition(" and (")[0] for text in statements.UPDATE_BATCH]
    rooms.UPDATE_BATCH = statements.Statement(*unguarded)  # type: ignore[attr-defined]


MUTATIONS: dict[str, Callable[[], None]] = {
    "report_fence": _no_report_fence,
    "apply_fence": _no_apply_fence,
    "fence": _no_fence,
    "job_lock": _no_job_lock,
    "epoch_bump": _no_epoch_bump,
    "checkpoint": _no_checkpoint,
    "fallback": _no_fallback,
    "sweep": _no_sweep,
    "callback_dedupe": _no_callback_dedupe,
    "batch_lock": _no_batch_lock,
    "batch_limit": _no_batch_limit,
}

if "DOCMILL_MUTATION" in os.environ:
    MUTATIONS[os.environ["DOCMILL_MUTATION"]]()
