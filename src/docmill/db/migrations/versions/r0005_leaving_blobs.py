"""Bytes of originals that are to be deleted are written down; template versions tell whether they came with Docmill."""

import sqlalchemy as sa
from alembic import op

from docmill.db.types import UtcTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "leaving_blobs",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("claimed_at", UtcTime),
        sa.PrimaryKeyConstraint("key", name="pk_leaving_blobs"),
    )
    op.add_column("process_templates", sa.Column("shipped", sa.Boolean, nullable=False, server_default=sa.false()))
