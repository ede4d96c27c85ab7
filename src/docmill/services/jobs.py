"""Processing jobs as people use them: submit, look, follow, cancel, retry."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from sqlalchemy import Connection, Row, Select, Tuple, literal, select, text, tuple_

from docmill.db.database import is_collision
from docmill.db.tables import job_events, jobs, templates
from docmill.db.tables.jobs import LIVE
from docmill.engine.batch import Batch, NewJob, Outcome, Report
from docmill.engine.bell import CONTROL
from docmill.engine.chain import ChainFault, verify_chain
from docmill.engine.events import Cancelled, Rerun
from docmill.engine.failpoints import failpoint
from docmill.engine.pruning import Pruned, count_prunable, prune
from docmill.engine.store import Also
from docmill.engine.undoing import undoing_id
from docmill.model.errors import AlreadyActive, Conflict, InvalidInput
from docmill.model.ids import canonical_id
from docmill.model.statuses import FINISHED_JOBS, JobStatus
from docmill.people.audit import ORGANISATION, Deed
from docmill.services.document_orders import as_ordered
from docmill.services.documents import DOCUMENT
from docmill.services.engine_backed import EngineBacked
from docmill.services.following import JobEvent, JobPosition, follow
from docmill.services.job_ids import prefix_bounds, unknown_job
from docmill.services.job_views import ChildView, JobSummary, JobView, StepView, summaries, summary, view, whole_jobs
from docmill.services.noting import Noted, begin
from docmill.services.retrying import Retry, positions_to_retry
from docmill.services.submission import check_entities, check_job
from docmill.services.templates import check_templates
from docmill.templates.document import plan_from_document
from docmill.templates.plan import Plan

__all__ = ["ChildView", "JobFilter", "JobSummary", "JobView", "Jobs", "Retry", "StepView", "Submission"]

JOB = "job"
"""What entries in the audit log are about."""
_NAMED = 5
"""So many of the jobs that a short id may mean are named."""
_UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What became of one job that was submitted."""

    job_id: str
    new: bool
    """False: it was submitted before, under the same id or key, and is left as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs a list shows; what is None does not matter."""

    status: JobStatus | None = None
    template: str | None = None
    entity_type: str | None = None
    entity_id: str | None = None
    batch_id: str | None = None
    created_by: str | None = None


