"""What can be asked of gathered outputs: `documents`, a view for each schema, one for each table, and `fields`.

`documents` has all there are. The others have each document once, so that sums are right: its newest result for a
schema, neither copies nor what a later result replaced; no quote, order or statement that was read as an invoice, and
nothing that a person rejected.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from docmill.extraction.result import Extraction, Reader
from docmill.extraction.schema import load_schema, shipped
from docmill.model.errors import DocmillError
from docmill.outputs.counting import COUNTED, REVIEW, SAME_AS, STANDS
from docmill.outputs.duck import named, quoted, seal
from docmill.outputs.gathering import DOCUMENTS, FIRST
from docmill.outputs.layout import FACTS, FIELDS, SIGNED_TOTAL, TOTAL, layout_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HEAD = ("file_name", REVIEW)
"""What whoever looks at a row must see of its document."""
_STANDING = ("status", REVIEW, "current", SAME_AS)
"""What whoever sums up rows of a table must know of their document."""
_OF_FAILURES = ("error_code", "error_message")
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


def make_views(
    connection: "DuckDBPyConnection", folders: Sequence[Path] = (), *, everything: bool = False
) -> tuple[View, ...]:
    """Make the views over `documents`; from then on the connection reads no file and takes no settings.

    `everything`: also copies and results that were replaced; `current` tells them apart.
    """
    counted = "true" if everything else f"{COUNTED} AND {STANDS}"
    made = [DOCUMENTS]
    kinds = dict(columns_of(connection, DOCUMENTS))
    tables = [name for name, kind in kinds.items() if kind.startswith("STRUCT") and kind.endswith("[]")]
    for schema in _schemas(connection):
        view = schema if schema.endswith("s") else f"{schema}s"
        if view in made or view in tables:
            continue
        columns = ", ".join([*map(named, schema_columns(connection, schema, folders, kinds)), CONFIDENCES])
        _view(connection, view, f"SELECT {columns} FROM documents WHERE schema = {quoted(schema)} AND {counted}")
        made.append(view)
    facts = "documents.id AS document_id, documents.file_name, documents.schema"
    for table in tables:
        if table in made:
            continue
        line = "" if table == FIELDS.name else "each.line, "
        # A list of records as rows, each with its place in the list.
        records = f"SELECT unnest({named(table)}) AS record, generate_subscripts({named(table)}, 1) AS line"
        rows = (
            f"SELECT {facts}, {line}unnest(each.record), {', '.join(f'documents.{name}' for name in _STANDING)} "
            f"FROM (SELECT * FROM documents WHERE {counted}) AS documents, LATERAL ({records}) AS each"
        )
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


def schema_columns(
    connection: "DuckDBPyConnection", schema: str, folders: Iterable[Path], known: Mapping[str, str]
) -> list[str]:
    """The columns that documents of a schema have, its fields first and what machines need last.

    If the schema came from a file, and nobody has it here: those in which any of its documents has something.
    """
    try:
        layout = layout_of(load_schema(schema, folders), _NOTHING)
    except DocmillError:
        wanted = _used(connection, schema, known)
    else:
        wanted = {column.name for column in layout.columns}
    return export_columns(known, wanted)


def export_columns(known: Iterable[str], wanted: Collection[str] | None = None) -> list[str]:
    """The columns in the order in which people want them: file, review, the fields (all, or those wanted), the rest."""
    facts = {column.name for column in FACTS} | set(FIRST)
    others = facts | {FIELDS.name, SIGNED_TOTAL}
    mine = [name for name in known if name not in others and (wanted is None or name in wanted)]
    if TOTAL in mine:
        mine.insert(mine.index(TOTAL) + 1, SIGNED_TOTAL)
    return [*_HEAD, *mine, *(name for name in known if name in facts - {*_HEAD, *_OF_FAILURES})]


def _used(connection: "DuckDBPyConnection", schema: str, known: Mapping[str, str]) -> set[str]:
    lists = {name for name, kind in known.items() if kind.endswith("[]")}
    counts = [f"sum(len({named(name)}))" if name in lists else f"count({named(name)})" for name in known]
    found = connection.execute(f"SELECT {', '.join(counts)} FROM documents WHERE schema = {quoted(schema)}").fetchone()
    return {name for name, count in zip(known, found or (), strict=True) if count} - {FIELDS.name}
