"""Process templates, a row per version. A job pins the version it started with.

`definition` is what runs; `process_template_steps` says the same in columns, for whoever asks which templates use what.
"""

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    false,
)

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, JsonText, JsonValue, UtcTime
from docmill.model.statuses import FailureAction, StepKind

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
    Column("undoes_id", IdType),
    # Stored by Docmill itself from what it ships: replaced when it ships another. What a person stored stays.
    Column("shipped", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("org_id", "name", "version"),
    UniqueConstraint("org_id", "name", "digest"),
)

template_steps = Table(
    "process_template_steps",
    metadata,
    Column("template_id", IdType, ForeignKey("process_templates.id", ondelete="CASCADE"), nullable=False),
    Column("position", SmallInteger, nullable=False),
    Column("org_id", IdType, nullable=False),
    Column("step_key", String, nullable=False),
    Column("display_name", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("step_type", String, nullable=False),
    Column("pool", String, nullable=False),
    Column("execution_group", Integer, nullable=False),
    Column("step_order", Integer, nullable=False),
    Column("depends_on", JsonValue, nullable=False),
    Column("optional", Boolean, nullable=False),
    Column("on_failure_action", String, nullable=False),
    Column("processor_method", JsonValue, nullable=False),
    Column("compensation_method", String),
    Column("prompt", String),
    PrimaryKeyConstraint("template_id", "position"),
    UniqueConstraint("template_id", "step_key"),
    one_of("kind", StepKind),
    one_of("on_failure_action", FailureAction),
    sqlite_with_rowid=False,
)
