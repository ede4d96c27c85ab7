"""SQL over the outputs: one question, answered by DuckDB over a copy in memory that can reach nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from docmill.model.errors import InvalidInput
from docmill.outputs.gathering import NOTHING_KNOWN, Known, gather
from docmill.outputs.places import OutputSettings
from docmill.outputs.tables import View, make_views

_ALLOWED = ("SELECT", "EXPLAIN", "PRAGMA", "CALL", "RELATION")
"""Kinds of statements that only look; the database is sealed all the same."""


class QueryInvalid(InvalidInput):
    """DuckDB does not understand the question, or will not answer it here."""

    code = "query_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Rows as plain values."""

    columns: tuple[tuple[str, str], ...]
    """Name and type; names are all different."""
    rows: tuple[tuple[Any, ...], ...]
    complete: bool
    """Whether there are no more rows than these."""


class Outputs:
    """The outputs under one root, gathered for questions."""

    def __init__(
        self,
        settings: OutputSettings,
        cache: Path | None = None,
        notice: Callable[[int], None] = lambda count: None,
        *,
        known: Known = NOTHING_KNOWN,
        everything: bool = False,
        org_id: str | None = None,
    ) -> None:
        """`known`: what the database says beside them; `everything`: also copies and results that were replaced;
        `org_id`: only what is this organisation's.
        """
        self._connection = gather(settings, cache, notice, known, org_id=org_id)
        self.views: Sequence[View] = make_views(self._connection, settings.schema_folders, everything=everything)

    def ask(self, sql: str, *, limit: int | None = None) -> Answer:
        """Answer one question; QueryInvalid tells what is wrong with it."""
        from duckdb import Error

        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1:
                raise QueryInvalid("Ask one question at a time: a single SELECT.")
            if statements[0].type.name not in _ALLOWED:
                raise QueryInvalid("Outputs are only looked at here: write a SELECT.")
            self._connection.execute(statements[0])
            described = self._connection.description or []
            rows = self._connection.fetchall() if limit is None else self._connection.fetchmany(limit + 1)
        except Error as error:
            raise QueryInvalid(self._told(str(error))) from error
        return Answer(
            columns=_distinct([(name, str(kind)) for name, kind, *_ in described]),
            rows=tuple(tuple(plain(value) for value in row) for row in rows[:limit]),
            complete=limit is None or len(rows) <= limit,
        )

    def _told(self, message: str) -> str:
        """What DuckDB says, and what a person can do about it."""
        text = message.strip()
        if "pytz" in text:
            return (
                "A column has times with a zone. Cast it: CAST(… AS TIMESTAMP); the times of outputs are UTC already."
            )
        if "disabled by configuration" in text or "configuration has been locked" in text:
            return "Only the outputs can be asked here: no other files, no network, no extensions, no settings."
        if text.startswith("Out of Memory"):
            return "The answer needs more memory than is allowed here. Ask for fewer rows or columns, or sum them up."
        tables = ", ".join(view.name for view in self.views)
        return f"{text}\nThere are: {tables}; `docmill query` alone lists their columns."

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _distinct(columns: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The same columns, those of a name that was there before with a number behind it."""
    seen: dict[str, int] = {}
    found = []
    for name, kind in columns:
        seen[name] = seen.get(name, 0) + 1
        found.append((name if seen[name] == 1 else f"{name}_{seen[name]}", kind))
    return tuple(found)


def plain(value: Any) -> Any:
    """A value of DuckDB as JSON can hold it; amounts stay exact, as text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return neat(value)
        case datetime() | date() | time():
            return value.isoformat()
        case dict():
            return {str(key): plain(part) for key, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case _:
            return str(value)


def neat(value: Decimal) -> str:
    """An amount with two digits behind the point, or as many as it has: 12.5000 is 12.50, and 3.000000 is 3."""
    if value == value.to_integral_value() and value.as_tuple().exponent == -6:
        return str(value.quantize(Decimal(1)))
    text = f"{value:f}"
    whole, point, digits = text.partition(".")
    kept = digits.rstrip("0")
    return f"{whole}.{kept:0<2}" if point else whole
