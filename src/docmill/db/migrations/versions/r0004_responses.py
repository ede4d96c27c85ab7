"""Answers of models are kept by content: the answers, calls that were answered from them, and cached tokens."""

import sqlalchemy as sa
from alembic import op

from docmill.db.types import IdType, UtcTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_OUTCOMES = "outcome IN ('asked', 'answered', 'failed', 'lost', 'cached')"


def upgrade() -> None:
    _calls()
    op.create_table(
        "ai_responses",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("call_id", IdType, nullable=False),
        sa.Column("provider", sa.String, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("text", sa.String),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("expires_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_ai_responses"),
    )
    op.create_index("ix_ai_responses_expires", "ai_responses", ["expires_at"])


def _calls() -> None:
    cached = sa.Column("cached_tokens", sa.Integer, nullable=False, server_default=sa.text("0"))
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(op.f("ck_ai_calls_outcome"), "ai_calls")
        op.create_check_constraint(op.f("ck_ai_calls_outcome"), "ai_calls", _OUTCOMES)
        op.add_column("ai_calls", cached)
        return
    # SQLite cannot change a constraint: the table is made anew.
    for index in ("ix_ai_calls_org", "ix_ai_calls_asked", "ix_ai_calls_job"):
        op.drop_index(index, "ai_calls")
    op.rename_table("ai_calls", "ai_calls_before")
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
        cached,
        sa.PrimaryKeyConstraint("id", name="pk_ai_calls"),
        sa.CheckConstraint(_OUTCOMES, name=op.f("ck_ai_calls_outcome")),
    )
    op.execute("INSERT INTO ai_calls SELECT *, 0 FROM ai_calls_before")
    op.drop_table("ai_calls_before")
    op.create_index("ix_ai_calls_org", "ai_calls", ["org_id", "created_at"])
    op.create_index("ix_ai_calls_asked", "ai_calls", ["org_id"], sqlite_where=sa.text("outcome = 'asked'"))
    op.create_index("ix_ai_calls_job", "ai_calls", ["job_id"])
