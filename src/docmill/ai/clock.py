"""Whose time the limits live by: the database's on PostgreSQL, this machine's on SQLite (which has no other)."""

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Connection, text

Clock = Callable[[Connection], datetime]


def database_clock(connection: Connection) -> datetime:
    """This very moment, not the beginning of the transaction: that may have waited for a lock since."""
    if connection.dialect.name == "postgresql":
        now: datetime = connection.execute(text("select clock_timestamp()")).scalar_one()
        return now.astimezone(UTC)
    return datetime.now(UTC)
