"""The durable core: templates, jobs, steps, events, parts, workers."""

import sqlalchemy as sa
from alembic import op

from docmill.db.types import IdType, JsonText, JsonValue, UtcTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_JOB_STATUSES = "'PENDING', 'IN_PROGRESS', 'WAITING', 'COMPLETED', 'PARTIAL_SUCCESS', 'FAILED', 'CANCELLED'"
_STEP_STATUSES = "'PENDING', 'READY', 'IN_PROGRESS', 'WAITING', 'COMPLETED', 'FAILED', 'SKIPPED', 'CANCELLED'"


def upgrade() -> None:
    op.create_table(
        "process_templates",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("processable_type", sa.String, nullable=False),
        sa.Column("task_type", sa.String, nullable=False),
        sa.Column("service_name", sa.String),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("definition", JsonText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_process_templates"),
        sa.UniqueConstraint("org_id", "name", "version", name="uq_process_templates_org_id_name_version"),
        sa.UniqueConstraint("org_id", "name", "digest", name="uq_process_templates_org_id_name_digest"),
    )
    op.create_table(
        "processing_jobs",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("template_id", IdType, nullable=False),
        sa.Column("entity_type", sa.String, nullable=False),
        sa.Column("entity_id", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("settled", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("metadata", JsonValue, nullable=False),
        sa.Column("file_type", sa.String),
        sa.Column("created_by", sa.String),
        sa.Column("parent_job_id", IdType),
        sa.Column("chain", sa.LargeBinary, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("started_at", UtcTime),
        sa.Column("finished_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_processing_jobs"),
        sa.ForeignKeyConstraint(["template_id"], ["process_templates.id"], name="fk_processing_jobs_template_id"),
        sa.CheckConstraint(f"status IN ({_JOB_STATUSES})", name=op.f("ck_processing_jobs_status")),
    )
    op.create_index("ix_processing_jobs_org", "processing_jobs", ["org_id", "id"])
    _partial_index(
        "ix_processing_jobs_live",
        "processing_jobs",
        ["org_id", "id"],
        "status IN ('PENDING', 'IN_PROGRESS', 'WAITING')",
    )
    op.create_table(
        "processing_job_steps",
        sa.Column("job_id", IdType, nullable=False),
        sa.Column("position", sa.SmallInteger, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("step_key", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("queue", sa.String, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("crashes", sa.Integer, nullable=False),
        sa.Column("checkpointed", sa.Boolean, nullable=False),
        sa.Column("worker_id", IdType),
        sa.Column("due_at", UtcTime),
        sa.Column("deadline_at", UtcTime),
        sa.Column("reason", sa.String),
        sa.Column("result", JsonValue),
        sa.Column("error", JsonValue),
        sa.Column("started_at", UtcTime),
        sa.Column("finished_at", UtcTime),
        sa.PrimaryKeyConstraint("job_id", "position", name="pk_processing_job_steps"),
        sa.ForeignKeyConstraint(
            ["job_id"], ["processing_jobs.id"], name="fk_processing_job_steps_job_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint(f"status IN ({_STEP_STATUSES})", name=op.f("ck_processing_job_steps_status")),
        sa.CheckConstraint(
            "reason IN ('condition', 'dependency_failed', 'job_failed')", name=op.f("ck_processing_job_steps_reason")
        ),
        sqlite_with_rowid=False,
    )
    steps = "processing_job_steps"
    _partial_index(
        "ix_processing_job_steps_ready", steps, ["queue", "org_id", "rank", "due_at", "job_id"], "status = 'READY'"
    )
    _partial_index("ix_processing_job_steps_running", steps, ["worker_id"], "status = 'IN_PROGRESS'")
    _partial_index("ix_processing_job_steps_waiting", steps, ["deadline_at"], "status = 'WAITING'")
    op.create_table(
        "processing_job_events",
        sa.Column("job_id", IdType, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
        sa.Column("data", JsonText, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "version", name="pk_processing_job_events"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "processing_step_parts",
        sa.Column("job_id", IdType, nullable=False),
        sa.Column("position", sa.SmallInteger, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("value", JsonText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "position", "name", name="pk_processing_step_parts"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "workers",
        sa.Column("id", IdType, nullable=False),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("boot_id", sa.String, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("started_at", UtcTime, nullable=False),
        sa.Column("expires_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
        sa.CheckConstraint("status IN ('alive', 'stopped', 'dead')", name=op.f("ck_workers_status")),
    )
    if op.get_bind().dialect.name == "postgresql":
        _tune()


def _partial_index(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, postgresql_where=where, sqlite_where=where)


def _tune() -> None:
    """Rows that are rewritten a dozen times in seconds need room on their page and an early vacuum."""
    churning = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0"
    op.execute(f"ALTER TABLE processing_jobs SET (fillfactor = 60, {churning})")
    op.execute(f"ALTER TABLE processing_job_steps SET (fillfactor = 70, {churning})")
    op.execute(f"ALTER TABLE workers SET (fillfactor = 50, {churning})")
