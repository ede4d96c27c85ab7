"""Resolving an issue: the answer is checked, recorded and given to the step that waits for it, all in one transaction.

Everything is looked at under the job's lock. So of two people who resolve at the same moment one is told that the
other was first, and a job that was cancelled or whose deadline passed meanwhile takes no answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import orjson
from sqlalchemy import Connection, Row, Select, select, update

from docmill.db.clock import database_now
from docmill.db.tables import issues, job_steps, jobs
from docmill.engine.batch import Batch, Outcome, Report, StepRun
from docmill.engine.events import Answered, Failed, Reopened
from docmill.engine.failpoints import failpoint
from docmill.engine.store import Store
from docmill.engine.transaction import Transaction
from docmill.model.errors import Conflict, InvalidInput
from docmill.model.issues import IssueAction, IssueStatus
from docmill.model.statuses import StepStatus
from docmill.templates.output import violations

NoteDown = Callable[[Connection, Mapping[str, object], Mapping[str, object]], None]
"""Told at the end of the transaction what the issue was, and what it has become."""


class AlreadyResolved(Conflict):
    """Somebody has resolved the issue; the message says who and when."""

    code = "already_resolved"


class IssueWithdrawn(Conflict):
    """The job went on or ended without an answer."""

    code = "issue_withdrawn"


class NotWaiting(Conflict):
    """The step does not wait for this answer any more."""

    code = "not_waiting"


class AnswerInvalid(InvalidInput):
    """The data is not what was asked for; the message names place and rule."""

    code = "answer_invalid"


class AnswerUnused(InvalidInput):
    """No step waits for the answer, so data or an action would have no effect."""

    code = "answer_unused"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The step that waits, under its job's lock."""

    run: StepRun
    result: object
    """What it has kept: its own result, or the note of its wait."""
    others_open: bool
    """Other blocking issues of this wait are open still."""
    answers: Sequence[object]
    """Data given so far in this wait, in order, this answer last; None where nothing was given."""


class Resolver:
    """One resolution, for `StorePool.work`."""

    def __init__(
        self,
        issue_id: str,
        *,
        data: object,
        action: IssueAction,
        by: str | None,
        note: str | None,
        also: NoteDown,
        base: Callable[[Row[Any]], None] | None = None,
    ) -> None:
        self._issue_id = issue_id
        self._data = data
        self._action = action
        self._by = by
        self._note = note
        self._base = base
        self._also = also

    def resolve_again(self, store: Store) -> Outcome | None:
        """After an attempt whose commit may have been done although its answer was lost."""
        with store.session.read() as connection:
            issue = self._load(connection)
        if issue.status == IssueStatus.RESOLVED.value and self._is_ours(issue):
            return None
        return self.resolve(store)

    def resolve(self, store: Store) -> Outcome | None:
        """Resolve the issue in a transaction of its own; None when no job was touched."""
        with store.session.write() as connection:
            # What never changes about it says which job to lock.
            job_id = self._load(connection).job_id
            transaction = store.begin()
            transaction.lock(Batch(hold=[job_id] if job_id else []))
            issue = self._load(connection, hold=True)
            if self._base is not None:
                self._base(issue)
            self._check(connection, issue)
            self._record(connection)
            outcome = self._go_on(connection, transaction, issue) if issue.blocking else None
            before = {"status": issue.status, "assigned_to": issue.assigned_to}
            self._also(connection, before, {"status": IssueStatus.RESOLVED, **self._resolution, "note": self._note})
            failpoint("commit.inside")
        failpoint("resolve.stored")
        return outcome

    def _load(self, connection: Connection, *, hold: bool = False) -> Row[Any]:
        query: Select[Any] = select(issues).where(issues.c.id == self._issue_id)
        return connection.execute(query.with_for_update() if hold else query).one()

    def _is_ours(self, issue: Row[Any]) -> bool:
        said = (issue.resolution, issue.resolved_by, issue.note)
        return said == (self._resolution, self._by, self._note)

    @property
    def _resolution(self) -> dict[str, object]:
        return {"action": self._action.value, "data": self._data}

    def _check(self, connection: Connection, issue: Row[Any]) -> None:
        """Everything about the issue itself that can forbid this resolution."""
        if issue.status == IssueStatus.RESOLVED.value:
            raise AlreadyResolved(
                f"Issue {issue.id} was resolved by {issue.resolved_by or 'somebody'} at "
                f"{issue.resolved_at.isoformat(timespec='seconds')}; `docmill issues show {issue.id}` tells how.",
                resolved_by=issue.resolved_by,
                resolved_at=issue.resolved_at,
            )
        if issue.status == IssueStatus.WITHDRAWN.value:
            status = connection.execute(select(jobs.c.status).where(jobs.c.id == issue.job_id)).scalar()
            raise IssueWithdrawn(
                f"Issue {issue.id} was withdrawn: job {issue.job_id} is {status} and no longer waits for it. "
                f"`docmill jobs show {issue.job_id}` tells how it stands.",
                job_id=issue.job_id,
            )
        if not issue.blocking and (self._data is not None or self._action is not IssueAction.CONTINUE):
            raise AnswerUnused(
                f"Issue {issue.id} does not block: no step waits for data, a retry or a failure. Resolve it without, "
                "and say what was done in the note."
            )
        if self._data is not None and self._action is IssueAction.FAIL:
            raise AnswerUnused("Data has no use when the step is to fail; leave it out, and say why in the note.")
        # A step that runs again finds the data among its resolutions, but need not be given any.
        asked = self._action is IssueAction.CONTINUE or self._data is not None
        if asked and issue.answer_schema is not None:
            _demand(issue.answer_schema, self._data, "The data")

    def _record(self, connection: Connection) -> None:
        # Also under the job's lock only an open one: those without a job have no other guard.
        changed = connection.execute(
            update(issues)
            .where(issues.c.id == self._issue_id, issues.c.status == IssueStatus.OPEN.value)
            .values(
                status=IssueStatus.RESOLVED.value,
                resolution=self._resolution,
                resolved_by=self._by,
                note=self._note,
                resolved_at=database_now(connection),
            )
        )
        if changed.rowcount == 0:
            self._check(connection, self._load(connection))

    def _go_on(self, connection: Connection, transaction: Transaction, issue: Row[Any]) -> Outcome | None:
        """What the step does now; None: it goes on waiting, for the answer to another issue."""
        run = transaction.step(issue.job_id, issue.position)
        if run is None or run.state.status is not StepStatus.WAITING or run.state.epoch != issue.epoch:
            raise _not_waiting(issue)
        step = _waiting_step(connection, run, issue.id)
        if step.others_open and self._action is IssueAction.CONTINUE:
            return None
        report = self._report(transaction, step, corrects=issue.corrects)
        accepted = transaction.fold([report])
        if not all(accepted):
            raise _not_waiting(issue)
        return transaction.finish(Batch(reports=[report]), accepted)

    def _report(self, transaction: Transaction, step: _Step, *, corrects: bool) -> Report:
        run = step.run
        position, epoch = run.step.position, run.state.epoch
        match self._action:
            case IssueAction.RETRY:
                return Report(job_id=run.job.id, event=Reopened(position=position, epoch=epoch))
            case IssueAction.FAIL:
                failed = Failed(position=position, epoch=epoch, error=self._rejection(run), permanent=True)
                return Report(job_id=run.job.id, event=failed)
            case IssueAction.CONTINUE:
                result = merged(step.result if corrects else None, step.answers)
                if run.step.output_schema is not None:
                    _demand(run.step.output_schema, result, f"With this data the result of {run.step.step_key}")
                answered = Answered(position=position, epoch=epoch, result=orjson.dumps(result).decode())
                # With a processor they are submitted when it has run, as ever.
                follow_ups = () if run.step.processor else transaction.kept_follow_ups(run)
                return Report(job_id=run.job.id, event=answered, follow_ups=follow_ups)
            case _:
                assert_never(self._action)

    def _rejection(self, run: StepRun) -> str:
        who = f" by {self._by}" if self._by else ""
        why = f": {self._note}" if self._note else "."
        error = {"code": "issue_rejected", "message": f"Rejected{who}{why}", "attempt": run.state.failures + 1}
        return orjson.dumps(error).decode()


