"""Outgoing webhooks: where they go, what is to be told there, and what came of each attempt."""

import sqlalchemy as sa
from alembic import op

from docmill.db.protection import protect
from docmill.db.standing import KEEPER
from docmill.db.types import IdType, JsonText, UtcTime

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhook_endpoints",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("url", sa.String, nullable=False),
        sa.Column("description", sa.String, nullable=False),
        sa.Column("events", JsonText, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("old_key", sa.LargeBinary),
        sa.Column("old_key_until", UtcTime),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("disabled_reason", sa.String),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("told_from", UtcTime, nullable=False),
        sa.Column("told_until", UtcTime, nullable=False),
        sa.Column("created_by", sa.String, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_endpoints"),
    )
    op.create_index("ix_webhook_endpoints_org", "webhook_endpoints", ["org_id", "id"])
    _deliveries()
    op.create_table(
        "webhook_attempts",
        sa.Column("delivery_id", IdType, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
        sa.Column("milliseconds", sa.BigInteger, nullable=False),
        sa.Column("answered", sa.Integer),
        sa.Column("error", sa.String),
        sa.PrimaryKeyConstraint("delivery_id", "number", name="pk_webhook_attempts"),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["webhook_deliveries.id"], name="fk_webhook_attempts_delivery_id", ondelete="CASCADE"
        ),
    )
    bind = op.get_bind()
    # Chores find out for whom there is something to do, and act for them one organisation at a time.
    protect(bind, "webhook_endpoints", across={KEEPER: "select"})
    protect(
        bind,
        "webhook_deliveries",
        across={KEEPER: "select, update, delete"},
        under={"endpoint_id": "webhook_endpoints"},
    )
    protect(bind, "webhook_attempts", across={KEEPER: "select, delete"}, under={"delivery_id": "webhook_deliveries"})


def _deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("endpoint_id", IdType, nullable=False),
        sa.Column("event", sa.String, nullable=False),
        sa.Column("event_key", sa.String, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("due_at", UtcTime),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("settled_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_deliveries"),
        sa.ForeignKeyConstraint(
            ["endpoint_id"], ["webhook_endpoints.id"], name="fk_webhook_deliveries_endpoint_id", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("endpoint_id", "event_key", name="uq_webhook_deliveries_endpoint_id_event_key"),
        sa.CheckConstraint(
            "event IN ('document.finished', 'document.failed', 'job.finished', 'job.failed', 'review.decided', "
            "'review.sla_at_risk', 'ping')",
            name=op.f("ck_webhook_deliveries_event"),
        ),
        sa.CheckConstraint("status IN ('pending', 'delivered', 'failed')", name=op.f("ck_webhook_deliveries_status")),
    )
    op.create_index("ix_webhook_deliveries_endpoint", "webhook_deliveries", ["endpoint_id", "id"])
    op.create_index("ix_webhook_deliveries_settled", "webhook_deliveries", ["settled_at"])
    due = sa.text("due_at IS NOT NULL")
    op.create_index(
        "ix_webhook_deliveries_due", "webhook_deliveries", ["due_at", "id"], postgresql_where=due, sqlite_where=due
    )
