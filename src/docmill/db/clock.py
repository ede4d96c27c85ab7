"""Whose time it is: the database's on PostgreSQL, this machine's on SQLite (which has no other)."""

from datetime import UTC, datetime

from sqlalchemy import Connection, text


def database_now(connection: Connection) -> datetime:
    """The time all workers on this database agree on."""
    if connection.dialect.name == "postgresql":
        now: datetime = connection.execute(text("select now()")).scalar_one()
        return now
    return datetime.now(UTC)
