"""What passes without anybody signing in: sessions, limits and ways in whose time is long up are deleted."""

from datetime import datetime, timedelta

from sqlalchemy import delete, or_

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import invitations, sessions, sign_in_limits
from docmill.services.intervals import Every

_REST = timedelta(minutes=10)
_KEPT = timedelta(days=30)
"""How long a way in that nobody used is still shown."""


def people_chores(database: Database, *, idle: timedelta) -> Every:
    """For all organisations, once in a while."""
    return Every(_REST, lambda now: tidy(database, idle=idle))


def tidy(database: Database, *, idle: timedelta) -> int:
    """Delete what opens nothing any more; how many rows."""
    with database.as_keeper().write() as connection:
        now: datetime = database_now(connection)
        gone = (
            delete(sessions).where(or_(sessions.c.expires_at <= now, sessions.c.seen_at <= now - idle)),
            delete(sign_in_limits).where(sign_in_limits.c.until <= now),
            delete(invitations).where(invitations.c.used_at.is_(None), invitations.c.expires_at <= now - _KEPT),
        )
        return sum(connection.execute(statement).rowcount for statement in gone)
