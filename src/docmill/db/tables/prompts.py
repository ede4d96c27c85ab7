"""AI prompts, a row per version. An organisation's own prompt goes before the shared one of the same name.

The same text may come back as a later version (that is how a change is taken back), so the digest is not unique.
"""

from sqlalchemy import Column, Integer, String, Table, Text, UniqueConstraint

from docmill.db.tables.metadata import metadata
from docmill.db.types import IdType, UtcTime

prompts = Table(
    "ai_prompts",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("name", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("description", String, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_by", String),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("org_id", "name", "version"),
)
