"""Many documents as one file: a row for each document, or for each of its line items."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from docmill.model.errors import InvalidInput, NotFound
from docmill.model.review import ReviewStatus
from docmill.outputs.duck import named, quoted
from docmill.outputs.gathering import REVIEW
from docmill.outputs.querying import plain
from docmill.outputs.tables import CONFIDENCES, COUNTED, STANDS, columns_of, export_columns, schema_columns

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ITEMS = "line_items"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is exported."""

    schema: str | None = None
    since: datetime | None = None
    """Documents that came in at this moment or later."""
    items: bool = False
    """A row for each line item instead of each document."""
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

    def _check_schema(self, name: str) -> None:
        named = "SELECT DISTINCT schema FROM documents WHERE schema IS NOT NULL ORDER BY 1"
        rows = self._connection.execute(named).fetchall()
        known = [schema for (schema,) in rows]
        if name not in known:
            raise NotFound(
                f"No document of the schema {name!r} is among the outputs. There are: {', '.join(known)}.", schema=name
            )

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

    def text(self, form: ExportFormat) -> Iterator[str]:
        """The file piece by piece, in any format but Parquet."""
        match form:
            case ExportFormat.CSV:
                return self._csv()
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

    def _csv(self) -> Iterator[str]:
        """As RFC 4180 has it. Text that a spreadsheet would take for a formula begins with an apostrophe."""
        result = self._connection.execute(self._query(nested=False))
        described = result.description or []
        texts = [str(kind) == "VARCHAR" for _, kind, *_ in described]
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\r\n")
        writer.writerow([name for name, *_ in described])
        while rows := result.fetchmany(_AT_ONCE):
            for row in rows:
                writer.writerow(
                    [
                        safe_text(value) if is_text and value is not None else plain(value)
                        for value, is_text in zip(row, texts, strict=True)
                    ]
                )
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
        yield buffer.getvalue()

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
        if self._choice.schema is None:
            columns = export_columns(self._kinds)
        else:
            columns = schema_columns(self._connection, self._choice.schema, self._folders, self._kinds)
        lists = [name for name in columns if self._kinds[name].endswith("[]")]
        flat = [named(name) for name in columns if name not in lists]
        where = self._where(duplicates=self._choice.duplicates)
        if self._choice.items:
            return self._items(flat, where)
        more = [*map(named, lists), CONFIDENCES] if nested else []
        return f"SELECT {', '.join([*flat, *more])} FROM documents WHERE {where} ORDER BY created_at, id"

    def _items(self, flat: list[str], where: str) -> str:
        described = self._connection.execute(
            f"DESCRIBE SELECT unnest(record) FROM (SELECT unnest({ITEMS}) AS record FROM documents)"
        ).fetchall()
        parts = [name for name, *_ in described]
        cells = [f"each.record.{named(part)} AS {named(f'item_{part}')}" for part in parts]
        return (
            f"SELECT {', '.join([*flat, 'each.line AS line', *cells])} FROM documents, LATERAL (SELECT "
            f"unnest({ITEMS}) AS record, generate_subscripts({ITEMS}, 1) AS line) AS each "
            f"WHERE {where} ORDER BY created_at, id, line"
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


def safe_text(value: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{value}" if value.startswith(_FORMULA) else value
