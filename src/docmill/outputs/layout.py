"""The columns that documents of a schema have in Parquet: the same for all of them, whatever was found.

First what is known of the document, then a typed column per field, a list of records per table, and last `fields`: all
that was found with text, confidence and place, one record per field.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from docmill.extraction.values.kinds import FieldType
from docmill.outputs.parquet import Column, ColumnType

if TYPE_CHECKING:
    from docmill.extraction.result import Extraction
    from docmill.extraction.schema import FieldSchema

FACTS = (
    Column("id"),
    Column("org_id"),
    Column("file_name"),
    Column("sha256"),
    Column("format"),
    Column("status"),
    Column("duplicate_of"),
    Column("created_at", ColumnType.MOMENT),
    Column("schema"),
    Column("schema_version"),
    Column("reader"),
    Column("document_type"),
    Column("type_confidence", ColumnType.NUMBER),
    Column("confidence", ColumnType.NUMBER),
    Column("checks_passed", ColumnType.INTEGER),
    Column("checks_failed", ColumnType.INTEGER),
)
FIELDS = Column(
    "fields",
    parts=(
        Column("name"),
        Column("value"),
        Column("raw"),
        Column("confidence", ColumnType.NUMBER),
        Column("grounded", ColumnType.FLAG),
        Column("page", ColumnType.INTEGER),
        Column("left", ColumnType.NUMBER),
        Column("top", ColumnType.NUMBER),
        Column("right", ColumnType.NUMBER),
        Column("bottom", ColumnType.NUMBER),
        Column("passed"),
        Column("failed"),
        Column("reader"),
    ),
)
ROW_CONFIDENCE = Column("row_confidence", ColumnType.NUMBER)
"""Of a row of a table: that of its least sure cell."""
TOTAL, SIGNED_TOTAL = "total", "signed_total"
ADDED = ("review", "current", "same_as", "error_code", "error_message", SIGNED_TOTAL)
"""What is known only when many documents are looked at together, and stands beside the columns of their files."""
_RESERVED = frozenset({FIELDS.name, *ADDED, *(column.name for column in FACTS)})
_TYPES: Mapping[FieldType, ColumnType] = {
    FieldType.AMOUNT: ColumnType.AMOUNT,
    FieldType.NUMBER: ColumnType.QUANTITY,
    FieldType.PERCENT: ColumnType.QUANTITY,
    FieldType.COUNT: ColumnType.INTEGER,
    FieldType.DATE: ColumnType.DAY,
    FieldType.BOOLEAN: ColumnType.FLAG,
}
"""All others are text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of a schema, by the names that its fields and tables have in the schema."""

    fields: Mapping[str, Column]
    tables: Mapping[str, Column]
    columns: tuple[Column, ...]
    """All of them, in order."""


def column_name(name: str) -> str:
    """What the column of a field is called: as the field, unless something else has that name."""
    return f"field_{name}" if name in _RESERVED else name


def schema_name(column: str) -> str:
    """What the schema calls the field or table of a column."""
    name = column.removeprefix("field_")
    return name if name in _RESERVED else column


def layout_of(schema: "FieldSchema | None", extraction: "Extraction") -> Layout:
    """The columns for documents of a schema.

    What an extraction holds beyond its schema (or all of it, if nobody has the schema any more) becomes text.
    """
    fields = tuple((name, field.type) for name, field in schema.fields.items()) if schema else ()
    tables = (
        tuple(
            (name, tuple((column, field.type) for column, field in table.columns.items()))
            for name, table in schema.tables.items()
        )
        if schema
        else ()
    )
    fields += tuple((name, FieldType.TEXT) for name in sorted(set(extraction.fields) - {name for name, _ in fields}))
    known = dict(tables)
    for name, rows in sorted(extraction.rows.items()):
        parts = dict(known.get(name, ()))
        more = {column: FieldType.TEXT for row in rows for column in row if column not in parts}
        known[name] = (*parts.items(), *sorted(more.items()))
    return _layout(fields, tuple((name, parts) for name, parts in known.items() if parts))


_Kinds = tuple[tuple[str, FieldType], ...]


@lru_cache(maxsize=256)
def _layout(fields: _Kinds, tables: tuple[tuple[str, _Kinds], ...]) -> Layout:
    flat = {name: Column(column_name(name), _TYPES.get(kind, ColumnType.TEXT)) for name, kind in fields}
    lists = {name: Column(column_name(name), parts=_parts(kinds)) for name, kinds in tables}
    return Layout(fields=flat, tables=lists, columns=(*FACTS, *flat.values(), *lists.values(), FIELDS))


def _parts(kinds: Iterable[tuple[str, FieldType]]) -> tuple[Column, ...]:
    return (*(Column(name, _TYPES.get(kind, ColumnType.TEXT)) for name, kind in kinds), ROW_CONFIDENCE)
