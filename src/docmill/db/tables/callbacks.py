"""Callbacks of outside executors, stored before they are acted on. No foreign key: those for unknown jobs stay too."""

from sqlalchemy import Column, Index, Integer, LargeBinary, SmallInteger, String, Table, text

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, JsonText, UtcTime
from docmill.model.callbacks import CallbackOutcome

callbacks = Table(
    "processing_callbacks",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("message_id", String),
    Column("job_id", IdType),
    Column("position", SmallInteger),
    Column("epoch", Integer),
    Column("payload", JsonText, nullable=False),
    Column("outcome", String, nullable=False),
    Column("received_at", UtcTime, nullable=False),
    Column("settled_at", UtcTime),
    one_of("outcome", CallbackOutcome),
)
Index("ix_processing_callbacks_job", callbacks.c.job_id, callbacks.c.position)
Index(
    "ix_processing_callbacks_received",
    callbacks.c.job_id,
    callbacks.c.position,
    postgresql_where=text("outcome = 'received'"),
    sqlite_where=text("outcome = 'received'"),
)

secrets = Table(
    "installation_secrets",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)
