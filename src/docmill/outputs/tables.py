"""What can be asked of gathered outputs: `documents`, a view for each schema, one for each table, and `fields`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from docmill.extraction.result import Extraction, Reader
from docmill.extraction.schema import load_schema, shipped
from docmill.model.errors import DocmillError
from docmill.outputs.duck import named, quoted, seal
from docmill.outputs.layout import FIELDS, layout_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DOCUMENTS = "documents"
_NOTHING = Extraction(schema="", schema_version="", reader=Reader.LOCAL, document_type="")
CONFIDENCES = (
    "map_from_entries(list_transform(fields, lambda each: struct_pack(k := each.name, v := each.confidence))) "
    "AS confidences"
)
"""Field name -> confidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A table that can be asked."""

    name: str
    columns: tuple[tuple[str, str], ...]
    """Name and type."""


def make_views(connection: "DuckDBPyConnection", folders: Sequence[Path] = ()) -> tuple[View, ...]:
    """Make the views over `documents`; from then on the connection reads no file and takes no settings."""
    made = [DOCUMENTS]
    kinds = dict(columns_of(connection, DOCUMENTS))
    tables = [name for name, kind in kinds.items() if kind.startswith("STRUCT") and kind.endswith("[]")]
    for schema in _schemas(connection):
        view = schema if schema.endswith("s") else f"{schema}s"
        if view in made or view in tables:
            continue
        columns = ", ".join([*map(named, schema_columns(schema, folders, kinds)), CONFIDENCES])
        _view(connection, view, f"SELECT {columns} FROM documents WHERE schema = {quoted(schema)}")
        made.append(view)
    facts = "documents.id AS document_id, documents.file_name, documents.schema"
    for table in tables:
        if table in made:
            continue
        line = "" if table == FIELDS.name else "each.line, "
        # A list of records as rows, each with its place in the list.
        records = f"SELECT unnest({named(table)}) AS record, generate_subscripts({named(table)}, 1) AS line"
        rows = f"SELECT {facts}, {line}unnest(each.record) FROM documents, LATERAL ({records}) AS each"
        _view(connection, table, rows)
        made.append(table)
    views = tuple(View(name=name, columns=columns_of(connection, name)) for name in made)
    seal(connection)
    return views


def _view(connection: "DuckDBPyConnection", name: str, query: str) -> None:
    connection.execute(f"CREATE VIEW {named(name)} AS {query}")


def columns_of(connection: "DuckDBPyConnection", table: str) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns of a table."""
    return tuple((name, str(kind)) for name, kind, *_ in connection.execute(f"DESCRIBE {named(table)}").fetchall())


def _schemas(connection: "DuckDBPyConnection") -> list[str]:
    rows = connection.execute("SELECT DISTINCT schema FROM documents WHERE schema IS NOT NULL").fetchall()
    return sorted({*shipped(), *(name for (name,) in rows)})


def schema_columns(schema: str, folders: Iterable[Path], known: Iterable[str]) -> list[str]:
    """The columns that documents of a schema have; all there are if the schema is gone."""
    try:
        layout = layout_of(load_schema(schema, folders), _NOTHING)
    except DocmillError:
        return [name for name in known if name != FIELDS.name]
    wanted = {column.name for column in layout.columns} - {FIELDS.name}
    return [name for name in known if name in wanted]
