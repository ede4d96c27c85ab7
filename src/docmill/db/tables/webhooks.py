"""Outgoing webhooks: where they go, what is to be told there, and what came of each attempt."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, JsonText, UtcTime
from docmill.model.webhooks import DeliveryStatus, WebhookEvent

# The key must be there to sign with, so it cannot be hashed; no view and no log holds it. The old one signs as well
# until its time is over, so that a receiver can change its own in between. What happened before `told_from` is not
# told; `told_until` is how far the jobs that have ended were looked through.
webhook_endpoints = Table(
    "webhook_endpoints",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("url", String, nullable=False),
    Column("description", String, nullable=False),
    Column("events", JsonText, nullable=False),
    Column("key", LargeBinary, nullable=False),
    Column("old_key", LargeBinary),
    Column("old_key_until", UtcTime),
    Column("enabled", Boolean, nullable=False),
    Column("disabled_reason", String),
    Column("version", Integer, nullable=False),
    Column("told_from", UtcTime, nullable=False),
    Column("told_until", UtcTime, nullable=False),
    Column("created_by", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
)
Index("ix_webhook_endpoints_org", webhook_endpoints.c.org_id, webhook_endpoints.c.id)

# One message to one endpoint; its id is the message's, the same with every attempt. `event_key` says what happened:
# whoever finds the same again writes no second row. `tries` counts since it was last asked for, `attempts` all.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column(
        "endpoint_id",
        IdType,
        ForeignKey("webhook_endpoints.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("event", String, nullable=False),
    Column("event_key", String, nullable=False),
    Column("body", Text, nullable=False),
    Column("status", String, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due_at", UtcTime),
    Column("created_at", UtcTime, nullable=False),
    Column("settled_at", UtcTime),
    UniqueConstraint("endpoint_id", "event_key"),
    one_of("event", WebhookEvent),
    one_of("status", DeliveryStatus),
)
Index("ix_webhook_deliveries_endpoint", webhook_deliveries.c.endpoint_id, webhook_deliveries.c.id)
Index("ix_webhook_deliveries_settled", webhook_deliveries.c.settled_at)
Index(
    "ix_webhook_deliveries_due",
    webhook_deliveries.c.due_at,
    webhook_deliveries.c.id,
    postgresql_where=text("due_at IS NOT NULL"),
    sqlite_where=text("due_at IS NOT NULL"),
)

webhook_attempts = Table(
    "webhook_attempts",
    metadata,
    Column(
        "delivery_id",
        IdType,
        ForeignKey("webhook_deliveries.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("number", Integer, nullable=False),
    Column("org_id", IdType, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("milliseconds", BigInteger, nullable=False),
    Column("answered", Integer),
    Column("error", String),
    PrimaryKeyConstraint("delivery_id", "number"),
)
