"""Many documents as one file: a row for each document, or for each row of one of its tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from docmill.model.errors import InvalidInput, NotFound
from docmill.model.review import ReviewStatus
from docmill.outputs.counting import COUNTED, REVIEW, STANDS
from docmill.outputs.csv_text import RFC_4180, CsvStyle, asked_style, csv_pieces
from docmill.outputs.duck import named, quoted
from docmill.outputs.layout import column_name, schema_name
from docmill.outputs.querying import plain
from docmill.outputs.tables import CONFIDENCES, columns_of, export_columns, schema_columns

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ITEMS = "line_items"
LINE = "line"
"""The place of a row in its table."""
_AT_ONCE = 1000
_COUNTED = f"{COUNTED} AND schema IS NOT NULL"
"""What is written unless all is asked for."""


NO_ITEM = "none"
"""Asks for documents without a review item."""


def asked_reviews(texts: Sequence[str]) -> tuple[str, ...]:
    """Statuses as people write them, several with commas between; InvalidInput names one that there is not."""
    known = (*(status.value for status in ReviewStatus), NO_ITEM)
    asked = [word.strip() for text in texts for word in text.split(",")]
    for word in asked:
        if word not in known:
            raise InvalidInput(
                f"There is no review status {word!r}; write one or more of {', '.join(known)}, with commas between.",
                field="review",
            )
    return tuple(name for name in known if name in asked)


class ExportFormat(StrEnum):
    """The file that is written."""

    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"


def asked_table(*, items: bool, table: str | None) -> str | None:
    """Whose rows are asked for, if not documents; `items` is short for the line items."""
    if items and table not in (None, ITEMS):
        raise InvalidInput(f"items is short for the table {ITEMS}, and {table} is another; ask for one.", field="items")
    return ITEMS if items else table


def style_for(form: ExportFormat, *, excel: bool, delimiter: str | None, decimal: str | None) -> CsvStyle:
    """How CSV is to be spelled; InvalidInput if it is asked of another format, or cannot be."""
    asked = {"excel": excel, "delimiter": delimiter is not None, "decimal": decimal is not None}
    wrong = [name for name, is_asked in asked.items() if is_asked and form is not ExportFormat.CSV]
    if wrong:
        raise InvalidInput(f"{wrong[0]} is for CSV, and this is {form.value}; leave it away.", field=wrong[0])
    return asked_style(excel=excel, delimiter=delimiter, decimal=decimal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is exported."""

    schema: str | None = None
    since: datetime | None = None
    """Documents that came in at this moment or later."""
    table: str | None = None
    """A row for each row of this table instead of each document."""
    reviews: tuple[str, ...] = ()
    """Only documents whose review stands at one of these; NO_ITEM: those without an item. Empty: all."""
    duplicates: bool = False
    """Also copies, replaced results, what was rejected, quotes, and documents that nothing was extracted from."""


