"""One transaction at a time, where there is no row that it could lock."""

from sqlalchemy import Connection, text

ALONE = text("select pg_advisory_xact_lock(hashtextextended(:name, 0))")


def alone(connection: Connection, name: str) -> None:
    """Until the commit nobody else gets beyond this point with the same name; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(ALONE, {"name": name})
