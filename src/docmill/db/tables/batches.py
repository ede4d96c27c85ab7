"""Batches: many jobs submitted together. The row's lock guards its counters, taken after the locks of jobs."""

from sqlalchemy import Column, Index, Integer, String, Table, text

from docmill.db.tables.metadata import metadata
from docmill.db.types import IdType, JsonValue, UtcTime

batches = Table(
    "processing_batches",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("title", String, nullable=False),
    Column("max_active", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("active", Integer, nullable=False),
    Column("held", Integer, nullable=False),
    Column("metadata", JsonValue, nullable=False),
    Column("created_by", String),
    Column("created_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
)
Index("ix_processing_batches_org", batches.c.org_id, batches.c.id)
Index(
    "ix_processing_batches_held",
    batches.c.id,
    postgresql_where=text("held > 0"),
    sqlite_where=text("held > 0"),
)
