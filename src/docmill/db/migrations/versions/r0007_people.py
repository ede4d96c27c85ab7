"""Organisations, people, keys, sessions, audit; and row-level security on every table."""

import sqlalchemy as sa
from alembic import op

from docmill.db.migrations.rows_0007 import protect_all
from docmill.db.types import IdType, JsonText, UtcTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_ROLES = "'owner', 'admin', 'reviewer', 'viewer', 'service'"


def upgrade() -> None:
    _people()
    _ways_in()
    _audit()
    protect_all(op.get_bind())


def _people() -> None:
    op.create_table(
        "organisations",
        sa.Column("id", IdType, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_organisations"),
        sa.UniqueConstraint("name", name="uq_organisations_name"),
    )
    op.create_table(
        "users",
        sa.Column("id", IdType, nullable=False),
        sa.Column("email", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("password", sa.String),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("email", name="uq_users_email"),
    )
    op.create_table(
        "memberships",
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("user_id", IdType, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("created_by", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("org_id", "user_id", name="pk_memberships"),
        sa.ForeignKeyConstraint(["org_id"], ["organisations.id"], name="fk_memberships_org_id"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_memberships_user_id"),
        _role("memberships"),
    )
    op.create_index("ix_memberships_user", "memberships", ["user_id"])


def _ways_in() -> None:
    op.create_table(
        "invitations",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("email", sa.String, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("resets", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("created_by", sa.String, nullable=False),
        sa.Column("expires_at", UtcTime, nullable=False),
        sa.Column("used_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("token_hash", name="uq_invitations_token_hash"),
        sa.ForeignKeyConstraint(["org_id"], ["organisations.id"], name="fk_invitations_org_id"),
        _role("invitations"),
    )
    op.create_index("ix_invitations_org", "invitations", ["org_id", "created_at"])
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("user_id", IdType, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("seen_at", UtcTime, nullable=False),
        sa.Column("expires_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name="pk_sessions"),
        sa.ForeignKeyConstraint(
            ["org_id", "user_id"],
            ["memberships.org_id", "memberships.user_id"],
            name="fk_sessions_membership",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_sessions_user", "sessions", ["org_id", "user_id"])
    op.create_index("ix_sessions_expires", "sessions", ["expires_at"])
    op.create_table(
        "api_keys",
        sa.Column("id", IdType, nullable=False),
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("hint", sa.String, nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("scopes", JsonText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("created_by", sa.String, nullable=False),
        sa.Column("expires_at", UtcTime),
        sa.Column("used_at", UtcTime),
        sa.Column("revoked_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("token_hash", name="uq_api_keys_token_hash"),
        sa.ForeignKeyConstraint(["org_id"], ["organisations.id"], name="fk_api_keys_org_id"),
        _role("api_keys"),
    )
    op.create_index("ix_api_keys_org", "api_keys", ["org_id", "created_at"])
    op.create_table(
        "sign_in_limits",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("failures", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("until", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_sign_in_limits"),
    )
    op.create_index("ix_sign_in_limits_until", "sign_in_limits", ["until"])


def _audit() -> None:
    op.create_table(
        "audit_log",
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
        sa.Column("actor_kind", sa.String, nullable=False),
        sa.Column("actor_id", sa.String, nullable=False),
        sa.Column("actor_name", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("subject_type", sa.String, nullable=False),
        sa.Column("subject_id", sa.String, nullable=False),
        sa.Column("before", JsonText),
        sa.Column("after", JsonText),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("org_id", "number", name="pk_audit_log"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_audit_log_subject", "audit_log", ["org_id", "subject_type", "subject_id", "number"])
    op.create_table(
        "audit_heads",
        sa.Column("org_id", IdType, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("org_id", name="pk_audit_heads"),
    )
    _append_only()


def _append_only() -> None:
    refusal = "the audit log is only ever added to"
    if op.get_bind().dialect.name != "postgresql":
        for verb in ("update", "delete"):
            op.execute(
                f"CREATE TRIGGER audit_log_no_{verb} BEFORE {verb.upper()} ON audit_log "
                f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION docmill_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{refusal}' USING ERRCODE = 'insufficient_privilege'; END $$"
    )
    for verb in ("update", "delete", "truncate"):
        op.execute(
            f"CREATE TRIGGER audit_log_no_{verb} BEFORE {verb.upper()} ON audit_log "
            "FOR EACH STATEMENT EXECUTE FUNCTION docmill_append_only()"
        )


def _role(table: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(f"role IN ({_ROLES})", name=op.f(f"ck_{table}_role"))
