"""What the model gateway remembers: every call with its cost, and the limits that all processes share."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    text,
)

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, UtcTime
from docmill.model.ai import BreakerState, CallOutcome

ai_calls = Table(
    "ai_calls",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("job_id", IdType),
    Column("position", SmallInteger),
    Column("step_key", String),
    Column("attempt", Integer),
    Column("provider", String, nullable=False),
    Column("model", String, nullable=False),
    Column("prompt_id", IdType),
    Column("outcome", String, nullable=False),
    Column("error_code", String),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost_nanos", BigInteger, nullable=False),
    Column("priced", Boolean, nullable=False),
    Column("reserved_nanos", BigInteger, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("cached_tokens", Integer, nullable=False, server_default=text("0")),
    one_of("outcome", CallOutcome),
)
Index("ix_ai_calls_org", ai_calls.c.org_id, ai_calls.c.created_at)
_asked = text("outcome = 'asked'")
Index("ix_ai_calls_asked", ai_calls.c.org_id, postgresql_where=_asked, sqlite_where=_asked)
Index("ix_ai_calls_job", ai_calls.c.job_id)

ai_responses = Table(
    "ai_responses",
    metadata,
    # A digest of the organisation and of all that was asked.
    Column("key", String(64), primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("call_id", IdType, nullable=False),
    Column("provider", String, nullable=False),
    Column("model", String, nullable=False),
    # None: the call is on its way, until `expires_at` at the latest.
    Column("text", String),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
)
Index("ix_ai_responses_expires", ai_responses.c.expires_at)

ai_breakers = Table(
    "ai_breakers",
    metadata,
    Column("name", String, primary_key=True),
    Column("state", String, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("opened_at", UtcTime),
    Column("probe_until", UtcTime),
    one_of("state", BreakerState),
)

ai_buckets = Table(
    "ai_buckets",
    metadata,
    Column("name", String, primary_key=True),
    Column("tokens", Double, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
)

ai_budgets = Table(
    "ai_budgets",
    metadata,
    Column("org_id", IdType, nullable=False),
    Column("period", String, nullable=False),
    Column("spent_nanos", BigInteger, nullable=False),
    PrimaryKeyConstraint("org_id", "period"),
)
