"""What the API remembers: answers under idempotency keys, and the words by which documents are found."""

from sqlalchemy import Column, Index, PrimaryKeyConstraint, SmallInteger, String, Table, Text

from docmill.db.tables.metadata import metadata
from docmill.db.types import IdType, UtcTime

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("org_id", IdType, nullable=False),
    Column("who", String, nullable=False),
    Column("key", String(255), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("status", SmallInteger),
    Column("body", Text),
    Column("begun_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("org_id", "who", "key"),
)
Index("ix_idempotency_keys_expires", idempotency_keys.c.expires_at)

# Letter by letter on both databases: a prefix is a range.
_Word = String(64).with_variant(String(64, collation="C"), "postgresql")

document_words = Table(
    "document_words",
    metadata,
    Column("org_id", IdType, nullable=False),
    Column("word", _Word, nullable=False),
    Column("document_id", IdType, nullable=False),
    PrimaryKeyConstraint("org_id", "word", "document_id"),
)
Index("ix_document_words_document", document_words.c.document_id)
