"""How many bytes an organisation may keep, looked at in the transaction that would add to them."""

from sqlalchemy import Connection, func, select

from docmill.db.alone import alone
from docmill.db.tables import documents
from docmill.model.errors import Conflict


class QuotaExceeded(Conflict):
    """There is no room left for the organisation's documents."""

    code = "quota_exceeded"


def keep_within(connection: Connection, org_id: str, quota: int | None) -> None:
    """QuotaExceeded if the originals of an organisation, just inserted ones too, are too many.

    Called after the insert: who comes again because the answer to a commit was lost counts once. Until the commit
    nobody else gets this room.
    """
    if quota is None:
        return
    # One upload of an organisation at a time adds up and commits.
    alone(connection, f"docmill.quota:{org_id}")
    kept = select(func.coalesce(func.sum(documents.c.size), 0)).where(
        documents.c.org_id == org_id, documents.c.original_key.is_not(None)
    )
    used = int(connection.execute(kept).scalar_one())
    if used > quota:
        raise QuotaExceeded(
            f"With this file the organisation would keep {used:,} bytes, and it has room for {quota:,}. Let originals "
            "expire (`docmill documents expire --older-than 90d`), or raise `storage.quota_bytes`.",
            wanted=used,
            quota=quota,
        )
