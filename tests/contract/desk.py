"""A desk of reviewers: a queue of items without the documents behind them, for tests of what review promises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, update

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import documents, review_items
from docmill.documents.reading import Box
from docmill.documents.records import DocumentRecord, row_of
from docmill.engine.bell import open_bell
from docmill.extraction.result import Evidence, Extraction, FieldValue, Reader
from docmill.extraction.schema import FieldSchema
from docmill.extraction.schema_text import parse_schema
from docmill.model.ids import DEFAULT_ORG, following_id, new_id
from docmill.model.people import PERMISSIONS, Principal, Role, system_principal
from docmill.people.audit import Deed
from docmill.review.fields import found_in
from docmill.review.priority import place_of, standing
from docmill.review.recording import Recorder
from docmill.review.rows import Packed, deadlines, insert_fields
from docmill.services.review import Review
from docmill.services.review_base import Reading
from docmill.services.review_decisions import OUTPUTS
from docmill.services.templates import Templates
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.shipped import shipped_text

SLIP = parse_schema(
    """
name: slip
title: Slip
fields:
  number: {type: text, labels: [Invoice], required: true}
  total: {type: amount, labels: [Total], required: true}
  due_date: {type: date, labels: [Due]}
tables:
  line_items:
    title: Lines
    columns:
      description: {type: text}
      amount: {type: amount}
rules:
  adds_up:
    holds: total == sum(line_items.amount)
    message: The total is the sum of the lines.
""",
    source="slip",
    name="slip",
)


def person(name: str, role: Role = Role.REVIEWER) -> Principal:
    """Somebody of the organisation."""
    return Principal(org_id=DEFAULT_ORG, kind="user", id=name, name=name.title(), role=role, scopes=PERMISSIONS[role])


ANN, BOB = person("ann"), person("bob")
BOSS = person("boss", Role.ADMIN)


def value(text: str, confidence: float = 0.95, *failed: str) -> FieldValue:
    """A value as a reader finds it."""
    place = Evidence(page=1, box=Box(0.1, 0.2, 0.3, 0.4))
    return FieldValue(value=text, raw=text, confidence=confidence, evidence=(place,), passed=("type",), failed=failed)


def extraction(lines: Sequence[Mapping[str, str]] = (), /, **fields: str) -> Extraction:
    """A slip as it was read."""
    return Extraction(
        schema="slip",
        schema_version=SLIP.version,
        reader=Reader.LOCAL,
        document_type="slip",
        fields={name: value(text) for name, text in fields.items()},
        rows={"line_items": [{column: value(text) for column, text in line.items()} for line in lines]}
        if lines
        else {},
        confidence=0.9,
    )


@dataclass
class Recorded:
    """A recorder that remembers."""

    actions: list[tuple[str, str, str, Any, Any]] = field(default_factory=list)

    def record(self, connection: Connection, principal: Principal, deeds: Sequence[Deed], now: datetime) -> None:
        for action, subject, before, after in deeds:
            self.actions.append((principal.id, action, subject[1], before, after))

    @property
    def verbs(self) -> list[str]:
        return [action for _, action, *_ in self.actions]


class Desk:
    """Items, and the service over them."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self._bell = open_bell(database, folder / "run")
        compiled = compile_template(shipped_text(OUTPUTS), catalogue=Catalogue.permissive())
        self._template = Templates(database).register(compiled).id
        self.recorded = Recorded()
        self.recorder: Recorder = self.recorded
        self.extractions: dict[str, Extraction] = {}
        self.review = self.service()
        self.system = system_principal(DEFAULT_ORG)

    def service(self, claim_for: timedelta = timedelta(minutes=30)) -> Review:
        """Another edge onto the same items."""

        def schema(name: str, file: str | None) -> FieldSchema | None:
            return SLIP if name == "slip" else None

        return Review(
            self.database,
            self._bell,
            Reading(extraction=self.extractions.get, schema=schema),
            lambda: self._template,
            claim_for=claim_for,
            recorder=self.recorder,
        )

    def now(self) -> datetime:
        with self.database.read() as connection:
            return database_now(connection)

    def put(self, count: int = 1, **about: Any) -> list[str]:
        """So many bare items, all alike but for what a list says."""
        rows, papers = [], []
        now = self.now()
        for number in range(count):
            told = {name: each[number] if isinstance(each, list) else each for name, each in about.items()}
            rows.append(item_row(now, **told))
            papers.append(_paper(rows[-1]["document_id"], rows[-1]["created_at"]))
        with self.database.write() as connection:
            connection.execute(insert(documents), papers)
            connection.execute(insert(review_items), rows)
        return [row["id"] for row in rows]

    def slip(self, found: Extraction) -> str:
        """An item with fields."""
        row = item_row(self.now(), confidence=found.confidence, extraction_key=new_id().replace("-", "") * 2)
        self.extractions[row["extraction_key"]] = found
        rows = Packed.of(found_in(found, SLIP).rows)
        with self.database.write() as connection:
            connection.execute(insert(documents), [_paper(row["document_id"], row["created_at"])])
            connection.execute(insert(review_items), [row])
            insert_fields(connection, connection.dialect.name, DEFAULT_ORG, row["id"], rows)
        return str(row["id"])

    def locked(self, item_id: str) -> Mapping[str, Any]:
        """What the document of an item keeps locked."""
        query = select(documents.c.locked).join(review_items, review_items.c.document_id == documents.c.id)
        with self.database.read() as connection:
            found: Mapping[str, Any] = connection.execute(query.where(review_items.c.id == item_id)).scalar_one()
            return found

    def close(self) -> None:
        self.review.close()
        self._bell.close()
        self.database.close()


def _paper(document_id: str, created_at: datetime) -> dict[str, Any]:
    record = DocumentRecord(id=document_id, org_id=DEFAULT_ORG, file_name="slip.pdf", created_at=created_at)
    return row_of(record)


def item_row(
    now: datetime,
    *,
    age: timedelta = timedelta(0),
    sla: timedelta | None = timedelta(hours=24),
    confidence: float = 0.5,
    complexity: float = 0.0,
    value: float = 0.0,
    **columns: Any,
) -> dict[str, Any]:
    """The row of a pending item that was made so long ago."""
    document_id, created_at = new_id(), now - age
    fixed = standing(confidence=confidence, complexity=complexity, value=value)
    queue_class, place = place_of(fixed, created_at, sla)
    return {
        "id": following_id(document_id, "review", 1),
        "org_id": DEFAULT_ORG,
        "document_id": document_id,
        "round": 1,
        "schema_name": "slip",
        "schema_version": "1",
        "extraction_key": "0" * 64,
        "options": {},
        "cut": [],
        "status": "pending",
        "version": 1,
        "assigned_to": "",
        "claimed_by": "",
        "confidence": confidence,
        "complexity": complexity,
        "value": value,
        "standing": fixed,
        "queue_class": queue_class,
        "place": place,
        "fields_total": 0,
        "fields_to_review": 0,
        **deadlines(created_at, sla),
        "created_at": created_at,
        "updated_at": created_at,
        "automatic": False,
        **columns,
    }


def age(desk: Desk, item: str, **columns: object) -> None:
    """Let something have happened to an item in the past."""
    with desk.database.write() as connection:
        connection.execute(update(review_items).where(review_items.c.id == item).values(**columns))
