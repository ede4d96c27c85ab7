"""Numbers and dates in the cells of a sheet, with the words they are made of."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import cached_property

from docmill.extraction.local.invoices.kinds import kind_of
from docmill.extraction.local.invoices.sheet import Cell, Sheet, Token
from docmill.extraction.values.amounts import find_amounts, guess_decimal, mend
from docmill.extraction.values.dates import DateFound, DateOrder, find_dates, guess_order

_CENTS = 2
_LARGEST = Decimal(10) ** 12
_PERCENT = re.compile(r"(?<![\w.,])(-?\d{1,3}(?:[.,]\d{1,4})?)\s?%")
_COMPACT = re.compile(r"(?<![\w.,/-])((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?![\w.,/-])")


@dataclass(frozen=True, kw_only=True, eq=False)
class Number:
    """A number that stands in a cell."""

    value: Decimal
    cell: Cell
    start: int
    end: int
    decimals: int
    currency: str | None = None
    percent: bool = False
    money: bool = field(init=False)
    """Whether it is written as amounts are: with cents, or beside a currency."""

    def __post_init__(self) -> None:
        money = not self.percent and (self.currency is not None or self.decimals == _CENTS)
        object.__setattr__(self, "money", money)

    @property
    def text(self) -> str:
        return self.cell.text[self.start : self.end].strip()

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return self.cell.slice(self.start, self.end)

    @property
    def left(self) -> float:
        return self.tokens[0].left

    @property
    def right(self) -> float:
        return self.tokens[-1].right


@dataclass(frozen=True, kw_only=True, eq=False)
class DateSpan:
    """A date that stands in a cell."""

    value: date
    cell: Cell
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.cell.text[self.start : self.end].strip()

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return self.cell.slice(self.start, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How this document writes numbers and dates."""

    decimal: str | None
    order: DateOrder
    misread: bool
    """Whether the digits come from OCR."""
    credit: bool = False
    """Whether it is headed as a credit note."""


def habits_of(sheet: Sheet) -> Habits:
    """By all that is unambiguous; else dates are American where the money is."""
    texts = [cell.text for cell in sheet.cells if cell.numbered]
    american = "$" in sheet.text and not re.search(r"[€£₹]|\bGST(?:IN)?\b|\bABN\b", sheet.text)
    order = guess_order(texts) or (DateOrder.MDY if american else DateOrder.DMY)
    credit = kind_of(sheet) == "credit_note"
    return Habits(decimal=guess_decimal(texts), order=order, misread=sheet.scanned, credit=credit)


def numbers_in(cell: Cell, habits: Habits, dates: Sequence[DateSpan] = ()) -> Iterator[Number]:
    """Every number of a cell that is not part of a date or of a word, rates in percent included."""
    text = mend(cell.text) if habits.misread else cell.text
    taken = [(span.start, span.end) for span in dates]
    found: list[Number] = []
    for match in _PERCENT.finditer(text):
        rate = Decimal(match[1].replace(",", "."))
        found.append(Number(value=rate, cell=cell, start=match.start(), end=match.end(), decimals=0, percent=True))
    taken += [(number.start, number.end) for number in found]
    for amount in find_amounts(text, decimal=habits.decimal):
        if any(start < amount.end and amount.start < end for start, end in taken) or abs(amount.value) >= _LARGEST:
            continue
        value = amount.value
        before = text[: amount.start].strip()
        if before.endswith("(") or text[amount.start] == "(":
            # In brackets stands what is contained in something else as often as what is taken off; on a credit note an
            # amount that fills its brackets is given back.
            value = -abs(value) if habits.credit and text[amount.start] == "(" else abs(value)
        elif before in ("-", "−", "–"):
            value = -abs(value)
        found.append(
            Number(
                value=value,
                cell=cell,
                start=amount.start,
                end=amount.end,
                decimals=amount.digits,
                currency=amount.currency,
            )
        )
    yield from sorted(found, key=lambda number: number.start)


def dates_in(cell: Cell, habits: Habits) -> list[DateSpan]:
    """Every date of a cell, from left to right; not those that are part of a number of something."""
    text = cell.text
    found = [
        DateSpan(value=span.among(habits.order), cell=cell, start=span.start, end=span.end)
        for span in _dates(text, habits.order)
        if not _GLUED_BEFORE.search(text[: span.start]) and not _GLUED_AFTER.match(text[span.end :])
    ]
    if not found and (compact := _COMPACT.search(text)):
        try:
            value = date(int(compact[1]), int(compact[2]), int(compact[3]))
        except ValueError:
            return found
        found.append(DateSpan(value=value, cell=cell, start=compact.start(), end=compact.end()))
    return found


_GLUED_BEFORE = re.compile(r"[^\W_][-/]?$|\w[-/_.]$")
_GLUED_AFTER = re.compile(r"[/_-][^\W_]|[^\W_]")
_DASHED = re.compile(r"\s[-–—]\s")


def _dates(text: str, order: DateOrder) -> Iterator[DateFound]:
    """As found, but a dash between spaces is a period: `Oct 1 - Oct 31` is not the first of a year."""
    at = 0
    while at < len(text):
        for span in find_dates(text[at:], order=order):
            dash = _DASHED.search(text, at + span.start, at + span.end)
            if dash is not None:
                at = dash.end()
                break
            yield replace(span, start=at + span.start, end=at + span.end)
        else:
            return
