"""What the API stands on: answers under idempotency keys, words of documents, events of an organisation in order."""

import sqlalchemy as sa
from alembic import op

from docmill.db.protection import protect
from docmill.db.standing import KEEPER
from docmill.db.types import IdType, UtcTime

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "idempotency_keys",
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("status", sa.SmallInteger),
        sa.Column("body", sa.Text),
        sa.Column("begun_at", UtcTime, nullable=False),
        sa.Column("expires_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("org_id", "who", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_expires", "idempotency_keys", ["expires_at"])
    word = sa.String(64, collation="C") if postgres else sa.String(64)
    op.create_table(
        "document_words",
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("word", word, nullable=False),
        sa.Column("document_id", IdType, nullable=False),
        sa.PrimaryKeyConstraint("org_id", "word", "document_id", name="pk_document_words"),
    )
    op.create_index("ix_document_words_document", "document_words", ["document_id"])
    op.add_column("documents", sa.Column("words_of", sa.String(64)))
    unread = "extraction_key IS NOT NULL AND " + (
        "words_of IS DISTINCT FROM extraction_key" if postgres else "words_of IS NOT extraction_key"
    )
    op.create_index(
        "ix_documents_unindexed",
        "documents",
        ["org_id", "id"],
        postgresql_where=sa.text(unread),
        sqlite_where=sa.text(unread),
    )
    op.create_index("ix_processing_job_events_org", "processing_job_events", ["org_id", "at"])
    connection = op.get_bind()
    protect(connection, "idempotency_keys", across={KEEPER: "select, delete"})
    protect(connection, "document_words", under={"document_id": "documents"})
