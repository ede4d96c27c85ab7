"""Rows as CSV, spelled as the spreadsheet that opens it expects."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from docmill.model.errors import InvalidInput
from docmill.outputs.querying import plain

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_BYTE_ORDER_MARK = "\ufeff"
_COMMA, _POINT, _TAB = ",", ".", "\t"
DELIMITERS = {_COMMA: _COMMA, ";": ";", "|": "|", _TAB: _TAB, "tab": _TAB}
"""What may be asked for between cells; a tab is hard to type."""
DECIMALS = (_POINT, _COMMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvStyle:
    """How cells and numbers are spelled."""

    delimiter: str = _COMMA
    decimal: str = _POINT
    marked: bool = False
    """Begins with a byte order mark: without it Excel takes the file for one in an old code page."""

    def number(self, value: Decimal | float) -> str:
        """A number with the asked mark before its decimals."""
        return str(plain(value)).replace(_POINT, self.decimal)


RFC_4180 = CsvStyle()


def asked_style(*, excel: bool, delimiter: str | None, decimal: str | None) -> CsvStyle:
    """The style that somebody asked for; InvalidInput tells what cannot be.

    Where people write a decimal comma, spreadsheets expect semicolons: these stand between cells then, unless another
    mark is asked for.
    """
    if decimal is not None and decimal not in DECIMALS:
        raise InvalidInput(f"Decimals come behind '.' or ',', not {decimal!r}.", field="decimal")
    if delimiter is not None and delimiter not in DELIMITERS:
        known = ", ".join(f"'{mark}'" for mark in DELIMITERS if mark != _TAB)
        raise InvalidInput(f"Between cells stands one of {known}, not {delimiter!r}.", field="delimiter")
    point = decimal or _POINT
    between = DELIMITERS[delimiter] if delimiter is not None else ";" if point == _COMMA else _COMMA
    if point == between:
        raise InvalidInput(
            "A comma cannot stand between cells and before decimals; write another delimiter, such as ';'.",
            field="delimiter",
        )
    return CsvStyle(delimiter=between, decimal=point, marked=excel)


def csv_pieces(
    described: Sequence[tuple[str, str]], pages: Iterable[Sequence[Sequence[Any]]], style: CsvStyle
) -> Iterator[str]:
    """The file piece by piece: a line with the names of columns, described by name and type, then the rows."""
    spell = [_spelling(kind, style) for _, kind in described]
    buffer = io.StringIO()
    buffer.write(_BYTE_ORDER_MARK if style.marked else "")
    writer = csv.writer(buffer, delimiter=style.delimiter, lineterminator="\r\n")
    writer.writerow([name for name, _ in described])
    for page in pages:
        for row in page:
            cells = zip(row, spell, strict=True)
            writer.writerow([None if value is None else spelled(value) for value, spelled in cells])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _spelling(kind: str, style: CsvStyle) -> Callable[[Any], object]:
    if kind == "VARCHAR":
        return safe_text
    if kind == "DOUBLE" or kind.startswith("DECIMAL"):
        return style.number
    return plain


def safe_text(value: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{value}" if value.startswith(_FORMULA) else value
