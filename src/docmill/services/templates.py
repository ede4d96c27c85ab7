"""Process templates as people use them: register a version, find one, list them, ask who uses what."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import jobs, template_steps, templates
from docmill.model.errors import NotFound
from docmill.model.ids import DEFAULT_ORG, is_id, new_id
from docmill.model.statuses import JobStatus
from docmill.services.acting import Acted
from docmill.templates.compile import CompiledTemplate
from docmill.templates.document import Document, plan_from_document
from docmill.templates.plan import ALL_PREVIOUS, Plan

Onto = Callable[[int | None], None]
"""Told the newest version there is inside the transaction that stores the next; raises to prevent it."""
TEMPLATE = "template"
"""What entries in the audit log are about."""
_ATTEMPTS = 50
"""Each attempt that fails is another's that succeeded, so this many can register one name at the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateVersion:
    """One stored version of a template."""

    id: str
    name: str
    version: int
    processable_type: str
    task_type: str
    service_name: str | None
    digest: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What became of a template that was added."""

    template: TemplateVersion
    new: bool
    """False: this very content was there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSummary:
    """One version in a list."""

    template: TemplateVersion
    steps: int
    active_jobs: int
    """Jobs of this version that have not finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSummary:
    """One template in a list."""

    template: TemplateVersion
    """Its newest version."""
    versions: int
    steps: int
    """Of the newest version."""
    active_jobs: int
    """Of all versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateUse:
    """A step that uses what was asked for."""

    name: str
    version: int
    newest: bool
    """Whether this is the version new jobs take."""
    step_key: str


