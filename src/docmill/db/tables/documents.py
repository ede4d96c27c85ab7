"""Documents, what was processed before, and the runs in which people bring documents in.

Bytes are never in rows: originals, readings and results are blobs, named here by their keys.
"""

from sqlalchemy import BigInteger, Column, Double, Index, PrimaryKeyConstraint, String, Table, text

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, JsonValue, UtcTime
from docmill.model.documents import FINISHED_DOCUMENTS, DocumentStatus

UNFINISHED = ", ".join(f"'{status}'" for status in DocumentStatus if status not in FINISHED_DOCUMENTS)
"""The statuses of unfinished documents as SQL lists them; a query that says the same finds the partial index."""

documents = Table(
    "documents",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("run_id", IdType),
    Column("file_name", String, nullable=False),
    Column("source", String),
    Column("sha256", String(64)),
    Column("size", BigInteger),
    Column("format", String),
    Column("status", String, nullable=False),
    Column("schema_asked", String, nullable=False),
    Column("schema_asked_version", String, nullable=False),
    Column("schema_name", String),
    Column("schema_version", String),
    Column("variant", String, nullable=False),
    Column("document_type", String),
    Column("confidence", Double),
    Column("original_key", String(64)),
    Column("original_expires_at", UtcTime),
    Column("original_expired_at", UtcTime),
    Column("reading_key", String(64)),
    Column("extraction_key", String(64)),
    Column("duplicate_of", IdType),
    Column("job_id", IdType),
    Column("error_code", String),
    Column("error_message", String),
    Column("locked", JsonValue, nullable=False),
    Column("outputs", JsonValue, nullable=False),
    Column("words_of", String(64)),
    Column("created_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    one_of("status", DocumentStatus),
)
Index("ix_documents_org", documents.c.org_id, documents.c.created_at, documents.c.id)
Index("ix_documents_sha256", documents.c.org_id, documents.c.sha256)
# A run takes a file in once, however often it is started again.
Index(
    "uq_documents_run",
    documents.c.run_id,
    documents.c.source,
    documents.c.sha256,
    unique=True,
    postgresql_where=text("run_id IS NOT NULL"),
    sqlite_where=text("run_id IS NOT NULL"),
)
Index(
    "ix_documents_unfinished",
    documents.c.id,
    postgresql_where=text(f"status IN ({UNFINISHED})"),
    sqlite_where=text(f"status IN ({UNFINISHED})"),
)
Index(
    "ix_documents_expiring",
    documents.c.original_expires_at,
    postgresql_where=text("original_expires_at IS NOT NULL AND original_expired_at IS NULL"),
    sqlite_where=text("original_expires_at IS NOT NULL AND original_expired_at IS NULL"),
)
# Results whose words are not stored yet, for search.
Index(
    "ix_documents_unindexed",
    documents.c.org_id,
    documents.c.id,
    postgresql_where=text("extraction_key IS NOT NULL AND words_of IS DISTINCT FROM extraction_key"),
    sqlite_where=text("extraction_key IS NOT NULL AND words_of IS NOT extraction_key"),
)
# Who else needs the bytes that are to be deleted.
Index("ix_documents_original", documents.c.original_key)
# Who shares the decisions about an original.
Index(
    "ix_documents_duplicate_of",
    documents.c.duplicate_of,
    postgresql_where=text("duplicate_of IS NOT NULL"),
    sqlite_where=text("duplicate_of IS NOT NULL"),
)

# A row of `variant` same_invoice says who had an invoice or a receipt first; its `sha256` is that of what the paper is
# known by, and its `schema_version` the id of one that came behind (`docmill.documents.paper_claims`).
# The others are by bytes: the row is a claim while `extraction_key` is null: one document at a time is processed for a
# key, and its job is the proof that somebody still works on it.
processed_documents = Table(
    "processed_documents",
    metadata,
    Column("org_id", IdType, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("schema_name", String, nullable=False),
    Column("schema_version", String, nullable=False),
    Column("variant", String, nullable=False),
    Column("document_id", IdType, nullable=False),
    Column("job_id", IdType, nullable=False),
    Column("extraction_key", String(64)),
    Column("created_at", UtcTime, nullable=False),
    Column("completed_at", UtcTime),
    Column("expires_at", UtcTime),
    PrimaryKeyConstraint("org_id", "sha256", "schema_name", "schema_version", "variant"),
)
Index(
    "ix_processed_documents_expires",
    processed_documents.c.expires_at,
    postgresql_where=text("expires_at IS NOT NULL"),
    sqlite_where=text("expires_at IS NOT NULL"),
)

# The same command on the same paths, started again before it came to its end, is the same run.
document_runs = Table(
    "document_runs",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("key", String(64), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
)
Index(
    "uq_document_runs_open",
    document_runs.c.org_id,
    document_runs.c.key,
    unique=True,
    postgresql_where=text("finished_at IS NULL"),
    sqlite_where=text("finished_at IS NULL"),
)

# Bytes that no document needs any more, until they are deleted; with `claimed_at`, somebody is at it.
leaving_blobs = Table(
    "leaving_blobs",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("claimed_at", UtcTime),
)
