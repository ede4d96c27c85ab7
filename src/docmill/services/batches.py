"""Batches as people use them: thousands of jobs in one call, so many of them at once, one result of it all."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, func, select, update

from docmill.db.tables import batches, job_steps, jobs, templates
from docmill.engine.batch import Batch, NewBatch, NewJob, Outcome, Report
from docmill.engine.bell import CONTROL
from docmill.engine.cancelling import BEFORE_ALL, cancel_some
from docmill.engine.events import Rerun
from docmill.engine.failpoints import failpoint
from docmill.engine.store import Also, Store
from docmill.model.errors import Conflict, DatabaseUnavailable, InvalidInput, NotFound
from docmill.model.ids import canonical_id, new_id
from docmill.model.statuses import FINISHED_JOBS, JobStatus, StepStatus
from docmill.services.batch_views import BatchView, JobResult, batch_row, results_of, view_of, views_of
from docmill.services.document_orders import as_ordered
from docmill.services.engine_backed import EngineBacked
from docmill.services.following import LONGEST, PATIENCE, SHORTEST, wait
from docmill.services.submission import check_entities, check_job, checked_id, checked_metadata, checked_text
from docmill.services.templates import check_templates
from docmill.templates.document import plan_from_document

DEFAULT_LIMIT = 10
MOST_JOBS = 100_000
LIMITS = range(1, MOST_JOBS + 1)
RETRIED = frozenset({JobStatus.FAILED})
RETRIABLE = FINISHED_JOBS - {JobStatus.COMPLETED}
_AT_ONCE = 500
_SUBJECT = "batch"
"""What entries in the audit log are about."""
_CANCELLING = {"cancelling": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """What came of asking for a new run."""

    again: int
    """Jobs that run again."""
    passed_over: tuple[str, ...]
    """Entities that have another active job by now, as `type:id`."""


class Batches(EngineBacked):
    """The batches of one organisation; with `seen_by`, those that this person created."""

    @property
    def _mine(self) -> Sequence[ColumnElement[bool]]:
        return self._own(batches.c.org_id, batches.c.created_by)

    def submit(
        self,
        new_jobs: Sequence[NewJob],
        *,
        limit: int = DEFAULT_LIMIT,
        title: str = "",
        metadata: Mapping[str, object] | None = None,
        created_by: str | None = None,
        batch_id: str | None = None,
        skip_active: bool = False,
    ) -> BatchView:
        """Submit all jobs in one transaction; at most `limit` of them are active at a time.

        An entity that has an active job is refused by name, or left out with `skip_active`. The same call with the same
        `batch_id` again changes nothing and returns the batch; other content under that id is a Conflict.
        """
        self._check(new_jobs, limit)
        new = NewBatch(
            id=new_id() if batch_id is None else checked_id(batch_id, "batch"),
            org_id=self._org_id,
            title=checked_text("title", title),
            max_active=limit,
            metadata=checked_metadata(metadata or {}),
            created_by=created_by,
            digest=_digest(new_jobs, limit, title, metadata or {}),
        )
        known = self._same(new)
        if known is not None:
            return known
        ordered = as_ordered(self._database, self._org_id, new_jobs)
        members = [replace(job, batch_id=new.id, unless_active=skip_active) for job in ordered]
        work = Batch(batches=[new], submissions=members)
        try:
            outcome = self._stores.commit(work, again=work, also=self._note_submitted(new, members))
        except Conflict:
            # Perhaps because the same call was made at the same moment.
            known = self._same(new)
            if known is None:
                raise
            return known
        failpoint("submit.stored")
        self._bell.ring(outcome.left_ready)
        return self.get(new.id)

    def get(self, batch_id: str) -> BatchView:
        """How the batch stands; NotFound if there is none."""
        with self._database.read() as connection:
            return view_of(connection, self._row(connection, batch_id))

    def list(self, *, limit: int = 50, before: str | None = None) -> Sequence[BatchView]:
        """The newest batches first, without their failures; `before` is the id of the last one seen."""
        query = select(batches).where(*self._mine)
        query = query.order_by(batches.c.created_at.desc(), batches.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            if before is not None:
                last = self._row(connection, before)
                older = (batches.c.created_at < last.created_at) | (
                    (batches.c.created_at == last.created_at) & (batches.c.id < last.id)
                )
                query = query.where(older)
            return views_of(connection, connection.execute(query).all())

    def results(
        self,
        batch_id: str,
        *,
        step: str | None = None,
        statuses: Iterable[JobStatus] = (),
        after: str | None = None,
        limit: int = 100,
    ) -> Sequence[JobResult]:
        """What became of the jobs, in the order in which they were given: those after the job `after`, at most `limit`.

        `step` names the step whose result is wanted; without it that of the finish step.
        """
        with self._database.read() as connection:
            row = self._row(connection, batch_id)
            if step is not None:
                _check_step(connection, row.id, step)
            conditions = [jobs.c.id > checked_id(after)] if after is not None else []
            wanted = [status.value for status in statuses]
            if wanted:
                conditions.append(jobs.c.status.in_(wanted))
            return results_of(connection, row.id, *conditions, limit=limit, step=step)

    def cancel(self, batch_id: str) -> int:
        """End every unfinished job now; how many there were. None begins after the first moment of it.

        A sweeper that sees the first moment of it helps: what it ends counts too.
        """
        with self._database.write() as connection:
            row = self._held(connection, batch_id)
            before_it = _cancelled(connection, row.id)
            said = connection.execute(
                update(batches).where(batches.c.id == row.id, batches.c.finished_at.is_(None)).values(cancelling=True)
            ).rowcount
            if said:
                before = {"cancelling": row.cancelling}
                self._record(connection, "batch.cancel", (_SUBJECT, row.id), before, _CANCELLING)
        if not said:
            raise Conflict(f"Batch {row.id} is already finished; there is nothing left to cancel.", batch_id=row.id)
        failpoint("cancel.stored")
        last: str | None = BEFORE_ALL
        while last is not None:
            last, ended = self._stores.work(partial(cancel_some, batch_id=row.id, after=last))
            if ended:
                self._bell.ring([CONTROL])
        with self._database.read() as connection:
            return _cancelled(connection, row.id) - before_it

    def retry(
        self, batch_id: str, statuses: Iterable[JobStatus] = RETRIED, *, keep_checkpoints: bool = True
    ) -> Retried:
        """Run the jobs that ended so once more: what failed in them and what rested on it, within the batch's limit."""
        wanted = frozenset(statuses)
        if not wanted or not wanted <= RETRIABLE:
            names = ", ".join(sorted(RETRIABLE))
            raise InvalidInput(
                f"Only jobs that are {names} can be tried again; `docmill jobs retry --all` runs completed ones.",
                field="statuses",
            )
        with self._database.read() as connection:
            row = self._row(connection, batch_id)
        if row.cancelling:
            raise Conflict(f"Batch {row.id} is just being cancelled; try again when it has finished.", batch_id=row.id)
        after, again, passed_over = BEFORE_ALL, 0, list[str]()
        asked = {"statuses": sorted(wanted), "keep_checkpoints": keep_checkpoints}
        while True:
            # One entry for all of it, with the first that run again.
            also = None if again or self._actor is None else self._note_retried(row.id, asked)
            stretch = self._retry_some(row.id, wanted, after, keep_checkpoints, also)
            if stretch is None:
                return Retried(again=again, passed_over=tuple(passed_over))
            after = stretch[0]
            again += stretch[1].again
            passed_over += stretch[1].passed_over

    def _note_submitted(self, new: NewBatch, members: Sequence[NewJob]) -> Also | None:
        if self._actor is None:
            return None
        used = sorted({job.template_id for job in members})

        def write(connection: Connection, outcome: Outcome) -> None:
            total = connection.execute(select(batches.c.total).where(batches.c.id == new.id)).scalar_one()
            # Not again when the first attempt was committed and only its answer was lost.
            if outcome.submitted or not total:
                told = {"title": new.title, "limit": new.max_active, "jobs": total, "template_ids": used}
                self._record(connection, "batch.submit", (_SUBJECT, new.id), None, told)

        return write

    def _note_retried(self, batch_id: str, asked: Mapping[str, object]) -> Also:
        def write(connection: Connection, outcome: Outcome) -> None:
            if any(outcome.accepted):
                self._record(connection, "batch.retry", (_SUBJECT, batch_id), None, asked)

        return write

    def _retry_some(
        self,
        batch_id: str,
        statuses: frozenset[JobStatus],
        after: str,
        keep_checkpoints: bool,
        also: Also | None,
    ) -> tuple[str, Retried] | None:
        def attempt(store: Store) -> tuple[str, Retried] | None:
            with store.session.read() as connection:
                found, busy, failed = _to_retry(connection, batch_id, statuses, after)
            if not found:
                return None
            again = Rerun(positions=frozenset(), keep_checkpoints=keep_checkpoints, held=True)
            reports = [
                Report(job_id=job.id, event=replace(again, positions=failed.get(job.id, again.positions)))
                for job in found
                if job.id not in busy
            ]
            outcome = store.commit(Batch(reports=reports), also)
            self._bell.ring(outcome.left_ready)
            passed_over = tuple(f"{job.entity_type}:{job.entity_id}" for job in found if job.id in busy)
            return found[-1].id, Retried(again=sum(outcome.accepted), passed_over=passed_over)

        # Once more if another job of one of the entities has been submitted since we looked.
        return self._stores.work(attempt, again=attempt)

    def set_limit(self, batch_id: str, limit: int, *, onto: Callable[[str, int], None] | None = None) -> BatchView:
        """Let at most so many jobs be active from now on; 0 lets nothing new begin.

        Room that this makes is given at once. A limit below what is active ends nothing: it is reached as jobs end.
        `onto` may refuse the limit that this batch has until now.
        """
        if limit not in LIMITS and limit != 0:
            raise InvalidInput(f"The limit {limit} is not between 0 and {MOST_JOBS:,}.", field="limit")
        with self._database.write() as connection:
            row = self._held(connection, batch_id)
            if onto is not None:
                onto(row.id, row.max_active)
            connection.execute(update(batches).where(batches.c.id == row.id).values(max_active=limit))
            self._record(connection, "batch.limit", (_SUBJECT, row.id), {"limit": row.max_active}, {"limit": limit})
        while True:
            outcome = self._stores.commit(Batch(look_at=[row.id]))
            if not outcome.left_ready:
                return self.get(row.id)
            self._bell.ring(outcome.left_ready)

    def watch(self, batch_id: str, *, pause: Callable[[float], object] = wait) -> Iterator[BatchView | None]:
        """The batch whenever it has changed, until it has finished; None after every look.

        The None lets the caller redraw a clock. A database that is away for a while is waited for.
        """
        seen: BatchView | None = None
        interval, away = SHORTEST, 0.0
        while seen is None or seen.finished_at is None:
            view = seen
            try:
                view, away = self.get(batch_id), 0.0
            except DatabaseUnavailable:
                if away >= PATIENCE:
                    raise
                away += LONGEST
            interval = SHORTEST if view != seen else min(interval * 1.5, LONGEST)
            if view is not None and view != seen:
                seen = view
                yield view
            yield None
            if seen is None or seen.finished_at is None:
                # A look at a large batch costs more than one at a job: never more than a tenth of the time.
                pause(LONGEST if away or (seen and seen.total > 1_000) else interval)

    def _check(self, new_jobs: Sequence[NewJob], limit: int) -> None:
        if not 1 <= len(new_jobs) <= MOST_JOBS:
            raise InvalidInput(f"A batch has 1 to {MOST_JOBS:,} jobs, not {len(new_jobs):,}.", field="entities")
        if limit not in LIMITS:
            raise InvalidInput(f"The limit {limit} is not between 1 and {MOST_JOBS:,}.", field="limit")
        for job in new_jobs:
            check_job(job)
            if job.org_id != self._org_id:
                raise InvalidInput(f"Job {job.id} belongs to another organisation than its batch.")
        check_templates(self._database, (job.template_id for job in new_jobs), self._org_id)
        check_entities(new_jobs)

    def _same(self, new: NewBatch) -> BatchView | None:
        """The batch of this id, if there is one and it is the same; Conflict if it is not."""
        with self._database.read() as connection:
            row = connection.execute(select(batches).where(batches.c.id == new.id)).first()
            if row is None:
                return None
            if (row.org_id, row.digest) == (new.org_id, new.digest):
                return view_of(connection, row)
        raise Conflict(
            f"There is a batch {new.id} already, with other content. Give another id, or none to get one.",
            batch_id=new.id,
        )

    def _held(self, connection: Connection, batch_id: str) -> Row[Any]:
        """The batch, locked: what it is before a change is what is recorded."""
        found = self._row(connection, batch_id).id
        return connection.execute(select(batches).where(batches.c.id == found).with_for_update()).one()

    def _row(self, connection: Connection, batch_id: str) -> Row[Any]:
        canonical = canonical_id(batch_id)
        row = None if canonical is None else batch_row(connection, canonical, *self._mine)
        if row is None:
            raise NotFound(
                f"There is no batch {batch_id}. `docmill batch list` shows those there are.", batch_id=batch_id
            )
        return row


