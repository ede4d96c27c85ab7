"""Batches: many jobs submitted together. The row's lock guards its counters, taken after the locks of jobs."""

from sqlalchemy import Boolean, CheckConstraint, Column, Index, Integer, String, Table, false, text

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
    Column("cancelling", Boolean, nullable=False, server_default=false()),
    Column("digest", String, nullable=False, server_default=text("''")),
    Column("metadata", JsonValue, nullable=False),
    Column("created_by", String),
    Column("created_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    # No bound by `max_active`: a limit may be lowered below what is active. See UPDATE_BATCH for what holds instead.
    CheckConstraint("active >= 0 AND held >= 0 AND active + held <= total AND max_active >= 0", name="counts"),
)
Index("ix_processing_batches_org", batches.c.org_id, batches.c.id)
Index(
    "ix_processing_batches_open",
    batches.c.id,
    postgresql_where=text("finished_at IS NULL"),
    sqlite_where=text("finished_at IS NULL"),
)
