"""Processing issues: what a person must look at. A blocking one holds its step until it is resolved."""

from sqlalchemy import Boolean, Column, Index, Integer, SmallInteger, String, Table, text

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, JsonText, UtcTime
from docmill.model.issues import IssueSeverity, IssueStatus

issues = Table(
    "processing_issues",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("processable_type", String, nullable=False),
    Column("processable_id", String, nullable=False),
    Column("job_id", IdType),
    Column("position", SmallInteger),
    Column("step_key", String),
    Column("epoch", Integer),
    Column("code", String, nullable=False),
    Column("severity", String, nullable=False),
    Column("blocking", Boolean, nullable=False),
    Column("corrects", Boolean, nullable=False),
    Column("status", String, nullable=False),
    Column("title", String, nullable=False),
    Column("details", JsonText, nullable=False),
    Column("answer_schema", JsonText),
    Column("assigned_to", String),
    Column("created_by", String),
    Column("created_at", UtcTime, nullable=False),
    Column("resolved_by", String),
    Column("resolved_at", UtcTime),
    Column("resolution", JsonText),
    Column("note", String),
    one_of("severity", IssueSeverity),
    one_of("status", IssueStatus),
)
Index("ix_processing_issues_org", issues.c.org_id, issues.c.created_at, issues.c.id)
Index("ix_processing_issues_job", issues.c.job_id, issues.c.position)
Index("ix_processing_issues_entity", issues.c.org_id, issues.c.processable_type, issues.c.processable_id)
Index(
    "ix_processing_issues_open",
    issues.c.org_id,
    issues.c.created_at,
    issues.c.id,
    postgresql_where=text("status = 'open'"),
    sqlite_where=text("status = 'open'"),
)