class Templates(Acted):
    """The templates of one organisation."""

    def __init__(self, database: Database, org_id: str = DEFAULT_ORG) -> None:
        self._database = database.scoped(org_id)
        self._org_id = org_id
        self._own = (templates.c.org_id == org_id, templates.c.undoes_id.is_(None))
        """What people stored: not the templates that Docmill makes to undo jobs."""

    def register(self, compiled: CompiledTemplate, *, shipped: bool = False) -> TemplateVersion:
        """Store the template as a new version, unless one with the same content exists: then that one is meant.

        `shipped`: nobody chose it, it is what this release of Docmill ships; `is_shipped` tells so later.
        """
        template = self.add(compiled).template
        if shipped:
            with self._database.write() as connection:
                connection.execute(update(templates).where(templates.c.id == template.id).values(shipped=True))
        return template

    def is_shipped(self, template_id: str) -> bool:
        """Whether this version is one that Docmill stored from what it ships."""
        with self._database.read() as connection:
            return bool(connection.execute(select(templates.c.shipped).where(templates.c.id == template_id)).scalar())

    def add(self, compiled: CompiledTemplate, *, onto: Onto | None = None) -> Registration:
        """As `register`, and tell whether it was new. `onto` may refuse the version that this one would follow."""
        return self._tried([compiled], onto)[0]

    def add_all(self, compiled: Sequence[CompiledTemplate]) -> Sequence[Registration]:
        """Store several, all or none; answers in the order given."""
        return self._tried(compiled, None)

    def _tried(self, compiled: Sequence[CompiledTemplate], onto: Onto | None) -> Sequence[Registration]:
        for _ in range(_ATTEMPTS):
            try:
                return self._add_all(compiled, onto)
            except IntegrityError:
                continue  # Somebody registered the same name at the same moment: look again.
        return self._add_all(compiled, onto)

    def _add_all(self, compiled: Sequence[CompiledTemplate], onto: Onto | None) -> Sequence[Registration]:
        # By name: two who store the same templates at the same moment then queue instead of deadlocking.
        places = sorted(range(len(compiled)), key=lambda place: compiled[place].plan.name)
        with self._database.write() as connection:
            added = {place: self._add(connection, compiled[place], onto) for place in places}
            for place in places:
                if added[place].new:
                    self._published(connection, added[place].template)
        return [added[place] for place in range(len(compiled))]

    def _add(self, connection: Connection, compiled: CompiledTemplate, onto: Onto | None) -> Registration:
        plan = compiled.plan
        named = templates.c.name == plan.name
        newest = self._row(connection, named)
        if onto is not None:
            onto(None if newest is None else newest.version)
        if newest is not None and newest.digest in (compiled.digest, _restored(compiled.digest, newest.version)):
            return Registration(template=_version(newest), new=False)
        version = 1 if newest is None else newest.version + 1
        # What an older version said becomes the newest again: that is how a change is taken back.
        older = self._row(connection, named, templates.c.digest == compiled.digest)
        values = {
            "id": new_id(),
            "org_id": self._org_id,
            "name": plan.name,
            "version": version,
            "processable_type": plan.processable_type,
            "task_type": plan.task_type,
            "service_name": plan.service_name,
            "digest": compiled.digest if older is None else _restored(compiled.digest, version),
            "definition": compiled.document,
            "created_at": database_now(connection),
        }
        connection.execute(insert(templates).values(values))
        keys = {"template_id": values["id"], "org_id": self._org_id}
        connection.execute(insert(template_steps), [{**row, **keys} for row in _step_rows(plan)])
        row = self._row(connection, templates.c.id == values["id"])
        assert row is not None
        return Registration(template=_version(row), new=True)

    def _published(self, connection: Connection, template: TemplateVersion) -> None:
        told = {"version": template.version, "id": template.id, "digest": template.digest}
        before = None if template.version == 1 else {"version": template.version - 1}
        self._record(connection, "template.publish", (TEMPLATE, template.name), before, told)

    def find(self, name: str, version: int | None = None) -> TemplateVersion:
        """The newest version of a template, or the one asked for."""
        with self._database.read() as connection:
            conditions = [templates.c.name == name]
            if version is not None:
                conditions.append(templates.c.version == version)
            row = self._row(connection, *conditions)
            if row is None:
                raise self._missing(connection, name, version)
        return _version(row)

    def _missing(self, connection: Connection, name: str, version: int | None = None) -> NotFound:
        """What to say of a template or version that is not there."""
        query = select(templates.c.name).where(*self._own).distinct()
        names = sorted(connection.execute(query).scalars())
        if name in names:
            message = f"There is no version {version} of the template {name!r}. `docmill templates versions {name}`"
        else:
            close = get_close_matches(name, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            message = f"There is no template {name!r}.{hint} `docmill templates list`"
        return NotFound(f"{message} shows those there are.", name=name)

    def plan(self, template_id: str) -> Plan:
        """The compiled plan of a version."""
        return plan_from_document(self.document(template_id))

    def document(self, template_id: str) -> Document:
        """The stored form of a version: plain data with every default written out."""
        definition: Document | None = None
        if is_id(template_id):
            with self._database.read() as connection:
                query = select(templates.c.definition).where(
                    templates.c.id == template_id, templates.c.org_id == self._org_id
                )
                definition = connection.execute(query).scalar()
        if definition is None:
            raise NotFound(f"There is no template version with the id {template_id}.")
        return definition

    def versions(self, name: str) -> Sequence[VersionSummary]:
        """All versions of a template, the newest first; NotFound if there is none."""
        with self._database.read() as connection:
            found = list(self._summaries(connection, templates.c.name == name))
            if not found:
                raise self._missing(connection, name)
        return found[::-1]

    def list(self) -> Sequence[TemplateSummary]:
        """Every template, by name."""
        found: dict[str, list[VersionSummary]] = {}
        with self._database.read() as connection:
            for summary in self._summaries(connection):
                found.setdefault(summary.template.name, []).append(summary)
        return [
            TemplateSummary(
                template=versions[-1].template,
                versions=len(versions),
                steps=versions[-1].steps,
                active_jobs=sum(version.active_jobs for version in versions),
            )
            for versions in found.values()
        ]

    def _summaries(self, connection: Connection, *conditions: ColumnElement[bool]) -> Iterator[VersionSummary]:
        """By name, then version."""
        steps = select(template_steps.c.template_id, func.count().label("steps")).group_by(template_steps.c.template_id)
        active = select(jobs.c.template_id, func.count().label("jobs")).where(
            jobs.c.org_id == self._org_id, jobs.c.status.in_(_ACTIVE)
        )
        counted = steps.where(template_steps.c.org_id == self._org_id).subquery()
        running = active.group_by(jobs.c.template_id).subquery()
        query: Any = (
            select(*_COLUMNS, counted.c.steps, func.coalesce(running.c.jobs, 0).label("jobs"))
            .join(counted, counted.c.template_id == templates.c.id)
            .outerjoin(running, running.c.template_id == templates.c.id)
            .where(*self._own, *conditions)
            .order_by(templates.c.name, templates.c.version)
        )
        for row in connection.execute(query):
            yield VersionSummary(template=_version(row), steps=row.steps, active_jobs=row.jobs)

    def uses(
        self, *, step_type: str | None = None, prompt: str | None = None, processor: str | None = None
    ) -> Sequence[TemplateUse]:
        """Steps of any version that use all of what is given; by name, newest version first.

        `processor` is a method or `service.method`; compensation methods count too.
        """
        steps = template_steps
        conditions = list(self._own)
        if step_type is not None:
            conditions.append(steps.c.step_type == step_type)
        if prompt is not None:
            conditions.append(steps.c.prompt == prompt)
        newest = select(templates.c.name, func.max(templates.c.version).label("version")).where(*self._own)
        top = newest.group_by(templates.c.name).subquery()
        query: Any = (
            select(
                *(templates.c[name] for name in ("name", "version", "service_name")),
                *(steps.c[name] for name in ("step_key", "processor_method", "compensation_method")),
                (templates.c.version == top.c.version).label("newest"),
            )
            .join(steps, steps.c.template_id == templates.c.id)
            .join(top, top.c.name == templates.c.name)
            .where(*conditions)
            .order_by(templates.c.name, templates.c.version.desc(), steps.c.position)
        )
        with self._database.read() as connection:
            return [
                TemplateUse(name=row.name, version=row.version, newest=row.newest, step_key=row.step_key)
                for row in connection.execute(query)
                if processor is None or processor in _methods(row)
            ]

    def _row(self, connection: Connection, *conditions: ColumnElement[bool]) -> Row[tuple[object, ...]] | None:
        query = select(*_COLUMNS).where(*self._own, *conditions)
        return connection.execute(query.order_by(templates.c.version.desc()).limit(1)).first()


_COLUMNS = [templates.c[name] for name in TemplateVersion.__dataclass_fields__]
"""Without the definition, which may be a megabyte."""


def _restored(digest: str, version: int) -> str:
    """Stored for a version that says again what an older one said: digests of one name are unique."""
    return sha256(f"{digest}@{version}".encode()).hexdigest()


def _version(row: Row[tuple[object, ...]]) -> TemplateVersion:
    return TemplateVersion(**{name: getattr(row, name) for name in TemplateVersion.__dataclass_fields__})


_ACTIVE = [status.value for status in JobStatus if not status.finished]


def _methods(row: Row[Any]) -> set[str]:
    """Every processor and compensation method a step names, alone and with its service."""
    methods = {choice["method"] for choice in row.processor_method} | {row.compensation_method} - {None}
    return methods | {f"{row.service_name}.{method}" for method in methods}


def _step_rows(plan: Plan) -> Iterator[Mapping[str, object]]:
    """The steps as rows of `process_template_steps`, but for the keys."""
    for step in plan.steps:
        needs = [ALL_PREVIOUS] if step.finish else [plan.steps[need].step_key for need in step.depends_on]
        yield {
            "position": step.position,
            "step_key": step.step_key,
            "display_name": step.display_name,
            "kind": step.kind.value,
            "step_type": step.step_type,
            "pool": step.pool,
            "execution_group": step.execution_group,
            "step_order": step.order,
            "depends_on": needs,
            "optional": step.optional,
            "on_failure_action": step.on_failure.value,
            "processor_method": [{"when": choice.when, "method": choice.method} for choice in step.processor],
            "compensation_method": step.compensation,
            "prompt": step.prompt,
        }


def check_templates(database: Database, template_ids: Iterable[str], org_id: str) -> None:
    """NotFound names the first of these template versions that the organisation does not have."""
    wanted = set(template_ids)
    query = select(templates.c.id).where(templates.c.id.in_(wanted), templates.c.org_id == org_id)
    with database.scoped(org_id).read() as connection:
        found = set(connection.execute(query).scalars())
    for template_id in sorted(wanted - found):
        raise NotFound(f"There is no process template version with id {template_id}.", template_id=template_id)
