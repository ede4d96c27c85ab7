"""Bringing a database to the schema of this release, and telling whether it is there."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

HEAD = "0010"
"""The newest revision; a test keeps it true."""


def current_revision(connection: Connection) -> str | None:
    """The revision the database is at, or None for one that Docmill has never touched."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("select version_num from alembic_version")).scalar()


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the missing migrations inside the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        # Two upgrades at once would both create the tables; on SQLite the writer's lock keeps them apart.
        connection.execute(text("select pg_advisory_xact_lock(hashtext('docmill.schema'))"))
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
