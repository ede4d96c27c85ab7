"""Whether a database is at the schema of this release, told so that a person knows what to do."""

from typing import TYPE_CHECKING

from docmill.model.errors import DocmillError

if TYPE_CHECKING:
    from docmill.db.database import Database


class SchemaOutdated(DocmillError):
    """The database is not at the schema of this release."""

    code = "schema_outdated"


def is_newer(revision: str | None) -> bool:
    """Whether a newer release wrote this revision; they are numbered in order."""
    from docmill.db import schema

    return revision is not None and revision > schema.HEAD


def outdated(database: "Database", revision: str | None) -> SchemaOutdated:
    from docmill.db import schema

    if is_newer(revision):
        return SchemaOutdated(
            f"The database {database} is at revision {revision}, made by a newer release; this one knows "
            f"{schema.HEAD}. Upgrade Docmill."
        )
    found = f"is at revision {revision}" if revision else "has no Docmill schema"
    return SchemaOutdated(
        f"The database {database} {found}, this release needs {schema.HEAD}. Run `docmill db upgrade`."
    )
