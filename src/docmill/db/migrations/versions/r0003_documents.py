"""Documents: their rows, what was processed before, and the runs that brought them in."""

import sqlalchemy as sa
from alembic import op

from docmill.db.types import IdType, JsonValue, UtcTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _documents()
    _processed()
    _runs()


def _documents() -> None:
    op.create_table(
        "documents",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("run_id", IdType),
        sa.Column("file_name", sa.String, nullable=False),
        sa.Column("source", sa.String),
        sa.Column("sha256", sa.String(64)),
        sa.Column("size", sa.BigInteger),
        sa.Column("format", sa.String),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("schema_asked", sa.String, nullable=False),
        sa.Column("schema_asked_version", sa.String, nullable=False),
        sa.Column("schema_name", sa.String),
        sa.Column("schema_version", sa.String),
        sa.Column("variant", sa.String, nullable=False),
        sa.Column("document_type", sa.String),
        sa.Column("confidence", sa.Double),
        sa.Column("original_key", sa.String(64)),
        sa.Column("original_expires_at", UtcTime),
        sa.Column("original_expired_at", UtcTime),
        sa.Column("reading_key", sa.String(64)),
        sa.Column("extraction_key", sa.String(64)),
        sa.Column("duplicate_of", IdType),
        sa.Column("job_id", IdType),
        sa.Column("error_code", sa.String),
        sa.Column("error_message", sa.String),
        sa.Column("locked", JsonValue, nullable=False),
        sa.Column("outputs", JsonValue, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("finished_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        sa.CheckConstraint(
            "status IN ('queued', 'processing', 'completed', 'failed', 'duplicate')",
            name=op.f("ck_documents_status"),
        ),
    )
    op.create_index("ix_documents_org", "documents", ["org_id", "created_at", "id"])
    op.create_index("ix_documents_sha256", "documents", ["org_id", "sha256"])
    _partial_index("uq_documents_run", "documents", ["run_id", "source", "sha256"], "run_id IS NOT NULL", unique=True)
    _partial_index("ix_documents_unfinished", "documents", ["id"], "status IN ('queued', 'processing')")
    expiring = "original_expires_at IS NOT NULL AND original_expired_at IS NULL"
    _partial_index("ix_documents_expiring", "documents", ["original_expires_at"], expiring)
    op.create_index("ix_documents_original", "documents", ["original_key"])


def _processed() -> None:
    key = ("org_id", "sha256", "schema_name", "schema_version", "variant")
    op.create_table(
        "processed_documents",
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("schema_name", sa.String, nullable=False),
        sa.Column("schema_version", sa.String, nullable=False),
        sa.Column("variant", sa.String, nullable=False),
        sa.Column("document_id", IdType, nullable=False),
        sa.Column("job_id", IdType, nullable=False),
        sa.Column("extraction_key", sa.String(64)),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("completed_at", UtcTime),
        sa.Column("expires_at", UtcTime),
        sa.PrimaryKeyConstraint(*key, name="pk_processed_documents"),
    )
    _partial_index("ix_processed_documents_expires", "processed_documents", ["expires_at"], "expires_at IS NOT NULL")


def _runs() -> None:
    op.create_table(
        "document_runs",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("finished_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_document_runs"),
    )
    _partial_index("uq_document_runs_open", "document_runs", ["org_id", "key"], "finished_at IS NULL", unique=True)


def _partial_index(name: str, table: str, columns: list[str], condition: str, *, unique: bool = False) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, unique=unique, postgresql_where=where, sqlite_where=where)
