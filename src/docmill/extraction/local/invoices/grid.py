"""The rows under a heading, and which of their numbers stands in which column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations

from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.sheet import Cell
from docmill.extraction.local.invoices.spans import Number
from docmill.extraction.local.invoices.tables import MOST_NUMBERS, Table, leads

CENT = Decimal("0.011")
_LONGEST_PRICE = 6
"""Digits without cents: what has more is a number of an article."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table, and what stands in its rows: worked out once, however many ways there are to read them."""

    paper: Paper
    table: Table
    _known: dict[int, Mapping[str, Number]] = field(default_factory=dict, init=False)

    def values(self, number: int) -> Mapping[str, Number]:
        """The numbers of a row by the column they stand in."""
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = _values(self.paper, self.paper.sheet.rows[number], self.table)
        return known

    def position(self, number: int) -> str | None:
        """What stands in the position column of a row, if it is a position."""
        return leads(self.paper, self.paper.sheet.rows[number], self.table)


def _values(paper: Paper, row: Sequence[Cell], table: Table) -> dict[str, Number]:
    """The numbers of a row by the column they stand in."""
    found: dict[str, Number] = {}
    numbers = [number for cell in row for number in paper.numbers_of.get(id(cell), ()) if _apart(number)]
    kinds = table.kinds
    for number in numbers:
        left, right = number.left, number.right
        if number.percent:
            found.setdefault("tax_rate", number)
            continue
        column = table.column_of(left, right)
        kind = column.kind if column else "other"
        if kind in ("quantity", "unit_price", "amount", "tax_rate", "tax_amount", "discount", "unit"):
            if kind == "unit":
                kind = "quantity"
            if kind == "unit_price" and not number.money and not number.decimals and len(number.text) > _LONGEST_PRICE:
                continue
            if kind == "amount" and not number.money and number.cell.worded:
                # `Page 2` at the right edge.
                continue
            if kind == "tax_rate" and number.money and number.value > 40:
                kind = "amount"
            if kind == "amount" and not number.money and (known := found.get(kind)) and known.cell is number.cell:
                # `74,40 22`: the rate stands close behind the amount.
                kind = "tax_rate"
            if kind not in found or kind == "amount":
                found[kind] = number
    money = [number for number in numbers if number.money]
    if "amount" not in kinds and money:
        found["amount"] = money[-1]
    if "amount" not in found and money and "amount" in kinds:
        column = next(column for column in table.columns if column.kind == "amount")
        if money[-1].left > column.left - 0.05:
            found["amount"] = money[-1]
    _by_product(found, numbers)
    return found


def _by_product(found: dict[str, Number], numbers: Sequence[Number]) -> None:
    """Quantity and price that were put into the wrong column show by their product."""
    amount = found.get("amount")
    if amount is None or amount.value == 0:
        return
    quantity, price = found.get("quantity"), found.get("unit_price")
    if quantity and price:
        return
    others = [number for number in numbers[-MOST_NUMBERS:] if number is not amount and not number.percent]
    for one, other in combinations(others, 2):
        if abs(abs(one.value * other.value) - abs(amount.value)) <= CENT:
            first, second = (one, other) if other.decimals >= one.decimals else (other, one)
            found["quantity"], found["unit_price"] = first, second
            return


def _apart(number: Number) -> bool:
    """Whether a number stands on its own in its cell, or at its end, and not within words."""
    text = number.cell.text
    if number.end - number.start == len(text):
        return True
    rest = text[: number.start] + text[number.end :]
    letters = sum(map(str.isalpha, rest))
    return letters <= 6 or (number.money and number.end >= len(text) - 1 and letters <= 12)
