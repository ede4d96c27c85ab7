"""How many bytes an organisation may keep, looked at in the transaction that would add to them.

To add up all documents at each upload costs more with each of them, and other uploads wait meanwhile (60 ms for
100,000). So what came long ago is added up once in a while and remembered, and only what came since is looked at. What
went meanwhile makes the remembered sum too high, never too low: before anybody is refused, all is added up.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, case, func, select

from docmill.db.alone import alone
from docmill.db.clock import database_now
from docmill.db.tables import documents
from docmill.model.errors import Conflict

_STILL_COMING = timedelta(hours=1)
"""A document has the time at which it began to come in, and is seen once it is committed: it is remembered later."""
_REMEMBERED_FOR = timedelta(hours=2)


class QuotaExceeded(Conflict):
    """There is no room left for the organisation's documents."""

    code = "quota_exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """The bytes of all originals that came before a moment, as they were added up."""

    size: int
    before: datetime
    at: datetime


class Room:
    """The room that one organisation has for originals."""

    def __init__(self, org_id: str, quota: int | None) -> None:
        self._org_id = org_id
        self._quota = quota
        self._counted: _Counted | None = None

    def check(self, connection: Connection) -> None:
        """QuotaExceeded if the originals of the organisation, just inserted ones too, are too many.

        Called after the insert: who comes again because the answer to a commit was lost counts once. Until the commit
        nobody else gets this room.
        """
        if self._quota is None:
            return
        # One upload of an organisation at a time adds up and commits.
        alone(connection, f"docmill.quota:{self._org_id}")
        now = database_now(connection)
        known = self._counted
        if known is not None and now - known.at < _REMEMBERED_FOR:
            since = connection.execute(select(_size()).where(*self._mine, documents.c.created_at >= known.before))
            if known.size + int(since.scalar_one()) <= self._quota:
                return
        used = self._count(connection, now)
        if used > self._quota:
            raise QuotaExceeded(
                f"With this file the organisation would keep {used:,} bytes, and it has room for {self._quota:,}. Let "
                "originals expire (`docmill documents expire --older-than 90d`), or raise `storage.quota_bytes`.",
                wanted=used,
                quota=self._quota,
            )

    @property
    def _mine(self) -> tuple[ColumnElement[bool], ...]:
        return documents.c.org_id == self._org_id, documents.c.original_key.is_not(None)

    def _count(self, connection: Connection, now: datetime) -> int:
        """Add up all, and remember what came long ago."""
        before = now - _STILL_COMING
        long_ago = _size(case((documents.c.created_at < before, documents.c.size)))
        found = connection.execute(select(_size().label("all"), long_ago.label("before")).where(*self._mine)).one()
        self._counted = _Counted(size=int(found.before), before=before, at=now)
        return int(found.all)


def _size(column: ColumnElement[int] = documents.c.size) -> ColumnElement[int]:
    return func.coalesce(func.sum(column), 0)
