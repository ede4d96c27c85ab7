"""A document as it is stored, and the SQL that writes and reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, case, exists, or_, select, text

from docmill.db.conflicts import insert_into
from docmill.db.tables import documents, jobs, processed_documents
from docmill.db.tables.jobs import LIVE
from docmill.model.documents import DocumentStatus
from docmill.model.statuses import JobStatus

AUTOMATIC = "auto"
"""Asked for when nobody named a schema: the document's own type decides."""
LOCAL = "local"
"""The variant that asks no model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """One document."""

    id: str
    org_id: str
    file_name: str
    """As it is shown: cleaned, and never used as a path."""
    source: str | None = None
    """Where it came from."""
    run_id: str | None = None
    sha256: str | None = None
    """None: the bytes could not be read at all."""
    size: int | None = None
    format: str | None = None
    status: DocumentStatus = DocumentStatus.QUEUED
    schema_asked: str = AUTOMATIC
    schema_asked_version: str = ""
    variant: str = LOCAL
    """Who reads: `local`, or the model that was named."""
    schema_name: str | None = None
    """Of the result."""
    schema_version: str | None = None
    document_type: str | None = None
    confidence: float | None = None
    original_key: str | None = None
    original_expires_at: datetime | None = None
    original_expired_at: datetime | None = None
    reading_key: str | None = None
    extraction_key: str | None = None
    duplicate_of: str | None = None
    job_id: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    locked: Mapping[str, Any] = field(default_factory=dict)
    """Values that a person decided, by field: no reader overwrites them."""
    outputs: Sequence[str] = ()
    created_at: datetime
    finished_at: datetime | None = None


NAMES = tuple(each.name for each in fields(DocumentRecord))
COLUMNS = [documents.c[name] for name in NAMES]


def record_of(row: Row[Any]) -> DocumentRecord:
    """The record of a row of `views` or of the bare table."""
    values = {name: getattr(row, name) for name in NAMES}
    values["status"] = DocumentStatus(values["status"])
    return DocumentRecord(**values)


def row_of(record: DocumentRecord) -> dict[str, Any]:
    """The values of a new row."""
    values = {name: getattr(record, name) for name in NAMES}
    return values | {"status": record.status.value, "locked": dict(record.locked), "outputs": list(record.outputs)}


_ENDED_BADLY = (JobStatus.FAILED.value, JobStatus.CANCELLED.value)
_DONE = (DocumentStatus.COMPLETED.value, DocumentStatus.DUPLICATE.value)

STATUS = case(
    (documents.c.status.in_(_DONE), documents.c.status),
    (jobs.c.status.is_(None), documents.c.status),
    (jobs.c.status.in_(_ENDED_BADLY), DocumentStatus.FAILED.value),
    (jobs.c.status == JobStatus.PENDING.value, DocumentStatus.QUEUED.value),
    else_=DocumentStatus.PROCESSING.value,
).label("status")
"""Where a document stands: until it is done, its job is the truth, so a job that failed or is retried needs no word."""


def views() -> Select[Any]:
    """Documents with the status that their jobs give them, and that of the job itself."""
    columns = [column for column in COLUMNS if column.name != "status"]
    return select(*columns, STATUS, jobs.c.status.label("job_status")).select_from(
        documents.outerjoin(jobs, jobs.c.id == documents.c.job_id)
    )


def insert_new(connection: Connection, records: Sequence[DocumentRecord]) -> None:
    """Store new documents; one that its run has taken in before is left as it is."""
    if not records:
        return
    new = insert_into(connection, documents).on_conflict_do_nothing()
    connection.execute(new, [row_of(record) for record in records])


KEY = ("org_id", "sha256", "schema_name", "schema_version", "variant")
"""By what the cache knows a result."""


ASKED = ("org_id", "sha256", "schema_asked", "schema_asked_version", "variant")
"""What a document says to each of these."""


WORKED_ON = exists(
    select(1).where(jobs.c.id == processed_documents.c.job_id, text(f"processing_jobs.status IN ({LIVE})"))
)
"""Whether the document that holds a claim may still come to a result."""


def free_for(document_id: Any, now: Any) -> Any:
    """The condition under which a document may take a cache row over: its own, expired, or given up."""
    row = processed_documents.c
    given_up = and_(row.extraction_key.is_(None), ~WORKED_ON)
    return or_(row.document_id == document_id, row.expires_at <= now, given_up)
