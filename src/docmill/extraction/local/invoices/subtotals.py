"""Rows of a table that are no items: what sums up those above, and what only changes that sum."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from docmill.extraction.local.invoices.grid import CENT
from docmill.extraction.local.invoices.item import Item
from docmill.extraction.local.invoices.vocabulary import AMOUNT_LABELS
from docmill.extraction.local.invoices.wording import plain

_BY_CHANCE = 3
"""Amounts whose sum may be the next one without anything being meant by it."""


def without_sums(items: Sequence[Item]) -> list[Item]:
    """Without rows that only sum up those above: of a part, of all so far, of all; nor what only changes that sum."""
    counted = sum(bool(item.values.keys() & {"quantity", "unit_price"}) for item in items)
    kept: list[Item] = []
    whole = part = Decimal(0)
    since = 0
    closed = False
    for item in items:
        value = item.amount.value if item.amount else Decimal(0)
        bare = item.position is None and not (item.words and item.values.keys() & {"quantity", "unit_price"})
        run = len(kept) if abs(value - whole) <= CENT else since if abs(value - part) <= CENT else 0
        sure = 2 * counted > len(kept) or run > _BY_CHANCE or not item.words or _sums_up(item)
        if bare and run > 1 and sure:
            part, since = Decimal(0), 0
            closed = run == len(kept) > _BY_CHANCE
            continue
        if bare and closed and item.words and adjusts(replace(item, words=item.words[-1:])):
            continue
        if bare and kept and not since and _paid(item):
            # `Less retainer` beneath the sum of all.
            continue
        closed = False
        kept.append(item)
        whole, part, since = whole + value, part + value, since + 1
    return kept


def _sums_up(item: Item) -> bool:
    """By all its words, or by the first: the last row of a table has the lines beneath it among its words."""
    said = (AMOUNT_LABELS(_described(item)), AMOUNT_LABELS(_described(replace(item, words=item.words[:1]))))
    return max([meaning.get(kind, 0.0) for meaning in said for kind in ("subtotal", "total", "carried")]) >= 0.5


def _described(item: Item) -> str:
    return plain(" ".join(token.text for _, tokens in item.words for token in tokens)[:60])


def adjusts(item: Item) -> bool:
    """Whether a row is a discount or a charge on the whole and not a thing that was sold."""
    meaning = AMOUNT_LABELS(_described(item))
    return max(meaning.get("discount", 0.0), meaning.get("shipping", 0.0)) >= 0.9


def _paid(item: Item) -> bool:
    """Whether a row says what was paid of the sum above it."""
    return AMOUNT_LABELS(_described(replace(item, words=item.words[:1]))).get("paid", 0.0) >= 0.9
