"""What people did, by organisation: entries that nobody changes, each hashed with the one before it.

Triggers refuse UPDATE and DELETE on both databases; on PostgreSQL the roles have no right to them either.
"""

from sqlalchemy import Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, String, Table

from docmill.db.tables.metadata import metadata
from docmill.db.types import IdType, JsonText, UtcTime

audit_log = Table(
    "audit_log",
    metadata,
    Column("org_id", IdType, nullable=False),
    Column("number", Integer, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("actor_kind", String, nullable=False),
    Column("actor_id", String, nullable=False),
    Column("actor_name", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject_type", String, nullable=False),
    Column("subject_id", String, nullable=False),
    Column("before", JsonText),
    Column("after", JsonText),
    Column("hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("org_id", "number"),
    sqlite_with_rowid=False,
)
Index("ix_audit_log_subject", audit_log.c.org_id, audit_log.c.subject_type, audit_log.c.subject_id, audit_log.c.number)

# What somebody did; and what they were called, once they have left.
Index("ix_audit_log_actor", audit_log.c.org_id, audit_log.c.actor_id, audit_log.c.number)

# Where each organisation's chain ends. The lock of the row makes a chain of what many do at once; and a chain that was
# cut off at its end is told by it.
audit_heads = Table(
    "audit_heads",
    metadata,
    Column("org_id", IdType, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)