def _not_waiting(issue: Row[Any]) -> NotWaiting:
    return NotWaiting(
        f"Step {issue.step_key} of job {issue.job_id} no longer waits for issue {issue.id}. "
        f"`docmill jobs show {issue.job_id}` tells how it stands.",
        job_id=issue.job_id,
    )


def merged(result: object, answers: Sequence[object]) -> object:
    """The result with the answers laid over it: key by key where both are mappings, otherwise the later one as a whole.

    An answer of None says that nothing is to be changed.
    """
    for answer in answers:
        if isinstance(result, Mapping) and isinstance(answer, Mapping):
            result = {**result, **answer}
        elif answer is not None:
            result = answer
    return result


def _waiting_step(connection: Connection, run: StepRun, answered_now: str) -> _Step:
    """Read under the lock of the job, the answer just given included."""
    asked = connection.execute(
        select(issues)
        .where(
            issues.c.job_id == run.job.id,
            issues.c.position == run.step.position,
            issues.c.epoch == run.state.epoch,
            issues.c.blocking,
        )
        .order_by(issues.c.resolved_at, issues.c.id)
    ).all()
    resolved = [issue for issue in asked if issue.status == IssueStatus.RESOLVED.value]
    kept = select(job_steps.c.result).where(job_steps.c.job_id == run.job.id, job_steps.c.position == run.step.position)
    return _Step(
        run=run,
        result=connection.execute(kept).scalar_one(),
        others_open=any(issue.status == IssueStatus.OPEN.value for issue in asked),
        # Clocks may disagree about who came last; the lock does not.
        answers=[issue.resolution["data"] for issue in sorted(resolved, key=lambda issue: issue.id == answered_now)],
    )


def _demand(schema: Mapping[str, object], value: object, what: str) -> None:
    broken = violations(schema, value)
    if broken:
        raise AnswerInvalid(
            f"{what} does not fit: {'; '.join(broken)}. Correct it and resolve again.", field="data", broken=broken
        )
