"""Bringing a database to the schema of this release, and telling whether it is there.

A new SQLite database is not led through its history: `sqlite.sql` has what the migrations make of an empty one, and a
test holds it against them. Running them takes half a second of CPU, most of it to import what runs them.
"""

import sqlite3
from pathlib import Path

from sqlalchemy import Connection, inspect, text

HEAD = "0010"
"""The newest revision; a test keeps it true."""
_NEW = Path(__file__).with_name("sqlite.sql")


def current_revision(connection: Connection) -> str | None:
    """The revision the database is at, or None for one that Docmill has never touched."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("select version_num from alembic_version")).scalar()


def bring_to_head(connection: Connection) -> None:
    """Make the tables, or run the migrations that are missing, inside the connection's transaction."""
    if connection.dialect.name == "sqlite" and not inspect(connection).get_table_names():
        _create(connection)
    else:
        upgrade(connection)


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


def written_down(connection: Connection) -> str:
    """All statements that make a SQLite database like this one: what `sqlite.sql` has to say."""
    query = text("select sql from sqlite_master where sql is not null order by rowid")
    return "".join(f"{row.sql.strip()};\n\n" for row in connection.execute(query))


def _create(connection: Connection) -> None:
    statement = ""
    for line in _NEW.read_text(encoding="utf-8").splitlines(keepends=True):
        statement += line
        # Only SQLite knows where one ends: triggers have semicolons of their own.
        if sqlite3.complete_statement(statement):
            connection.exec_driver_sql(statement)
            statement = ""
    connection.execute(text("insert into alembic_version (version_num) values (:head)"), {"head": HEAD})
