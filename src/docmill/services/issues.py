"""Processing issues as people use them: look, open, assign, resolve."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, case, exists, insert, or_, select, update

from docmill.db.clock import database_now
from docmill.db.tables import issues, jobs
from docmill.engine.context import to_json
from docmill.model.errors import Conflict, InvalidInput, NotFound, PermanentError
from docmill.model.ids import canonical_id, new_id
from docmill.model.issues import IssueAction, IssueSeverity, IssueStatus
from docmill.services.engine_backed import EngineBacked
from docmill.services.job_ids import unknown_job
from docmill.services.resolving import Resolver

Order = Literal["newest", "severity"]
ISSUE = "issue"
"""What entries in the audit log are about."""

_severity = case({severity.value: rank for rank, severity in enumerate(IssueSeverity)}, value=issues.c.severity)
"""Severity as a number, mildest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueView:
    """One issue."""

    id: str
    status: IssueStatus
    severity: IssueSeverity
    blocking: bool
    code: str
    title: str
    details: Mapping[str, object]
    answer_schema: Mapping[str, object] | None
    corrects: bool
    """The data of a resolution corrects the result that the step has; otherwise it is the result."""
    entity_type: str
    entity_id: str
    job_id: str | None
    step_key: str | None
    assigned_to: str | None
    created_by: str | None
    created_at: datetime
    action: IssueAction | None
    """How it was resolved, with which data, by whom."""
    data: object
    note: str | None
    resolved_by: str | None
    resolved_at: datetime | None
    """When it was resolved or withdrawn."""


Onto = Callable[[IssueView], None]


