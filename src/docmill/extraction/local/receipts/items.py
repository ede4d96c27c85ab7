"""The lines of a receipt: what was bought, how many, for how much each and together.

A till prints an item in one row, or its name in one row and `2 x 6.25  12.50` in the next; both end before the first
row that speaks of a total, of tax or of payment.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from docmill.extraction.local.layout import Layout, Span
from docmill.extraction.local.receipts.amounts import Amounts
from docmill.extraction.result import Evidence, FieldValue
from docmill.extraction.values.amounts import find_amounts, format_amount, format_number

_END = ("total", "sub", "round", "cash", "change", "paid", "grand", "summary")
_TIMES = re.compile(r"(?<![\d.])(\d{1,4}(?:\.\d{1,3})?)\s?[xX×*@]\s?(?:RM|\$)?\s?(?=\d|$)")
_COUNT = re.compile(r"^\W*(\d{1,3})(?:\.0{1,3})?\s")
_COUNTED = re.compile(r"[1-9]\d?\s+[^\W\d_]{2}")
"""How many before what: believed if it is so in every row, for `7 UP` is a name."""
_LONE = re.compile(r"(?<=\s)(\d{1,3})(?=\s)")
_NUMBER = re.compile(r"\d{1,3}(?:\.0{1,3})?")
_CENTS = Decimal("0.02")
_NUMBERED = re.compile(r"\W*\d{1,2}[.)]\s?[\d-]{4,}\s")
"""An item that begins with its number in the list and its code."""
_CODE = re.compile(rf"^{_NUMBERED.pattern}|^\W*[A-Z]{{0,4}}\d{{4,}}[\w-]*\W*|^\W*\d{{1,3}}[.)]\s")
_FLAG = re.compile(r"\s+(?:[*#]?(?:SR|ZRL?|ZRE|OS|ESN?|TX|[A-Z])\*?|[*#])$")
_CODES = re.compile(r"\b(?=\w*-?\w*\d{3})[\w-]{4,}")
_TAX_CODES = re.compile(r"\b(?:SR|ZRL?|ZRE|OS|ESN?|EX|S|Z|T)\b:?")
_TAX_CODE = re.compile(r"(?:SR|ZRL?|ZRE|OS|ESN?|[A-Z])\W*")
_NOTE = re.compile(
    r"[^\W\d_]{3}\s*:\s*\S*\d{3}|\b(?:customer|cashier|hrs|tel|table|member|server|order|date|pax)\b\W*[:#]"
    r"|\d{3,4}\s?hrs\b|\bvalued\b",
    re.IGNORECASE,
)
"""A row that says who sold, when and to whom."""
_HEADINGS = re.compile(r"\b(?:qty|price|amount|amt|desc|description|item|u/?price|disc|code|uom)\b", re.IGNORECASE)
_LEAST = 0.5
"""How sure it is that a row is an item, when nothing else says so; a sum that fits makes it surer."""


@dataclass(kw_only=True)
class _Item:
    description: str = ""
    spans: list[Span] = field(default_factory=list)
    amount: tuple[Span, Decimal] | None = None
    price: tuple[Span, Decimal] | None = None
    quantity: Decimal | None = None


def read_items(layout: Layout, amounts: Amounts, total: Decimal | None) -> list[Mapping[str, FieldValue]]:
    """The rows of the table, from top to bottom."""
    items = _items(layout, amounts)
    added = sum((item.amount[1] for item in items if item.amount), Decimal(0))
    sure = 0.95 if total is not None and abs(added - total) <= Decimal("0.05") else _LEAST
    return [_row(item, sure) for item in items]


def _items(layout: Layout, amounts: Amounts) -> list[_Item]:
    in_row: dict[int, list[tuple[Span, Decimal]]] = {}
    for span, value in amounts.found:
        in_row.setdefault(span.piece.row, []).append((span, value))
    items: list[_Item] = []
    waiting: list[Span] = []
    unnamed: _Item | None = None
    first = _first(layout, amounts, in_row)
    end = _end(layout, amounts, in_row, first)
    below = _named_below(layout, in_row, first, end)
    for row in range(first, end):
        found = in_row.get(row, [])
        if row in amounts.extras:
            continue
        text, spans = _wording(layout, row, found)
        if not found:
            if waiting and _NUMBERED.match(waiting[0].text):
                waiting = [*waiting, *spans]
            elif not _may_name(layout.row_text(row)):
                continue
            elif unnamed is not None:
                unnamed.description, unnamed.spans, unnamed = text, spans, None
            else:
                waiting = spans
            continue
        item = _Item(amount=found[-1], spans=spans)
        item.description = text
        _count(item, layout.row_text(row), found)
        unnamed = item if below and _bare(text) else None
        if _bare(text) and not below:
            item.description = " ".join(span.text.strip() for span in waiting)
            item.spans = waiting or spans
        waiting = []
        items.append(item)
    if len(items) > 1 and all(_COUNTED.match(item.description) and item.quantity is None for item in items):
        for item in items:
            count, item.description = item.description.split(None, 1)
            item.quantity = Decimal(count)
    for item in items:
        item.description = _FLAG.sub("", _CODE.sub("", item.description)).strip(" -:*.")
    return [item for item in items if item.description and not _TAX_CODE.fullmatch(item.description)]


def _end(layout: Layout, amounts: Amounts, in_row: Mapping[int, Sequence[tuple[Span, Decimal]]], first: int) -> int:
    """The row that speaks of a total, of tax or of payment."""
    begun = False
    for row in range(first, len(layout.rows)):
        said = amounts.labels[row].keys()
        if (row in in_row or begun) and not said.isdisjoint(_END) and (begun or said & {"total", "sub"}):
            return row
        begun = begun or row in in_row
    return len(layout.rows)


def _named_below(layout: Layout, in_row: Mapping[int, Sequence[tuple[Span, Decimal]]], first: int, end: int) -> bool:
    """Whether names stand below the rows with codes and amounts: more of these have words behind than before them."""

    def named(row: int) -> bool:
        return first <= row < end and row not in in_row and _may_name(layout.row_text(row))

    bare = [row for row in range(first, end) if row in in_row and _bare(_wording(layout, row, in_row[row])[0])]
    return sum(named(row + 1) for row in bare) > sum(named(row - 1) for row in bare)


def _bare(text: str) -> bool:
    """Whether the words of a row with an amount are codes and numbers only."""
    rest = _TAX_CODES.sub(" ", _CODES.sub(" ", text))
    return not re.search(r"[^\W\d_]{3}", rest)


def _may_name(text: str) -> bool:
    """Whether a row without an amount may be the name of an item: it has words, and tells nothing about the sale."""
    return bool(re.search(r"[^\W\d_]{2}", text)) and not _NOTE.search(text)


def _first(layout: Layout, amounts: Amounts, in_row: Mapping[int, Sequence[tuple[Span, Decimal]]]) -> int:
    """Where items may begin: behind the headings of the columns, or a row above the first amount."""
    for row in range(len(layout.rows)):
        if len(_HEADINGS.findall(layout.row_text(row))) >= 2:
            return row + 1
    row = max(0, min(in_row, default=len(layout.rows)) - 1)
    return row - 1 if row and _NUMBERED.match(layout.row_text(row - 1)) else row


def _wording(layout: Layout, row: int, found: Sequence[tuple[Span, Decimal]]) -> tuple[str, list[Span]]:
    """The words of a row in front of its amounts."""
    spans: list[Span] = []
    for piece in layout.rows[row]:
        if spans and _NUMBER.fullmatch(piece.text.strip()):
            continue  # A column of its own: how many.
        end = min([span.start for span, _ in found if span.piece is piece] or [len(piece.text)])
        times = _TIMES.search(piece.text, 0, end)
        if times:
            end = times.start()
        if piece.text[:end].strip():
            spans.append(Span(piece=piece, start=0, end=end))
    return " ".join(span.text.strip() for span in spans), spans


def _count(item: _Item, text: str, found: Sequence[tuple[Span, Decimal]]) -> None:
    """How many, and for how much each, where it is said and fits."""
    amount = found[-1][1]
    times = _TIMES.search(text)
    if times and times.end() == len(text) and "." in times[1]:
        times = None  # A mark behind an amount.
    if times:
        item.quantity = Decimal(times[1])
    elif len(found) > 1:
        for count in [*_COUNT.findall(text), *_LONE.findall(text)]:
            if any(abs(value * int(count) - amount) <= _CENTS for _, value in found[:-1]):
                item.quantity = Decimal(count)
    for span, value in found[:-1]:
        if item.quantity and abs(value * item.quantity - amount) <= _CENTS:
            item.price = (span, value)
    if item.quantity and item.price is None and times:
        prices = find_amounts(text[times.end() :], decimal=".", misread=True)
        if prices and abs(prices[0].value * item.quantity - amount) > _CENTS:
            item.quantity = None


def _row(item: _Item, sure: float) -> Mapping[str, FieldValue]:
    row = {"description": _value(item.description, item.spans, sure)}
    if item.amount:
        row["amount"] = _value(format_amount(item.amount[1]), [item.amount[0]], sure)
    if item.price:
        row["unit_price"] = _value(format_amount(item.price[1]), [item.price[0]], sure)
    if item.quantity:
        row["quantity"] = _value(format_number(item.quantity), item.spans, sure)
    return row


def _value(value: str, spans: Sequence[Span], sure: float) -> FieldValue:
    evidence = tuple(Evidence(page=span.piece.page, box=span.box) for span in spans[:1])
    raw = " ".join(span.text.strip() for span in spans)
    return FieldValue(value=value, raw=raw, confidence=sure, evidence=evidence, signals={"score": sure})
