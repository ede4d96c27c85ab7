"""Processing jobs, their steps, events and parts.

The lock of a job row guards the job and all rows beneath it: nobody writes a step, event or part without holding it.
Indexes on what is live are partial, so that a step costs the same after a million jobs as after ten.
"""

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    false,
    text,
)

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, JsonText, JsonValue, UtcTime
from docmill.model.statuses import FINISHED_JOBS, JobStatus, SkipReason, StepStatus

LIVE = ", ".join(f"'{status}'" for status in JobStatus if status not in FINISHED_JOBS)
"""The statuses of unfinished jobs as SQL lists them; a query that says the same finds the partial index."""

jobs = Table(
    "processing_jobs",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("template_id", IdType, ForeignKey("process_templates.id"), nullable=False),
    Column("entity_type", String, nullable=False),
    Column("entity_id", String, nullable=False),
    Column("status", String, nullable=False),
    Column("run", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("settled", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("title", String, nullable=False),
    Column("metadata", JsonValue, nullable=False),
    Column("file_type", String),
    Column("created_by", String),
    Column("parent_job_id", IdType),
    Column("family", String, nullable=False, server_default=text("''")),
    Column("batch_id", IdType),
    Column("held", Boolean, nullable=False, server_default=false()),
    Column("chain", LargeBinary, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("started_at", UtcTime),
    Column("finished_at", UtcTime),
    one_of("status", JobStatus),
)
# Lists are by time of creation: an id that was derived from a key says nothing of it.
Index("ix_processing_jobs_org", jobs.c.org_id, jobs.c.created_at, jobs.c.id)
# One active job per entity and family, which is the template by name: a new version must not let a second one in.
Index(
    "uq_processing_jobs_active",
    jobs.c.org_id,
    jobs.c.entity_type,
    jobs.c.entity_id,
    jobs.c.family,
    unique=True,
    postgresql_where=text(f"status IN ({LIVE})"),
    sqlite_where=text(f"status IN ({LIVE})"),
)
Index(
    "ix_processing_jobs_batch",
    jobs.c.batch_id,
    jobs.c.id,
    postgresql_where=text("batch_id IS NOT NULL"),
    sqlite_where=text("batch_id IS NOT NULL"),
)
Index(
    "ix_processing_jobs_held",
    jobs.c.batch_id,
    jobs.c.id,
    postgresql_where=text("held"),
    sqlite_where=text("held"),
)

Index(
    "ix_processing_jobs_parent",
    jobs.c.parent_job_id,
    postgresql_where=text("parent_job_id IS NOT NULL"),
    sqlite_where=text("parent_job_id IS NOT NULL"),
)
# What there is to prune, oldest first.
Index(
    "ix_processing_jobs_finished",
    jobs.c.finished_at,
    jobs.c.id,
    postgresql_where=text("finished_at IS NOT NULL"),
    sqlite_where=text("finished_at IS NOT NULL"),
)

job_steps = Table(
    "processing_job_steps",
    metadata,
    Column("job_id", IdType, ForeignKey("processing_jobs.id", ondelete="CASCADE"), nullable=False),
    Column("position", SmallInteger, nullable=False),
    Column("org_id", IdType, nullable=False),
    Column("step_key", String, nullable=False),
    Column("status", String, nullable=False),
    Column("queue", String, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("crashes", Integer, nullable=False),
    Column("checkpointed", Boolean, nullable=False),
    Column("worker_id", IdType),
    Column("due_at", UtcTime),
    Column("deadline_at", UtcTime),
    Column("reason", String),
    Column("result", JsonValue),
    Column("error", JsonValue),
    Column("started_at", UtcTime),
    Column("finished_at", UtcTime),
    PrimaryKeyConstraint("job_id", "position"),
    one_of("status", StepStatus),
    one_of("reason", SkipReason),
    sqlite_with_rowid=False,
)


def _live(name: str, condition: str, *columns: str) -> None:
    Index(
        f"ix_processing_job_steps_{name}",
        *(job_steps.c[column] for column in columns),
        postgresql_where=text(condition),
        sqlite_where=text(condition),
    )


# Read as a loose scan over (org, rank), then in order of due time: see claim in the hot SQL.
_live("ready", f"status = '{StepStatus.READY}'", "queue", "org_id", "rank", "due_at", "job_id")
_live("running", f"status = '{StepStatus.IN_PROGRESS}'", "worker_id")
_live("waiting", f"status = '{StepStatus.WAITING}'", "deadline_at")

job_events = Table(
    "processing_job_events",
    metadata,
    Column("job_id", IdType, nullable=False),
    Column("version", Integer, nullable=False),
    Column("org_id", IdType, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("data", JsonText, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("job_id", "version"),
    sqlite_with_rowid=False,
)

# What happened in an organisation since a moment.
Index("ix_processing_job_events_org", job_events.c.org_id, job_events.c.at)

step_parts = Table(
    "processing_step_parts",
    metadata,
    Column("job_id", IdType, nullable=False),
    Column("position", SmallInteger, nullable=False),
    Column("name", String, nullable=False),
    Column("org_id", IdType, nullable=False),
    Column("value", JsonText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("job_id", "position", "name"),
    sqlite_with_rowid=False,
)