class Issues(EngineBacked):
    """The issues of one organisation; with `seen_by`, those that concern this person.

    They do if they are about a job that the person created, were opened by the person, or are assigned to the person.
    """

    @property
    def _mine(self) -> Sequence[ColumnElement[bool]]:
        ours = issues.c.org_id == self._org_id
        if self._seen_by is None:
            return [ours]
        of_own_job = exists().where(jobs.c.id == issues.c.job_id, *self._own_jobs)
        return [ours, or_(issues.c.created_by == self._seen_by, issues.c.assigned_to == self._seen_by, of_own_job)]

    def list(
        self,
        *,
        status: IssueStatus | None = IssueStatus.OPEN,
        severity: IssueSeverity | None = None,
        assigned_to: str | None = None,
        entity: tuple[str, str] | None = None,
        job_id: str | None = None,
        blocking: bool | None = None,
        order: Order = "newest",
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[IssueView]:
        """A page of issues, the newest or the most severe first.

        `status` None: all; `severity`: at least so severe; `assigned_to` "": nobody; `entity`: type and id; `after`: go
        on behind the issue with this id, the last of the page before.
        """
        newest = (issues.c.created_at, issues.c.id)
        place = (_severity, *newest) if order == "severity" else newest
        wanted: list[ColumnElement[bool]] = [*self._mine]
        if status is not None:
            wanted.append(issues.c.status == status.value)
        if severity is not None:
            wanted.append(list(IssueSeverity).index(severity) <= _severity)
        if assigned_to is not None:
            wanted.append(issues.c.assigned_to == assigned_to if assigned_to else issues.c.assigned_to.is_(None))
        if entity is not None:
            wanted.append(and_(issues.c.processable_type == entity[0], issues.c.processable_id == entity[1]))
        if job_id is not None:
            wanted.append(issues.c.job_id == self._job_id(job_id))
        if blocking is not None:
            wanted.append(issues.c.blocking == blocking)
        if after is not None:
            wanted.append(_behind(self.get(after), order))
        query = select(issues).where(*wanted).order_by(*(column.desc() for column in place)).limit(limit)
        with self._database.read() as connection:
            return [_view(row) for row in connection.execute(query)]

    def get(self, issue_id: str) -> IssueView:
        """The issue; NotFound if there is none."""
        with self._database.read() as connection:
            return _view(self._row(connection, issue_id))

    def open(
        self,
        *,
        title: str,
        code: str = "reported",
        severity: IssueSeverity = IssueSeverity.WARNING,
        details: Mapping[str, object] | None = None,
        entity: tuple[str, str] | None = None,
        job_id: str | None = None,
        assigned_to: str | None = None,
        by: str | None = None,
    ) -> IssueView:
        """An issue that a person saw, about an entity or a job. It blocks nothing: cancel a job to stop it."""
        if (entity is None) == (job_id is None):
            raise InvalidInput("An issue is about an entity or about a job; name one of them.", field="entity")
        if not title.strip() or not code.strip():
            raise InvalidInput(
                "An issue needs a title and a code that are not empty.", field="title" if not title.strip() else "code"
            )
        values = {
            "id": new_id(),
            "org_id": self._org_id,
            "job_id": None,
            "code": code,
            "title": title,
            "severity": severity.value,
            "status": IssueStatus.OPEN.value,
            "blocking": False,
            "corrects": False,
            "details": dict(details or {}),
            "assigned_to": assigned_to,
            "created_by": by,
        }
        storable(values, "the issue")
        with self._database.write() as connection:
            if job_id is not None:
                job = self._job(connection, job_id)
                values["job_id"] = job.id
                entity = (job.entity_type, job.entity_id)
            assert entity is not None
            values |= {"processable_type": entity[0], "processable_id": entity[1]}
            connection.execute(insert(issues).values(created_at=database_now(connection), **values))
            view = _view(self._row(connection, str(values["id"])))
            told = ("title", "code", "severity", "details", "assigned_to", "job_id", "entity_type", "entity_id")
            after = {name: getattr(view, name) for name in told}
            self._record(connection, "issue.open", (ISSUE, view.id), None, after)
            return view

    def assign(self, issue_id: str, to: str, *, onto: Onto | None = None) -> IssueView:
        """Make somebody look after it; whoever did before no longer does. `onto` may refuse what it is until now."""
        if not to.strip():
            raise InvalidInput("Name somebody to assign the issue to, or unassign it.", field="to")
        storable(to, "the name")
        return self._assign(issue_id, to, onto)

    def unassign(self, issue_id: str, *, onto: Onto | None = None) -> IssueView:
        """Nobody in particular looks after it."""
        return self._assign(issue_id, None, onto)

    def _assign(self, issue_id: str, to: str | None, onto: Onto | None) -> IssueView:
        with self._database.write() as connection:
            found = self._row(connection, issue_id, hold=True)
            if onto is not None:
                onto(_view(found))
            is_open = and_(issues.c.id == found.id, issues.c.status == IssueStatus.OPEN.value)
            changed = connection.execute(update(issues).where(is_open).values(assigned_to=to)).rowcount
            view = _view(self._row(connection, issue_id))
            if changed:
                before, after = {"assigned_to": found.assigned_to}, {"assigned_to": to}
                self._record(connection, "issue.assign", (ISSUE, view.id), before, after)
        if not changed:
            raise Conflict(f"Issue {view.id} is {view.status}; only an open one can be assigned.", issue_id=view.id)
        return view

    def resolve(
        self,
        issue_id: str,
        data: object = None,
        *,
        action: IssueAction | Literal["continue", "retry", "fail"] = IssueAction.CONTINUE,
        by: str | None = None,
        note: str | None = None,
        onto: Onto | None = None,
    ) -> IssueView:
        """Resolve it; when no blocking issue of its step is left open, the step goes on.

        `continue`: the step completes, its result corrected by (or made of) the data. `retry`: it runs again and finds
        the data among its resolutions. `fail`: it fails for good. The last two do not wait for other issues of the
        step; those are withdrawn. `onto` may refuse what it is until now.
        """
        # As JSON gives it back: what we find stored must be known for our own.
        data, by, note = storable([data, by, note], "the resolution")
        view = self.get(issue_id)

        def note_down(connection: Connection, before: Mapping[str, object], after: Mapping[str, object]) -> None:
            self._record(connection, "issue.resolve", (ISSUE, view.id), before, after)

        def base(row: Row[Any]) -> None:
            if onto is not None:
                onto(_view(row))

        resolver = Resolver(view.id, data=data, action=IssueAction(action), by=by, note=note, base=base, also=note_down)
        outcome = self._stores.work(resolver.resolve, again=resolver.resolve_again)
        if outcome is not None:
            self._bell.ring(outcome.left_ready)
        return self.get(view.id)

    def _row(self, connection: Connection, issue_id: str, *, hold: bool = False) -> Row[Any]:
        query: Select[Any] = select(issues).where(issues.c.id == canonical_id(issue_id), *self._mine)
        query = query.with_for_update() if hold else query
        row = connection.execute(query).first()
        if row is None:
            raise NotFound(f"There is no issue {issue_id}. `docmill issues list` shows those there are.", id=issue_id)
        return row

    def _job_id(self, job_id: str) -> str:
        with self._database.read() as connection:
            return str(self._job(connection, job_id).id)

    def _job(self, connection: Connection, job_id: str) -> Row[Any]:
        query: Select[Any] = select(jobs.c.id, jobs.c.entity_type, jobs.c.entity_id).where(
            jobs.c.id == canonical_id(job_id), *self._own_jobs
        )
        row = connection.execute(query).first()
        if row is None:
            raise unknown_job(job_id)
        return row


def storable(value: object, what: str) -> Any:
    """The value as a database gives it back; InvalidInput when it could not keep it."""
    try:
        return orjson.loads(to_json(value, what))
    except PermanentError as error:
        raise InvalidInput(error.message) from error


def _behind(last: IssueView, order: Order) -> ColumnElement[bool]:
    """What comes after this issue in a list."""
    created = issues.c.created_at
    older = or_(created < last.created_at, and_(created == last.created_at, issues.c.id < last.id))
    if order == "newest":
        return older
    rank = list(IssueSeverity).index(last.severity)
    return or_(_severity < rank, and_(_severity == rank, older))


def _view(row: Row[Any]) -> IssueView:
    resolution = row.resolution or {}
    return IssueView(
        id=row.id,
        status=IssueStatus(row.status),
        severity=IssueSeverity(row.severity),
        blocking=row.blocking,
        code=row.code,
        title=row.title,
        details=row.details,
        answer_schema=row.answer_schema,
        corrects=row.corrects,
        entity_type=row.processable_type,
        entity_id=row.processable_id,
        job_id=row.job_id,
        step_key=row.step_key,
        assigned_to=row.assigned_to,
        created_by=row.created_by,
        created_at=row.created_at,
        action=IssueAction(resolution["action"]) if resolution else None,
        data=resolution.get("data"),
        note=row.note,
        resolved_by=row.resolved_by,
        resolved_at=row.resolved_at,
    )