class Export:
    """Chosen rows of gathered outputs."""

    def __init__(self, connection: "DuckDBPyConnection", choice: Choice, folders: Sequence[Path] = ()) -> None:
        self._connection = connection
        self._choice = choice
        self._folders = folders
        self._kinds = dict(columns_of(connection, "documents"))
        if choice.schema is not None:
            self._check_schema(choice.schema)
        self._columns = self._chosen_columns()
        self._table = None if choice.table is None else self._checked_table(choice.table)

    def _check_schema(self, name: str) -> None:
        named = "SELECT DISTINCT schema FROM documents WHERE schema IS NOT NULL ORDER BY 1"
        rows = self._connection.execute(named).fetchall()
        known = [schema for (schema,) in rows]
        if name not in known:
            raise NotFound(
                f"No document of the schema {name!r} is among the outputs. There are: {', '.join(known)}.", schema=name
            )

    def _chosen_columns(self) -> list[str]:
        if self._choice.schema is None:
            return export_columns(self._kinds)
        return schema_columns(self._connection, self._choice.schema, self._folders, self._kinds)

    def _checked_table(self, name: str) -> str:
        """The column of a table, by the name that the schema has for it."""
        known = [column for column in self._columns if self._kinds[column].startswith("STRUCT")]
        for column in (column_name(name), name):
            if column in known:
                return column
        where = "the documents have" if self._choice.schema is None else f"the schema {self._choice.schema!r} has"
        there = f"{where}: {', '.join(map(schema_name, known))}" if known else f"{where} none at all"
        raise NotFound(f"There is no table {name!r}; {there}.", table=name)

    def count(self) -> int:
        """Rows that will be written."""
        return int(self._one(f"SELECT count(*) FROM ({self._query(nested=False)})"))

    def left_out(self) -> int:
        """Documents that are not written, because another result counts or there is none."""
        if self._choice.duplicates:
            return 0
        where = self._where(duplicates=True)
        return int(self._one(f"SELECT count(*) FROM documents WHERE NOT ({self._counted}) AND {where}"))

    @property
    def _counted(self) -> str:
        # Who names statuses of review gets what has them, rejected ones too.
        return _COUNTED if self._choice.reviews else f"{_COUNTED} AND {STANDS}"

    def _one(self, query: str) -> Any:
        found = self._connection.execute(query).fetchone()
        assert found is not None
        return found[0]

    def text(self, form: ExportFormat, style: CsvStyle = RFC_4180) -> Iterator[str]:
        """The file piece by piece, in any format but Parquet; the style is that of CSV."""
        match form:
            case ExportFormat.CSV:
                return self._csv(style)
            case ExportFormat.JSON:
                return self._json()
            case ExportFormat.JSONL:
                return self._lines()
            case ExportFormat.PARQUET:
                raise AssertionError("Parquet is not text.")
            case _:
                assert_never(form)

    def parquet(self, file: Path) -> None:
        """Write a Parquet file."""
        query = self._query(nested=True)
        self._connection.execute(f"COPY ({query}) TO {quoted(str(file))} (FORMAT parquet, COMPRESSION zstd)")

    def _csv(self, style: CsvStyle) -> Iterator[str]:
        result = self._connection.execute(self._query(nested=False))
        described = [(name, str(kind)) for name, kind, *_ in result.description or []]
        return csv_pieces(described, iter(lambda: result.fetchmany(_AT_ONCE), []), style)

    def _lines(self) -> Iterator[str]:
        import orjson

        for record in self._records():
            yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE).decode()

    def _json(self) -> Iterator[str]:
        import orjson

        opening = "[\n"
        for record in self._records():
            yield opening + orjson.dumps(record).decode()
            opening = ",\n"
        yield "[]\n" if opening == "[\n" else "\n]\n"

    def _records(self) -> Iterator[dict[str, Any]]:
        result = self._connection.execute(self._query(nested=True))
        names = [name for name, *_ in result.description or []]
        while rows := result.fetchmany(_AT_ONCE):
            for row in rows:
                yield {name: plain(value) for name, value in zip(names, row, strict=True)}

    def _query(self, *, nested: bool) -> str:
        """The rows; nested: with tables and confidences, which CSV cannot hold."""
        lists = [name for name in self._columns if self._kinds[name].endswith("[]")]
        flat = [named(name) for name in self._columns if name not in lists]
        where = self._where(duplicates=self._choice.duplicates)
        if self._table is not None:
            return self._rows(self._table, flat, where)
        more = [*map(named, lists), CONFIDENCES] if nested else []
        return f"SELECT {', '.join([*flat, *more])} FROM documents WHERE {where} ORDER BY created_at, id"

    def _rows(self, table: str, flat: list[str], where: str) -> str:
        # Fields may have any name: theirs are all qualified, and those made here can be no field's.
        records, each, record, place = f"documents.{named(table)}", named("the row"), named("a row"), named("its place")
        described = self._connection.execute(
            f"DESCRIBE SELECT unnest({record}) FROM (SELECT unnest({records}) AS {record} FROM documents)"
        ).fetchall()
        opening = "item" if table == ITEMS else schema_name(table)
        taken = {name.casefold() for name in self._columns}
        cells = [f"{each}.{place} AS {named(_free(LINE, taken))}"]
        for part, *_ in described:
            cells.append(f"{each}.{record}.{named(part)} AS {named(_free(f'{opening}_{part}', taken))}")
        fields = [f"documents.{name}" for name in flat]
        return (
            f"SELECT {', '.join([*fields, *cells])} FROM documents, LATERAL (SELECT "
            f"unnest({records}) AS {record}, generate_subscripts({records}, 1) AS {place}) AS {each} "
            f"WHERE {where} ORDER BY documents.created_at, documents.id, {each}.{place}"
        )

    def _where(self, *, duplicates: bool) -> str:
        asked = []
        if self._choice.schema is not None:
            asked.append(f"schema = {quoted(self._choice.schema)}")
        if self._choice.since is not None:
            moment = self._choice.since.astimezone(UTC).replace(tzinfo=None)
            asked.append(f"created_at >= TIMESTAMP {quoted(moment.isoformat(sep=' '))}")
        if self._choice.reviews:
            listed = ", ".join(quoted(each) for each in self._choice.reviews)
            asked.append(f"coalesce({REVIEW}, {quoted(NO_ITEM)}) IN ({listed})")
        if not duplicates:
            asked.append(self._counted)
        return " AND ".join(asked) or "true"


def _free(name: str, taken: set[str]) -> str:
    """The name of a column, which is then taken: another one if a field has it."""
    while name.casefold() in taken:
        name = f"row_{name}"
    taken.add(name.casefold())
    return name
