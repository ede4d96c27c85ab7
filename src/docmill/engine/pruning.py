"""Retention: finished jobs are deleted with all that belongs to them, oldest first, a few per transaction.

A job is kept, however old, while somebody may still need it: while one of its issues is open, while a job that it
brought about has not finished, and while its batch has not. Records of model calls stay: they are the accounts.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, delete, exists, func, select, text

from docmill.db.tables import batches, callbacks, issues, job_events, job_steps, jobs, step_parts
from docmill.db.tables.jobs import LIVE
from docmill.engine.store import Store
from docmill.model.issues import IssueStatus
from docmill.model.statuses import FINISHED_JOBS, JobStatus

log = logging.getLogger("docmill.engine")

_REST = timedelta(minutes=1)
"""Between two looks in the background when the last one left nothing."""
BATCH = 100
"""Jobs per transaction: short enough that nobody who waits for the writer of SQLite notices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was deleted, or would be."""

    jobs: int = 0
    batches: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(jobs=self.jobs + other.jobs, batches=self.batches + other.batches)


def prunable(before: datetime, statuses: Iterable[JobStatus], org_id: str | None = None) -> Select[Any]:
    """Ids of finished jobs that nobody needs, oldest first; of all organisations if none is named."""
    children = jobs.alias("children")
    query = (
        select(jobs.c.id, jobs.c.batch_id)
        .where(
            # In its own words, so that the partial index is found.
            text("processing_jobs.finished_at IS NOT NULL"),
            jobs.c.finished_at < before,
            jobs.c.status.in_(sorted(status.value for status in statuses)),
            ~exists().where(issues.c.job_id == jobs.c.id, issues.c.status == IssueStatus.OPEN.value),
            ~exists().where(
                children.c.parent_job_id == jobs.c.id,
                text("children.parent_job_id IS NOT NULL"),
                text(f"children.status IN ({LIVE})"),
            ),
            ~exists().where(batches.c.id == jobs.c.batch_id, batches.c.finished_at.is_(None)),
        )
        .order_by(jobs.c.finished_at, jobs.c.id)
    )
    return query if org_id is None else query.where(jobs.c.org_id == org_id)


def count_prunable(
    connection: Connection, before: datetime, statuses: Iterable[JobStatus], limit: int, org_id: str | None = None
) -> Pruned:
    """How many jobs `prune` would delete, one transaction after the other."""
    query = prunable(before, statuses, org_id).limit(limit).subquery()
    return Pruned(jobs=connection.execute(select(func.count()).select_from(query)).scalar_one())


def prune(
    store: Store,
    before: datetime,
    statuses: Iterable[JobStatus],
    limit: int,
    org_id: str | None = None,
    *,
    also: Callable[[Connection], None] | None = None,
) -> Pruned:
    """Delete at most one transaction's worth of jobs. What somebody holds is passed over, not waited for.

    `also` is done at the end of the transaction, unless there was nothing to delete.
    """
    query = prunable(before, statuses, org_id).limit(min(limit, BATCH))
    with store.session.write() as connection:
        # Read again under the lock by PostgreSQL itself: a job that was retried meanwhile is no longer finished.
        rows = connection.execute(query.with_for_update(of=jobs, skip_locked=True)).all()
        ids = [row.id for row in rows]
        if not ids:
            return Pruned()
        delete_jobs(connection, ids)
        emptied = _prune_batches(connection, sorted({row.batch_id for row in rows} - {None}))
        if also is not None:
            also(connection)
        return Pruned(jobs=len(ids), batches=emptied)


def delete_jobs(connection: Connection, ids: Sequence[str]) -> None:
    """Finished jobs that are locked, with all that belongs to them. Whoever still works on one reports to nobody."""
    for table in (step_parts, job_events, callbacks, job_steps):
        connection.execute(delete(table).where(table.c.job_id.in_(ids)))
    # One that was opened this moment stays, for a person to see.
    connection.execute(delete(issues).where(issues.c.job_id.in_(ids), issues.c.status != IssueStatus.OPEN.value))
    connection.execute(delete(jobs).where(jobs.c.id.in_(ids)))


class Pruner:
    """Keeps the retention of an installation, a transaction at a time: again at once while there is more."""

    def __init__(self, retention: timedelta) -> None:
        self._retention = retention
        self._next: datetime | None = None

    def due(self, now: datetime) -> bool:
        """Whether it is time to look again."""
        return self._next is None or now >= self._next

    def prune(self, store: Store, now: datetime) -> Pruned:
        """Delete what has become too old, for all organisations, but no more than one transaction's worth."""
        pruned = prune(store, now - self._retention, FINISHED_JOBS, BATCH)
        # What is kept although it is old lies before what is not: it must not be passed over every second.
        self._next = now if pruned.jobs == BATCH else now + _REST
        if pruned.jobs:
            log.info("pruned %d jobs that finished more than %s ago", pruned.jobs, self._retention)
        return pruned


def _prune_batches(connection: Connection, ids: Sequence[str]) -> int:
    """Batches go with their last job; in id order, after the jobs, as everybody locks them."""
    pruned = 0
    for batch_id in ids:
        left = exists().where(jobs.c.batch_id == batches.c.id, text("processing_jobs.batch_id IS NOT NULL"))
        gone = delete(batches).where(batches.c.id == batch_id, batches.c.finished_at.is_not(None), ~left)
        pruned += connection.execute(gone).rowcount
    return pruned
