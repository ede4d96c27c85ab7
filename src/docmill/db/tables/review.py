"""Review: items, their fields, what was done to each field, comments, SLAs, and who reviews."""

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, PrimaryKeyConstraint, String, Table, text

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, JsonText, UtcTime
from docmill.model.review import OPEN, FieldState, ReviewStatus, SlaState

STANDS = "superseded_by IS NULL"
"""Items that no later reading of the same bytes has taken the place of."""
QUEUED = f"status = '{ReviewStatus.PENDING}' AND postponed_until IS NULL AND {STANDS}"
"""What somebody may claim, as SQL says it: a query in the same words finds the partial index."""
UNDECIDED = f"status IN ({', '.join(repr(status.value) for status in OPEN)}) AND {STANDS}"
"""What nobody has decided yet, likewise."""

# `assigned_to` and `claimed_by` are empty for nobody: an index finds what belongs to nobody as it finds what is mine.
# `queue_class` and `place` are the order of the queue, see `docmill.review.priority`.
review_items = Table(
    "review_items",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("document_id", IdType, nullable=False),
    Column("round", Integer, nullable=False),
    Column("job_id", IdType),
    Column("schema_name", String, nullable=False),
    Column("schema_version", String, nullable=False),
    Column("document_type", String),
    Column("extraction_key", String(64), nullable=False),
    Column("options", JsonText, nullable=False),
    Column("cut", JsonText, nullable=False),
    Column("status", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("assigned_to", String, nullable=False),
    Column("claimed_by", String, nullable=False),
    Column("claimed_at", UtcTime),
    Column("claim_expires_at", UtcTime),
    Column("postponed_until", UtcTime),
    Column("confidence", Double, nullable=False),
    Column("complexity", Double, nullable=False),
    Column("value", Double, nullable=False),
    Column("standing", Double, nullable=False),
    Column("queue_class", BigInteger, nullable=False),
    Column("place", Double, nullable=False),
    Column("fields_total", Integer, nullable=False),
    Column("fields_to_review", Integer, nullable=False),
    Column("sla_state", String, nullable=False),
    Column("sla_at", UtcTime),
    Column("due_at", UtcTime),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("decided_at", UtcTime),
    Column("decided_by", String),
    Column("automatic", Boolean, nullable=False),
    Column("reason", String),
    Column("superseded_by", IdType),
    one_of("status", ReviewStatus),
    one_of("sla_state", SlaState),
)


def _partial(name: str, condition: str, *columns: str, unique: bool = False) -> None:
    where = text(condition)
    chosen = [review_items.c[column] for column in columns]
    Index(name, *chosen, unique=unique, postgresql_where=where, sqlite_where=where)


_partial("ix_review_items_queue", QUEUED, "org_id", "assigned_to", "queue_class", "place", "id")
_partial("ix_review_items_open", UNDECIDED, "org_id", "queue_class", "place", "id")
_partial("ix_review_items_load", UNDECIDED, "org_id", "assigned_to")
# By time alone, so that a chore finds all organisations with something due.
_partial("ix_review_items_sla", "sla_at IS NOT NULL", "sla_at", "org_id")
_partial("ix_review_items_claims", f"status = '{ReviewStatus.IN_REVIEW}'", "claim_expires_at", "org_id")
_partial("ix_review_items_postponed", "postponed_until IS NOT NULL", "postponed_until", "org_id")
_partial("ix_review_items_superseded", "superseded_by IS NOT NULL", "superseded_by")
# A document has at most one item that is not decided.
_partial("uq_review_items_undecided", UNDECIDED, "document_id", unique=True)
Index("uq_review_items_round", review_items.c.document_id, review_items.c.round, unique=True)
Index("ix_review_items_org", review_items.c.org_id, review_items.c.created_at, review_items.c.id)

extracted_fields = Table(
    "extracted_fields",
    metadata,
    Column("item_id", IdType, nullable=False),
    Column("path", String, nullable=False),
    Column("org_id", IdType, nullable=False),
    Column("position", Integer, nullable=False),
    Column("name", String, nullable=False),
    Column("row_index", Integer),
    Column("column_name", String, nullable=False),
    Column("value", String),
    Column("extracted", String),
    Column("confidence", Double),
    Column("threshold", Double, nullable=False),
    Column("required", Boolean, nullable=False),
    Column("needs_review", Boolean, nullable=False),
    Column("state", String, nullable=False),
    Column("locked", Boolean, nullable=False),
    Column("proposed", String),
    Column("differs", Boolean, nullable=False),
    Column("details", JsonText, nullable=False),
    Column("changed_by", String),
    Column("changed_at", UtcTime),
    PrimaryKeyConstraint("item_id", "path"),
    one_of("state", FieldState),
)

# What one action did to one field; those of one action share a change, and are undone together.
field_history = Table(
    "field_history",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("item_id", IdType, nullable=False),
    Column("change_id", IdType, nullable=False),
    Column("path", String, nullable=False),
    Column("action", String, nullable=False),
    Column("before", JsonText),
    Column("after", JsonText),
    Column("by", String, nullable=False),
    Column("by_name", String, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("undone_at", UtcTime),
)
Index("ix_field_history_item", field_history.c.item_id, field_history.c.id)

review_comments = Table(
    "review_comments",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("item_id", IdType, nullable=False),
    Column("path", String),
    Column("body", String, nullable=False),
    Column("by", String, nullable=False),
    Column("by_name", String, nullable=False),
    Column("at", UtcTime, nullable=False),
)
Index("ix_review_comments_item", review_comments.c.item_id, review_comments.c.id)

# The SLA of an organisation, for one schema or (empty) for all that have none of their own; 0: no SLA.
review_settings = Table(
    "review_settings",
    metadata,
    Column("org_id", IdType, nullable=False),
    Column("schema_name", String, nullable=False),
    Column("sla_seconds", BigInteger, nullable=False),
    Column("updated_by", String, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("org_id", "schema_name"),
)

# Who is given work by the least-loaded rule; `turn` grows with each item given, so that of equals the one waiting
# longest is next.
reviewers = Table(
    "reviewers",
    metadata,
    Column("org_id", IdType, nullable=False),
    Column("reviewer", String, nullable=False),
    Column("turn", BigInteger, nullable=False),
    PrimaryKeyConstraint("org_id", "reviewer"),
)
