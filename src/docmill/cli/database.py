"""`docmill db`: the schema of the database."""

from cyclopts import App

from docmill.cli.options import Json
from docmill.cli.output import print_json

app = App(name="db", help="Look at the database schema and bring it up to date.")


@app.command
def upgrade(*, json: Json = False) -> int:
    """Bring the database to the schema of this release.

    SQLite is upgraded by the first command that opens it. PostgreSQL is left to you and a role that may create tables.
    """
    from docmill.cli.opening import opened

    with opened(check_schema=False) as installation:
        before = installation.revision()
        after = installation.upgrade()
        name = str(installation.database)
    if json:
        print_json({"database": name, "before": before, "revision": after, "changed": before != after})
    elif before == after:
        print(f"{name} is at revision {after} already.")
    else:
        print(f"{name} is now at revision {after} (before: {before or 'empty'}).")
    return 0


@app.command
def current(*, json: Json = False) -> int:
    """Show at which revision the database is; exit code 1 if this release needs another."""
    from docmill.cli.opening import opened
    from docmill.db.schema import HEAD

    with opened(check_schema=False) as installation:
        revision = installation.revision()
        database = installation.database
        name, kind = str(database), database.kind
    if json:
        up_to_date = revision == HEAD
        print_json({"database": name, "kind": kind, "revision": revision, "head": HEAD, "up_to_date": up_to_date})
    else:
        wanted = "" if revision == HEAD else f"; this release needs {HEAD}, run `docmill db upgrade`"
        print(f"{name}: {f'revision {revision}' if revision else 'no schema yet'}{wanted}")
    return 0 if revision == HEAD else 1
