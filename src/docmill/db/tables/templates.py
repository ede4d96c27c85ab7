"""Process templates, a row per version. A job pins the version it started with."""

from sqlalchemy import Column, Integer, String, Table, UniqueConstraint

from docmill.db.tables.metadata import metadata
from docmill.db.types import IdType, JsonText, UtcTime

templates = Table(
    "process_templates",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("name", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("processable_type", String, nullable=False),
    Column("task_type", String, nullable=False),
    Column("service_name", String),
    Column("digest", String(64), nullable=False),
    Column("definition", JsonText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("org_id", "name", "version"),
    UniqueConstraint("org_id", "name", "digest"),
)
