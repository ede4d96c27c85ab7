"""Process templates as people use them: register a version, find one, list them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select
from sqlalchemy.exc import IntegrityError

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import templates
from docmill.model.errors import NotFound
from docmill.model.ids import DEFAULT_ORG, is_id, new_id
from docmill.templates.compile import CompiledTemplate
from docmill.templates.document import Document, plan_from_document
from docmill.templates.plan import Plan

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


class Templates:
    """The templates of one organisation."""

    def __init__(self, database: Database, org_id: str = DEFAULT_ORG) -> None:
        self._database = database
        self._org_id = org_id

    def register(self, compiled: CompiledTemplate) -> TemplateVersion:
        """Store the template as a new version, unless one with the same content exists: then that one is meant."""
        return self.add(compiled).template

    def add(self, compiled: CompiledTemplate) -> Registration:
        """As `register`, and tell whether it was new."""
        for _ in range(_ATTEMPTS):
            try:
                return self._register(compiled)
            except IntegrityError:
                continue  # Somebody registered the same name at the same moment: look again.
        return self._register(compiled)

    def _register(self, compiled: CompiledTemplate) -> Registration:
        plan = compiled.plan
        with self._database.write() as connection:
            same = self._row(connection, templates.c.name == plan.name, templates.c.digest == compiled.digest)
            if same is not None:
                return Registration(template=_version(same), new=False)
            newest = connection.execute(
                select(func.max(templates.c.version)).where(
                    templates.c.org_id == self._org_id, templates.c.name == plan.name
                )
            ).scalar()
            values = {
                "id": new_id(),
                "org_id": self._org_id,
                "name": plan.name,
                "version": (newest or 0) + 1,
                "processable_type": plan.processable_type,
                "task_type": plan.task_type,
                "service_name": plan.service_name,
                "digest": compiled.digest,
                "definition": compiled.document,
                "created_at": database_now(connection),
            }
            connection.execute(insert(templates).values(values))
            row = self._row(connection, templates.c.id == values["id"])
            assert row is not None
            return Registration(template=_version(row), new=True)

    def find(self, name: str, version: int | None = None) -> TemplateVersion:
        """The newest version of a template, or the one asked for."""
        with self._database.read() as connection:
            conditions = [templates.c.name == name]
            if version is not None:
                conditions.append(templates.c.version == version)
            row = self._row(connection, *conditions)
        if row is None:
            wanted = f"version {version} of the template {name!r}" if version else f"template {name!r}"
            raise NotFound(f"There is no {wanted}. `docmill templates list` shows those there are.", name=name)
        return _version(row)

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

    def list(self) -> Sequence[TemplateVersion]:
        """The newest version of every template, by name."""
        with self._database.read() as connection:
            query = select(*_COLUMNS).where(templates.c.org_id == self._org_id)
            rows = connection.execute(query.order_by(templates.c.name, templates.c.version)).all()
        return list({row.name: _version(row) for row in rows}.values())

    def _row(self, connection: Connection, *conditions: ColumnElement[bool]) -> Row[tuple[object, ...]] | None:
        query = select(*_COLUMNS).where(templates.c.org_id == self._org_id, *conditions)
        return connection.execute(query.order_by(templates.c.version.desc()).limit(1)).first()


_COLUMNS = [templates.c[name] for name in TemplateVersion.__dataclass_fields__]
"""Without the definition, which may be a megabyte."""


def _version(row: Row[tuple[object, ...]]) -> TemplateVersion:
    return TemplateVersion(**{name: getattr(row, name) for name in TemplateVersion.__dataclass_fields__})
