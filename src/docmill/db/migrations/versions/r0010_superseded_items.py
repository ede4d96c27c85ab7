"""An item tells by which other it was superseded; what somebody did is found by who they are, also when they left."""

import sqlalchemy as sa
from alembic import op

from docmill.db.types import IdType

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_STANDS = "superseded_by IS NULL"
_QUEUED = f"status = 'pending' AND postponed_until IS NULL AND {_STANDS}"
_UNDECIDED = f"status IN ('pending', 'in_review') AND {_STANDS}"


def upgrade() -> None:
    op.add_column("review_items", sa.Column("superseded_by", IdType))
    _again("ix_review_items_queue", _QUEUED, "org_id", "assigned_to", "queue_class", "place", "id")
    _again("ix_review_items_open", _UNDECIDED, "org_id", "queue_class", "place", "id")
    _again("ix_review_items_load", _UNDECIDED, "org_id", "assigned_to")
    _again("uq_review_items_undecided", _UNDECIDED, "document_id", unique=True)
    _index("ix_review_items_superseded", "superseded_by IS NOT NULL", "superseded_by")
    op.create_index("ix_audit_log_actor", "audit_log", ["org_id", "actor_id", "number"])


def _again(name: str, condition: str, *columns: str, unique: bool = False) -> None:
    op.drop_index(name, table_name="review_items")
    _index(name, condition, *columns, unique=unique)


def _index(name: str, condition: str, *columns: str, unique: bool = False) -> None:
    where = sa.text(condition)
    op.create_index(name, "review_items", list(columns), unique=unique, postgresql_where=where, sqlite_where=where)
