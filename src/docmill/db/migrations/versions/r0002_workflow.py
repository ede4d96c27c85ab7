"""The workflow system: batches, issues, callbacks, prompts, model calls, template steps; one active job per entity."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from docmill.db.types import IdType, JsonText, JsonValue, UtcTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_LIVE = "status IN ('PENDING', 'IN_PROGRESS', 'WAITING')"


def upgrade() -> None:
    _jobs()
    _batches()
    _issues()
    _callbacks()
    _prompts()
    _template_steps()
    _ai()


def _jobs() -> None:
    op.add_column("processing_jobs", sa.Column("family", sa.String, nullable=False, server_default=sa.text("''")))
    op.add_column("processing_jobs", sa.Column("batch_id", IdType))
    op.add_column("processing_jobs", sa.Column("held", sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute(
        "UPDATE processing_jobs SET family ="
        " (SELECT t.name FROM process_templates t WHERE t.id = processing_jobs.template_id)"
    )
    # The first release let several active jobs of one entity be: of those, only the newest keeps its family's place.
    op.execute(
        f"UPDATE processing_jobs SET family = family || ' ' || id WHERE {_LIVE} AND EXISTS ("
        f"SELECT 1 FROM processing_jobs n WHERE n.{_LIVE} AND n.id > processing_jobs.id"
        " AND n.org_id = processing_jobs.org_id AND n.entity_type = processing_jobs.entity_type"
        " AND n.entity_id = processing_jobs.entity_id AND n.family = processing_jobs.family)"
    )
    op.drop_index("ix_processing_jobs_live", "processing_jobs")
    key = ["org_id", "entity_type", "entity_id", "family"]
    _partial_index("uq_processing_jobs_active", "processing_jobs", key, _LIVE, unique=True)
    _partial_index("ix_processing_jobs_batch", "processing_jobs", ["batch_id", "id"], "batch_id IS NOT NULL")
    _partial_index("ix_processing_jobs_held", "processing_jobs", ["batch_id", "id"], "held")


def _batches() -> None:
    op.create_table(
        "processing_batches",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("max_active", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("active", sa.Integer, nullable=False),
        sa.Column("held", sa.Integer, nullable=False),
        sa.Column("cancelling", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("digest", sa.String, nullable=False, server_default=sa.text("''")),
        sa.Column("metadata", JsonValue, nullable=False),
        sa.Column("created_by", sa.String),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("finished_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_processing_batches"),
        sa.CheckConstraint(
            "active >= 0 AND held >= 0 AND active + held <= total AND max_active >= 0",
            name=op.f("ck_processing_batches_counts"),
        ),
    )
    op.create_index("ix_processing_batches_org", "processing_batches", ["org_id", "id"])
    _partial_index("ix_processing_batches_open", "processing_batches", ["id"], "finished_at IS NULL")


def _issues() -> None:
    op.create_table(
        "processing_issues",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("processable_type", sa.String, nullable=False),
        sa.Column("processable_id", sa.String, nullable=False),
        sa.Column("job_id", IdType),
        sa.Column("position", sa.SmallInteger),
        sa.Column("step_key", sa.String),
        sa.Column("epoch", sa.Integer),
        sa.Column("code", sa.String, nullable=False),
        sa.Column("severity", sa.String, nullable=False),
        sa.Column("blocking", sa.Boolean, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("details", JsonText, nullable=False),
        sa.Column("answer_schema", JsonText),
        sa.Column("assigned_to", sa.String),
        sa.Column("created_by", sa.String),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("resolved_by", sa.String),
        sa.Column("resolved_at", UtcTime),
        sa.Column("resolution", JsonText),
        sa.Column("note", sa.String),
        sa.PrimaryKeyConstraint("id", name="pk_processing_issues"),
        _one_of("processing_issues", "severity", "'info', 'warning', 'error', 'critical'"),
        _one_of("processing_issues", "status", "'open', 'resolved', 'withdrawn'"),
    )
    op.create_index("ix_processing_issues_org", "processing_issues", ["org_id", "id"])
    op.create_index("ix_processing_issues_job", "processing_issues", ["job_id", "position"])
    entity = ["org_id", "processable_type", "processable_id"]
    op.create_index("ix_processing_issues_entity", "processing_issues", entity)
    _partial_index("ix_processing_issues_open", "processing_issues", ["org_id", "id"], "status = 'open'")


def _callbacks() -> None:
    op.create_table(
        "processing_callbacks",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("message_id", sa.String),
        sa.Column("job_id", IdType),
        sa.Column("position", sa.SmallInteger),
        sa.Column("epoch", sa.Integer),
        sa.Column("payload", JsonText, nullable=False),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("received_at", UtcTime, nullable=False),
        sa.Column("settled_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_processing_callbacks"),
        _one_of(
            "processing_callbacks",
            "outcome",
            "'received', 'applied', 'noted', 'duplicate', 'late', 'unknown', 'refused'",
        ),
    )
    op.create_index("ix_processing_callbacks_job", "processing_callbacks", ["job_id", "position"])
    _partial_index(
        "ix_processing_callbacks_received", "processing_callbacks", ["job_id", "position"], "outcome = 'received'"
    )
    op.create_table(
        "installation_secrets",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_installation_secrets"),
    )


def _prompts() -> None:
    op.create_table(
        "ai_prompts",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("description", sa.String, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_by", sa.String),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ai_prompts"),
        sa.UniqueConstraint("org_id", "name", "version", name="uq_ai_prompts_org_id_name_version"),
    )


def _template_steps() -> None:
    op.add_column("process_templates", sa.Column("undoes_id", IdType))
    op.create_table(
        "process_template_steps",
        sa.Column("template_id", IdType, nullable=False),
        sa.Column("position", sa.SmallInteger, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("step_key", sa.String, nullable=False),
        sa.Column("display_name", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("step_type", sa.String, nullable=False),
        sa.Column("pool", sa.String, nullable=False),
        sa.Column("execution_group", sa.Integer, nullable=False),
        sa.Column("step_order", sa.Integer, nullable=False),
        sa.Column("depends_on", JsonValue, nullable=False),
        sa.Column("optional", sa.Boolean, nullable=False),
        sa.Column("on_failure_action", sa.String, nullable=False),
        sa.Column("processor_method", JsonValue, nullable=False),
        sa.Column("compensation_method", sa.String),
        sa.Column("prompt", sa.String),
        sa.PrimaryKeyConstraint("template_id", "position", name="pk_process_template_steps"),
        sa.UniqueConstraint("template_id", "step_key", name="uq_process_template_steps_template_id_step_key"),
        sa.ForeignKeyConstraint(
            ["template_id"], ["process_templates.id"], name="fk_process_template_steps_template_id", ondelete="CASCADE"
        ),
        _one_of("process_template_steps", "kind", "'ai', 'rule', 'system', 'external', 'human'"),
        _one_of("process_template_steps", "on_failure_action", "'fail_job', 'skip_dependents', 'continue'"),
        sqlite_with_rowid=False,
    )
    _fill_template_steps()


def _fill_template_steps() -> None:
    """Templates stored by the first release get their steps, page by page: a definition may be a megabyte."""
    connection = op.get_bind()
    old = sa.table(
        "process_templates", sa.column("id", IdType), sa.column("org_id", IdType), sa.column("definition", JsonText)
    )
    words = (
        "step_key",
        "display_name",
        "kind",
        "step_type",
        "pool",
        "on_failure_action",
        "compensation_method",
        "prompt",
    )
    new = sa.table(
        "process_template_steps",
        sa.column("template_id", IdType),
        sa.column("org_id", IdType),
        *(sa.column(name, sa.Integer) for name in ("position", "execution_group", "step_order")),
        *(sa.column(name, sa.String) for name in words),
        *(sa.column(name, JsonValue) for name in ("depends_on", "processor_method")),
        sa.column("optional", sa.Boolean),
    )
    page = sa.select(old).order_by(old.c.id).limit(100)
    rows = connection.execute(page).all()
    while rows:
        for row in rows:
            steps = [_template_step(step) for step in row.definition["steps"]]
            for position, step in enumerate(steps):
                step |= {"template_id": row.id, "org_id": row.org_id, "position": position}
            connection.execute(sa.insert(new), steps)
        rows = connection.execute(page.where(old.c.id > rows[-1].id)).all()


def _template_step(step: dict[str, Any]) -> dict[str, Any]:
    """The columns of one step as the first release stored it."""
    same = ("step_key", "display_name", "kind", "pool", "optional", "on_failure_action", "processor_method")
    needs = step["depends_on"]
    return {
        **{name: step[name] for name in (*same, "compensation_method", "prompt")},
        "step_type": step["type"],
        "execution_group": step["group"],
        "step_order": step["order"],
        "depends_on": [needs] if isinstance(needs, str) else needs,
    }


def _ai() -> None:
    op.create_table(
        "ai_calls",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("job_id", IdType),
        sa.Column("position", sa.SmallInteger),
        sa.Column("step_key", sa.String),
        sa.Column("attempt", sa.Integer),
        sa.Column("provider", sa.String, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("prompt_id", IdType),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("error_code", sa.String),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("cost_nanos", sa.BigInteger, nullable=False),
        sa.Column("priced", sa.Boolean, nullable=False),
        sa.Column("reserved_nanos", sa.BigInteger, nullable=False),
        sa.Column("expires_at", UtcTime, nullable=False),
        sa.Column("duration_ms", sa.Integer, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ai_calls"),
        _one_of("ai_calls", "outcome", "'asked', 'answered', 'failed', 'lost'"),
    )
    op.create_index("ix_ai_calls_org", "ai_calls", ["org_id", "created_at"])
    _partial_index("ix_ai_calls_asked", "ai_calls", ["org_id"], "outcome = 'asked'")
    op.create_index("ix_ai_calls_job", "ai_calls", ["job_id"])
    op.create_table(
        "ai_breakers",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("opened_at", UtcTime),
        sa.Column("probe_until", UtcTime),
        sa.PrimaryKeyConstraint("name", name="pk_ai_breakers"),
        _one_of("ai_breakers", "state", "'closed', 'open', 'half_open'"),
    )
    op.create_table(
        "ai_buckets",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("tokens", sa.Double, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_ai_buckets"),
    )
    op.create_table(
        "ai_budgets",
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("period", sa.String, nullable=False),
        sa.Column("spent_nanos", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("org_id", "period", name="pk_ai_budgets"),
    )


def _one_of(table: str, column: str, members: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(f"{column} IN ({members})", name=op.f(f"ck_{table}_{column}"))


def _partial_index(name: str, table: str, columns: list[str], condition: str, *, unique: bool = False) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, unique=unique, postgresql_where=where, sqlite_where=where)