def _to_retry(
    connection: Connection, batch_id: str, statuses: Iterable[JobStatus], after: str
) -> tuple[Sequence[Any], set[str], dict[str, frozenset[int]]]:
    """The next jobs that ended so; which of them cannot run again because of another; and what failed in them."""
    found = connection.execute(
        select(jobs.c.id, jobs.c.entity_type, jobs.c.entity_id)
        .where(jobs.c.batch_id == batch_id, jobs.c.id > after, jobs.c.status.in_([status.value for status in statuses]))
        .order_by(jobs.c.id)
        .limit(_AT_ONCE)
    ).all()
    ids = [job.id for job in found]
    other = jobs.alias()
    live = [status.value for status in JobStatus if not status.finished]
    same = (other.c.org_id == jobs.c.org_id) & (other.c.entity_type == jobs.c.entity_type)
    same &= (other.c.entity_id == jobs.c.entity_id) & (other.c.family == jobs.c.family) & other.c.status.in_(live)
    busy = set(connection.execute(select(jobs.c.id).join(other, same).where(jobs.c.id.in_(ids))).scalars())
    failed: dict[str, set[int]] = {}
    steps = select(job_steps.c.job_id, job_steps.c.position).where(
        job_steps.c.job_id.in_(ids), job_steps.c.status == StepStatus.FAILED.value
    )
    for job_id, position in connection.execute(steps):
        failed.setdefault(job_id, set()).add(position)
    return found, busy, {job_id: frozenset(positions) for job_id, positions in failed.items()}


def _check_step(connection: Connection, batch_id: str, step: str) -> None:
    used = select(jobs.c.template_id).where(jobs.c.batch_id == batch_id).distinct()
    definitions = connection.execute(select(templates.c.definition).where(templates.c.id.in_(used))).scalars()
    keys = dict.fromkeys(key for definition in definitions for key in plan_from_document(definition).positions)
    if step not in keys:
        raise NotFound(f"The jobs of the batch have no step {step}; their steps are {', '.join(keys)}.")


def _digest(new_jobs: Sequence[NewJob], limit: int, title: str, metadata: Mapping[str, object]) -> str:
    """Of what the caller says, without the ids that were drawn for the jobs."""
    said = [
        (job.template_id, job.entity_type, job.entity_id, job.priority, job.title, job.metadata, job.file_type)
        for job in new_jobs
    ]
    text = orjson.dumps([said, limit, title, metadata], default=dict, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


def _cancelled(connection: Connection, batch_id: str) -> int:
    """How many jobs of the batch ended by being cancelled."""
    ended = (jobs.c.batch_id == batch_id) & (jobs.c.status == JobStatus.CANCELLED)
    return connection.execute(select(func.count()).select_from(jobs).where(ended)).scalar_one()
