"""Review: items, their fields, what was done to each field, comments, SLAs, and who reviews."""

import sqlalchemy as sa
from alembic import op

from docmill.db.types import IdType, JsonText, UtcTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_UNDECIDED = "status IN ('pending', 'in_review')"


def upgrade() -> None:
    _items()
    _fields()
    _history()
    _settings()
    duplicates = sa.text("duplicate_of IS NOT NULL")
    op.create_index(
        "ix_documents_duplicate_of",
        "documents",
        ["duplicate_of"],
        postgresql_where=duplicates,
        sqlite_where=duplicates,
    )


def _items() -> None:
    op.create_table(
        "review_items",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("document_id", IdType, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("job_id", IdType),
        sa.Column("schema_name", sa.String, nullable=False),
        sa.Column("schema_version", sa.String, nullable=False),
        sa.Column("document_type", sa.String),
        sa.Column("extraction_key", sa.String(64), nullable=False),
        sa.Column("options", JsonText, nullable=False),
        sa.Column("cut", JsonText, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("assigned_to", sa.String, nullable=False),
        sa.Column("claimed_by", sa.String, nullable=False),
        sa.Column("claimed_at", UtcTime),
        sa.Column("claim_expires_at", UtcTime),
        sa.Column("postponed_until", UtcTime),
        sa.Column("confidence", sa.Double, nullable=False),
        sa.Column("complexity", sa.Double, nullable=False),
        sa.Column("value", sa.Double, nullable=False),
        sa.Column("standing", sa.Double, nullable=False),
        sa.Column("queue_class", sa.BigInteger, nullable=False),
        sa.Column("place", sa.Double, nullable=False),
        sa.Column("fields_total", sa.Integer, nullable=False),
        sa.Column("fields_to_review", sa.Integer, nullable=False),
        sa.Column("sla_state", sa.String, nullable=False),
        sa.Column("sla_at", UtcTime),
        sa.Column("due_at", UtcTime),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=False),
        sa.Column("decided_at", UtcTime),
        sa.Column("decided_by", sa.String),
        sa.Column("automatic", sa.Boolean, nullable=False),
        sa.Column("reason", sa.String),
        sa.PrimaryKeyConstraint("id", name="pk_review_items"),
        sa.CheckConstraint(
            "status IN ('pending', 'in_review', 'approved', 'corrected', 'rejected')",
            name=op.f("ck_review_items_status"),
        ),
        sa.CheckConstraint(
            "sla_state IN ('none', 'on_track', 'at_risk', 'overdue')", name=op.f("ck_review_items_sla_state")
        ),
    )
    queued = "status = 'pending' AND postponed_until IS NULL"
    _index("ix_review_items_queue", queued, "org_id", "assigned_to", "queue_class", "place", "id")
    _index("ix_review_items_open", _UNDECIDED, "org_id", "queue_class", "place", "id")
    _index("ix_review_items_load", _UNDECIDED, "org_id", "assigned_to")
    _index("ix_review_items_sla", "sla_at IS NOT NULL", "sla_at", "org_id")
    _index("ix_review_items_claims", "status = 'in_review'", "claim_expires_at", "org_id")
    _index("ix_review_items_postponed", "postponed_until IS NOT NULL", "postponed_until", "org_id")
    _index("uq_review_items_undecided", _UNDECIDED, "document_id", unique=True)
    op.create_index("uq_review_items_round", "review_items", ["document_id", "round"], unique=True)
    op.create_index("ix_review_items_org", "review_items", ["org_id", "created_at", "id"])


def _fields() -> None:
    op.create_table(
        "extracted_fields",
        sa.Column("item_id", IdType, nullable=False),
        sa.Column("path", sa.String, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("row_index", sa.Integer),
        sa.Column("column_name", sa.String, nullable=False),
        sa.Column("value", sa.String),
        sa.Column("extracted", sa.String),
        sa.Column("confidence", sa.Double),
        sa.Column("threshold", sa.Double, nullable=False),
        sa.Column("required", sa.Boolean, nullable=False),
        sa.Column("needs_review", sa.Boolean, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("locked", sa.Boolean, nullable=False),
        sa.Column("proposed", sa.String),
        sa.Column("differs", sa.Boolean, nullable=False),
        sa.Column("details", JsonText, nullable=False),
        sa.Column("changed_by", sa.String),
        sa.Column("changed_at", UtcTime),
        sa.PrimaryKeyConstraint("item_id", "path", name="pk_extracted_fields"),
        sa.CheckConstraint(
            "state IN ('extracted', 'confirmed', 'corrected', 'added', 'cleared')",
            name=op.f("ck_extracted_fields_state"),
        ),
    )


def _history() -> None:
    op.create_table(
        "field_history",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("item_id", IdType, nullable=False),
        sa.Column("change_id", IdType, nullable=False),
        sa.Column("path", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("before", JsonText),
        sa.Column("after", JsonText),
        sa.Column("by", sa.String, nullable=False),
        sa.Column("by_name", sa.String, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
        sa.Column("undone_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_field_history"),
    )
    op.create_index("ix_field_history_item", "field_history", ["item_id", "id"])
    op.create_table(
        "review_comments",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("item_id", IdType, nullable=False),
        sa.Column("path", sa.String),
        sa.Column("body", sa.String, nullable=False),
        sa.Column("by", sa.String, nullable=False),
        sa.Column("by_name", sa.String, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_review_comments"),
    )
    op.create_index("ix_review_comments_item", "review_comments", ["item_id", "id"])


def _settings() -> None:
    op.create_table(
        "review_settings",
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("schema_name", sa.String, nullable=False),
        sa.Column("sla_seconds", sa.BigInteger, nullable=False),
        sa.Column("updated_by", sa.String, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("org_id", "schema_name", name="pk_review_settings"),
    )
    op.create_table(
        "reviewers",
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("reviewer", sa.String, nullable=False),
        sa.Column("turn", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("org_id", "reviewer", name="pk_reviewers"),
    )


def _index(name: str, condition: str, *columns: str, unique: bool = False) -> None:
    where = sa.text(condition)
    op.create_index(name, "review_items", list(columns), unique=unique, postgresql_where=where, sqlite_where=where)
