"""Everything on an invoice that is written as an amount or called one, with what its labels say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.paper import Paper, meanings
from docmill.extraction.local.invoices.spans import Number
from docmill.extraction.local.invoices.vocabulary import AMOUNT_LABELS
from docmill.extraction.local.invoices.wording import plain

FIELDS = ("subtotal", "tax", "total", "amount_due")
MEANING = {"subtotal": "subtotal", "tax": "tax", "total": "total", "amount_due": "due"}
CENT = Decimal("0.011")
_TIME = re.compile(
    r"\W*(?:calendar |business |working |kalender|werk)?(?:days?|tage?n?|jours?|giorni|dias?|dagen|dagar|weeks?|wochen|"
    r"semaines?|weken|months?|monate?n?|mois|mesi|meses|maanden)\b"
)
"""What follows a number that is no amount: `pay within 45 days`."""

_GROUP_BEFORE = re.compile(r"\d[ ./-]?$")
_GROUP_BEHIND = re.compile(r"[ ./-]?\d")
"""Digits at a number make it a group of a longer one: of an account, a sort code, a telephone."""

_BASE: Mapping[str, float] = {"base": 1.0}


@dataclass(frozen=True, kw_only=True)
class Money:
    """An amount with what its labels say."""

    number: Number
    means: Mapping[str, float]
    in_items: bool


def money_in(paper: Paper, items: Items) -> list[Money]:
    """Everything that is written as an amount, or called one."""
    found = []
    for number in paper.numbers:
        if number.percent or (not number.money and _TIME.match(plain(number.cell.text[number.end :]))):
            continue
        labels = paper.labels(number.cell, number.start, number.end)
        if not number.money and labels and labels[0].weight == 1.0:
            # What is called something in its own line is not an amount because of the line above.
            labels = labels[:1]
        means = _BASE if _is_base(number) else meanings(AMOUNT_LABELS, labels)
        named = max([means.get(meaning, 0.0) for meaning in MEANING.values()]) if means else 0.0
        called = named >= 0.7 and number.decimals in (0, 1) and abs(number.value) < 10**7
        if number.money or (called and not _counts(paper, number) and not _is_group(number)):
            inside = number.cell.row in items.rows and not (named >= 0.9 and number.cell.row not in _item_rows(items))
            found.append(Money(number=number, means=means, in_items=inside))
    return found


def _is_base(number: Number) -> bool:
    """Whether an amount stands in brackets behind a rate: what is taxed at it, and not the tax."""
    text = number.cell.text
    before = text[: number.start].rstrip(" (")
    return before.endswith("%") and "(" in text[len(before) : number.start + 1] and ")" in text[number.end - 1 :][:2]


def _counts(paper: Paper, number: Number) -> bool:
    """Whether an amount follows a number in its row: `Total  12 pieces  530.16`."""
    row = paper.sheet.rows[number.cell.row]
    return any(cell.left > number.cell.left and paper.is_money(cell) for cell in row)


def _is_group(number: Number) -> bool:
    """Whether a number is part of a longer one: `please pay to BE55 7370 1551 8077`."""
    text = number.cell.text
    return bool(_GROUP_BEFORE.search(text[: number.start]) or _GROUP_BEHIND.match(text[number.end :]))


def _item_rows(items: Items) -> set[int]:
    return {row for item in items.items for row in item.rows}


def money_text(value: Decimal) -> str:
    """In canonical form: at least two digits after the point."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent > -2:
        value = value.quantize(Decimal("0.01"))
    return str(value + 0)