class Jobs(EngineBacked):
    """The jobs of one organisation; with `seen_by`, those that this person created."""

    @cached_property
    def _own_templates(self) -> set[str]:
        """Those that were found to be this organisation's."""
        return set()

    def submit(self, new_jobs: Sequence[NewJob]) -> int:
        """Submit jobs in one transaction and wake the workers; how many of them were new.

        A job whose id exists already is left alone if it is the same job, and refused (`idempotency_conflict`) if not.
        """
        for job in new_jobs:
            check_job(job)
            if job.org_id != self._org_id:
                raise InvalidInput("A job is submitted by its own organisation, not by another.", field="org_id")
            if job.batch_id is not None or job.held:
                # Its batch would not count it.
                raise InvalidInput("A job of a batch is submitted with its batch, all of it at once.", field="batch_id")
        check_entities(new_jobs)
        self._check_templates({job.template_id for job in new_jobs})
        # In id order: two who submit the same jobs at the same moment then queue instead of deadlocking.
        ordered = as_ordered(self._database, self._org_id, new_jobs)
        in_order = sorted(ordered, key=lambda job: job.id)
        outcome = self._stores.commit(
            Batch(submissions=in_order, check=False),
            again=Batch(submissions=in_order),
            also=self._note(lambda done: _submitted(in_order, done.submitted) if done.submitted else None),
        )
        failpoint("submit.stored")
        self._bell.ring(outcome.left_ready)
        return outcome.submitted

    def submit_one(self, job: NewJob) -> Submission:
        """Submit one job, and tell whether it was new."""
        return Submission(job_id=job.id, new=self.submit([job]) == 1)

    def has_active(self, entity_type: str, entity_id: str, template: str | None = None) -> bool:
        """Whether a job about this entity has not finished yet; of this template, if one is named."""
        return bool(self.active(entity_type, entity_id, template))

    def active(self, entity_type: str, entity_id: str, template: str | None = None) -> Sequence[str]:
        """Ids of the unfinished jobs about this entity, oldest first. An undoing counts for the template it undoes."""
        query = select(jobs.c.id).where(
            jobs.c.org_id == self._org_id,
            jobs.c.entity_type == entity_type,
            jobs.c.entity_id == entity_id,
            # As text: a partial index is found only by its own words.
            text(f"status IN ({LIVE})"),
        )
        if template is not None:
            query = query.where(jobs.c.family == template)
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(jobs.c.created_at, jobs.c.id)).scalars())

    def cancel(self, job_id: str) -> None:
        """End the job now. Running steps are told to stop and whatever they still report is void."""
        seen = self.get(job_id)
        deed = Deed("job.cancel", (JOB, seen.summary.id), _stood(seen), {"status": JobStatus.CANCELLED})
        self._change(seen, Cancelled(), deed, "is already finished; there is nothing left to cancel")
        self._bell.ring([CONTROL])

    def retry(
        self, job_id: str, retry: Retry | None = None, *, document_id: str | None = None, noted: Noted | None = None
    ) -> None:
        """Run a finished job again: what went wrong and what rests on it, unless told otherwise.

        `document_id`: it is this document that is processed again, and recorded as such. `noted`: what the new run is
        to find, written with it or not at all.
        """
        retry = retry or Retry()
        seen = self.get(job_id)
        plan = self._plan(seen.summary.id)
        if plan.undoes:
            self._check_still_applies(seen)
        event = Rerun(
            positions=positions_to_retry(seen, plan, retry),
            keep_checkpoints=retry.keep_checkpoints,
            # Of a batch: it decides when there is room for the new run.
            held=seen.batch_id is not None,
            after_run=seen.summary.run,
        )
        after = {"run": seen.summary.run + 1, **asdict(retry)}
        deed = Deed("job.retry", (JOB, seen.summary.id), _stood(seen), after)
        if document_id is not None:
            deed = Deed(
                "document.reprocess", (DOCUMENT, document_id), _stood(seen), {"job_id": seen.summary.id, **after}
            )
        self._change(seen, event, deed, "is still running; cancel it first or wait for its end", noted)

    def _check_still_applies(self, undoing: JobView) -> None:
        """What a later run of a job did is not for the undoing of an earlier one."""
        if undoing.parent_job_id is None:
            return
        query = select(jobs.c.run).where(jobs.c.id == undoing.parent_job_id)
        with self._database.read() as connection:
            run = connection.execute(query).scalar()
        if run is not None and undoing_id(undoing.parent_job_id, run) != undoing.summary.id:
            raise Conflict(
                f"Job {undoing.parent_job_id} has run again since; {undoing.summary.id} would undo what that run did. "
                "What is left of the earlier one must be undone by hand.",
                job_id=undoing.parent_job_id,
            )

    def _note(self, deed: Callable[[Outcome], Deed | None]) -> Also | None:
        """Write down what a commit did; nothing, where Docmill itself acts or the commit did nothing."""
        if self._actor is None:
            return None

        def write(connection: Connection, outcome: Outcome) -> None:
            if (done := deed(outcome)) is not None:
                self._record(connection, *done)

        return write

    def _change(
        self, seen: JobView, event: Cancelled | Rerun, deed: Deed, refusal: str, noted: Noted | None = None
    ) -> None:
        job, job_id = seen.summary, seen.summary.id
        try:
            outcome = self._committed(job_id, event, deed, noted)
        except Exception as error:
            if not is_collision(error):
                raise
            raise AlreadyActive(
                f"{job.entity_type} {job.entity_id} has another active job of {job.template!r}, so job "
                f"{job_id} cannot run again now. Wait for its end or cancel it; `docmill jobs list` shows it.",
                job_id=job_id,
            ) from error
        failpoint("cancel.stored")
        if outcome is None:
            return
        if not outcome.accepted[0] and not _came_about(event, job, self.get(job_id).summary):
            raise Conflict(f"Job {job_id} ({job.status}) {refusal}.", job_id=job_id)
        self._bell.ring(outcome.left_ready)

    def _committed(self, job_id: str, event: Cancelled | Rerun, deed: Deed, noted: Noted | None) -> Outcome | None:
        if noted is not None and isinstance(event, Rerun):

            def record(connection: Connection) -> None:
                for each in (*noted.deeds, deed):
                    self._record(connection, *each)

            return self._stores.work(lambda store: begin(store, job_id, event, noted, record))
        also = self._note(lambda outcome: deed if outcome.accepted[0] else None)
        return self._stores.commit(Batch(reports=[Report(job_id=job_id, event=event)]), also=also)

    def list(
        self, only: JobFilter | None = None, *, before: str | None = None, limit: int = 50
    ) -> Sequence[JobSummary]:
        """The newest jobs first; `before` is the id of the last one seen, for the page that follows."""
        query = _filtered(summaries().where(*self._own_jobs), only or JobFilter())
        with self._database.read() as connection:
            if before is not None:
                last = self._row(connection, before)
                query = query.where(tuple_(jobs.c.created_at, jobs.c.id) < _place(last))
            query = query.order_by(jobs.c.created_at.desc(), jobs.c.id.desc()).limit(limit)
            return [summary(row) for row in connection.execute(query)]

    def get(self, job_id: str) -> JobView:
        """The job with all its steps; NotFound if there is none."""
        with self._database.read() as connection:
            return view(connection, self._row(connection, job_id))

    def find_id(self, text: str) -> str:
        """The id that a person means by it, which may be the beginning of one if no other begins so."""
        bounds = prefix_bounds(text)
        if bounds is None:
            with self._database.read() as connection:
                return str(self._row(connection, text).id)
        query = select(jobs.c.id).where(jobs.c.id.between(*bounds), *self._own_jobs)
        with self._database.read() as connection:
            found = list(connection.execute(query.order_by(jobs.c.id).limit(_NAMED + 1)).scalars())
        match found:
            case []:
                raise unknown_job(text)
            case [only]:
                return str(only)
            case _:
                named = ", ".join(found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
                raise InvalidInput(f"Several jobs begin with {text}: {named}. Write more of the id.", job_ids=found)

    def events(self, job_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[JobEvent]:
        """What happened to the job since the given version, at most so much; NotFound if there is no such job."""
        with self._database.read() as connection:
            # The id as it is stored: SQLite compares letter by letter.
            found = self._row(connection, job_id).id
            query = select(job_events).where(job_events.c.job_id == found, job_events.c.version > after)
            return [
                JobEvent(job_id=row.job_id, version=row.version, at=row.at, data=row.data)
                for row in connection.execute(query.order_by(job_events.c.version).limit(limit))
            ]

    def verify(self, job_id: str) -> Sequence[ChainFault]:
        """Where the chain of the job's events does not hold; nothing, if all of them are as they were written."""
        with self._database.read() as connection:
            return verify_chain(connection, self._row(connection, job_id).id)

    def positions(self, job_ids: Sequence[str]) -> Mapping[str, JobPosition]:
        """How far each of these jobs has come; those that do not exist are left out."""
        query = select(jobs.c.id, jobs.c.version, jobs.c.status).where(jobs.c.id.in_(job_ids), *self._own_jobs)
        with self._database.read() as connection:
            return {
                row.id: JobPosition(version=row.version, status=JobStatus(row.status))
                for row in connection.execute(query)
            }

    def watch(self, after: Mapping[str, int]) -> Iterator[JobEvent | None]:
        """Events of these jobs (id -> version already seen) as they happen, until all have finished."""
        return follow(self, after)

    def prune(
        self,
        *,
        finished_before: datetime,
        statuses: Iterable[JobStatus] = FINISHED_JOBS,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Delete finished jobs and all that belongs to them, oldest first; with `dry_run` only count them.

        Kept in any case: jobs with open issues, with children that have not finished, and of unfinished batches.
        """
        wanted = frozenset(statuses)
        if not wanted or not wanted <= FINISHED_JOBS:
            raise InvalidInput(f"Only finished jobs can be pruned: {', '.join(sorted(FINISHED_JOBS))}.")
        most = _UNBOUNDED if limit is None else limit
        if dry_run:
            with self._database.read() as connection:
                return count_prunable(connection, finished_before, wanted, most, self._org_id)

        def note(connection: Connection) -> None:
            asked = {"finished_before": finished_before, "statuses": sorted(wanted), "limit": limit}
            self._record(connection, "job.prune", (ORGANISATION, self._org_id), None, asked)

        pruned = Pruned()
        while pruned.jobs < most:
            # One entry for all of it, with the first that goes.
            also = None if pruned.jobs else note
            work = partial(prune, before=finished_before, statuses=wanted, limit=most - pruned.jobs, also=also)
            some = self._stores.work(partial(work, org_id=self._org_id))
            if not some.jobs:
                break
            pruned += some
        return pruned

    def _plan(self, job_id: str) -> Plan:
        with self._database.read() as connection:
            return plan_from_document(self._row(connection, job_id).definition)

    def _row(self, connection: Connection, job_id: str) -> Row[Any]:
        stored = canonical_id(job_id)
        row = None
        if stored is not None:
            query = whole_jobs().where(jobs.c.id == stored, *self._own_jobs)
            row = connection.execute(query).first()
        if row is None:
            raise unknown_job(job_id)
        return row

    def _check_templates(self, template_ids: set[str]) -> None:
        """Each must be one of the organisation's; asked once, since a template never changes hands."""
        unknown = template_ids - self._own_templates
        if unknown:
            check_templates(self._database, unknown, self._org_id)
            self._own_templates.update(unknown)


def _submitted(new_jobs: Sequence[NewJob], new: int) -> Deed:
    """Jobs that were submitted in one go, as one entry: under the first of them, with the rest by number."""
    first = new_jobs[0]
    told = {"entity": f"{first.entity_type}:{first.entity_id}", "template_id": first.template_id, "title": first.title}
    many = {"jobs": len(new_jobs), "new": new, "last": new_jobs[-1].id} if len(new_jobs) > 1 else {}
    return Deed("job.submit", (JOB, first.id), None, told | {"priority": first.priority} | many)


def _stood(seen: JobView) -> dict[str, object]:
    return {"status": seen.summary.status, "run": seen.summary.run}


def _filtered(query: Select[Any], only: JobFilter) -> Select[Any]:
    batch_id = None if only.batch_id is None else canonical_id(only.batch_id)
    if only.batch_id is not None and batch_id is None:
        raise InvalidInput(f"{only.batch_id!r} is not the id of a batch; write a UUID.", field="batch_id")
    wanted = {
        jobs.c.status: only.status.value if only.status is not None else None,
        templates.c.name: only.template,
        jobs.c.entity_type: only.entity_type,
        jobs.c.entity_id: only.entity_id,
        jobs.c.batch_id: batch_id,
        jobs.c.created_by: only.created_by,
    }
    return query.where(*(column == value for column, value in wanted.items() if value is not None))


def _place(row: Row[Any]) -> Tuple:
    """Where the job stands in a list; typed, or SQLite would compare another spelling of the time."""
    return tuple_(literal(row.created_at, jobs.c.created_at.type), literal(row.id, jobs.c.id.type))


def _came_about(event: Cancelled | Rerun, before: JobSummary, after: JobSummary) -> bool:
    """Whether what was asked happened all the same: by our own commit whose answer was lost, or by somebody else."""
    if isinstance(event, Cancelled):
        return after.status is JobStatus.CANCELLED and not before.status.finished
    return after.run > before.run
