"""Organisations, who belongs to them, and how they get in. Secrets are never stored: only what they hash to.

A person is one row whatever number of organisations they belong to, so `users` and `sign_in_limits` have no
organisation; everything else has.
"""

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    false,
    text,
)

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, JsonText, UtcTime
from docmill.model.people import Role

organisations = Table(
    "organisations",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("name", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("name"),
)

users = Table(
    "users",
    metadata,
    Column("id", IdType, primary_key=True),
    # In lower case: whoever signs in as Ann@Example.org is ann@example.org.
    Column("email", String, nullable=False),
    Column("name", String, nullable=False),
    # None until the way in was used.
    Column("password", String),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("email"),
)

memberships = Table(
    "memberships",
    metadata,
    Column("org_id", IdType, ForeignKey("organisations.id"), nullable=False),
    Column("user_id", IdType, ForeignKey("users.id"), nullable=False),
    Column("role", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("created_by", String, nullable=False),
    PrimaryKeyConstraint("org_id", "user_id"),
    one_of("role", Role),
)
Index("ix_memberships_user", memberships.c.user_id)

invitations = Table(
    "invitations",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, ForeignKey("organisations.id"), nullable=False),
    Column("token_hash", String(64), nullable=False),
    Column("email", String, nullable=False),
    Column("role", String, nullable=False),
    # A new password for somebody who has one, or none yet.
    Column("resets", Boolean, nullable=False, server_default=false()),
    Column("created_at", UtcTime, nullable=False),
    Column("created_by", String, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("used_at", UtcTime),
    UniqueConstraint("token_hash"),
    one_of("role", Role),
)
Index("ix_invitations_org", invitations.c.org_id, invitations.c.created_at)

# A session goes with the membership: who is no longer a member is signed out by the database itself.
sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("org_id", IdType, nullable=False),
    Column("user_id", IdType, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("seen_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    ForeignKeyConstraint(
        ["org_id", "user_id"],
        ["memberships.org_id", "memberships.user_id"],
        ondelete="CASCADE",
        name="fk_sessions_membership",
    ),
)
Index("ix_sessions_user", sessions.c.org_id, sessions.c.user_id)
Index("ix_sessions_expires", sessions.c.expires_at)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("org_id", IdType, ForeignKey("organisations.id"), nullable=False),
    Column("name", String, nullable=False),
    # The first letters of the key, by which people know which one it is.
    Column("hint", String, nullable=False),
    Column("token_hash", String(64), nullable=False),
    Column("role", String, nullable=False),
    Column("scopes", JsonText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("created_by", String, nullable=False),
    Column("expires_at", UtcTime),
    Column("used_at", UtcTime),
    Column("revoked_at", UtcTime),
    UniqueConstraint("token_hash"),
    one_of("role", Role),
)
Index("ix_api_keys_org", api_keys.c.org_id, api_keys.c.created_at)

# Failed attempts to sign in, by what they were made with (a hash of the address): known or not, the same.
sign_in_limits = Table(
    "sign_in_limits",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("until", UtcTime, nullable=False),
)
Index("ix_sign_in_limits_until", sign_in_limits.c.until)
