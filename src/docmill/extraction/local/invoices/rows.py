"""Line items and tax lines as rows of a result."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from docmill.extraction.local.invoices.amounts import Sums
from docmill.extraction.local.invoices.item import Item
from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.money import CENT, money_text
from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.sheet import Token, evidence_of
from docmill.extraction.local.invoices.spans import Number
from docmill.extraction.local.invoices.tables import MOST_NUMBERS
from docmill.extraction.local.invoices.wording import plain
from docmill.extraction.result import FieldValue
from docmill.extraction.values.amounts import format_number

Row = Mapping[str, FieldValue]


def rows_of(paper: Paper, items: Items, sums: Sums) -> dict[str, Sequence[Row]]:
    """Both tables, those that have rows."""
    found: dict[str, Sequence[Row]] = {}
    if items.items:
        found["line_items"] = [_item(item, items) for item in items.items]
    if taxes := _tax_lines(paper, items, sums):
        found["tax_lines"] = taxes
    return found


def _item(item: Item, items: Items) -> Row:
    values = item.values
    signals = {"arithmetic": float(items.adds_up), "headed": float(items.headed), "product": float(_multiplies(item))}
    row: dict[str, FieldValue] = {}
    if item.words:
        text = " ".join(token.text for _, tokens in item.words for token in tokens)
        row["description"] = _text(text, item.words, signals)
    for name in ("quantity", "unit_price", "tax_rate", "amount"):
        if name in values:
            row[name] = _number(values[name], name, signals)
    if item.unit:
        row["unit"] = _text(" ".join(token.text for token in item.unit[1]), [item.unit], signals)
    return row


def _multiplies(item: Item) -> bool:
    quantity, price, amount = (item.values.get(name) for name in ("quantity", "unit_price", "amount"))
    return bool(quantity and price and amount and abs(abs(quantity.value * price.value) - abs(amount.value)) <= CENT)


def _text(text: str, lines: Iterable[tuple[int, tuple[Token, ...]]], signals: Mapping[str, float]) -> FieldValue:
    evidence = tuple(place for page, tokens in lines for place in evidence_of(tokens, page))
    return FieldValue(value=text, raw=text, confidence=_chance(signals), evidence=evidence, signals=dict(signals))


def _number(number: Number, name: str, signals: Mapping[str, float]) -> FieldValue:
    value = money_text(number.value) if name in ("amount", "unit_price", "base") else format_number(number.value)
    return FieldValue(
        value=value,
        raw=number.text,
        confidence=_chance(signals),
        evidence=evidence_of(number.tokens, number.cell.page),
        signals=dict(signals),
    )


def _chance(signals: Mapping[str, float]) -> float:
    return 0.6 + 0.2 * signals.get("arithmetic", 0.0) + 0.15 * signals.get("product", 0.0)


def _tax_lines(paper: Paper, items: Items, sums: Sums) -> list[Row]:
    """A row per rate: rate, what was taxed, and the tax, which must be the product of the two."""
    found: list[Row] = []
    seen: set[tuple[Decimal, Decimal]] = set()
    item_rows = {row for item in items.items for row in item.rows}
    subtotal = sums.chosen.get("subtotal")
    for row in paper.sheet.rows:
        if row[0].row in item_rows:
            continue
        numbers = [number for cell in row for number in paper.numbers_of.get(id(cell), ())][-MOST_NUMBERS:]
        rates = [number for number in numbers if number.percent and 0 <= number.value <= 50]
        if not rates and any("steuer" in plain(cell.text) or "vat" in plain(cell.text) for cell in row):
            rates = [
                number for number in numbers if not number.money and number.decimals <= 1 and 0 < number.value <= 30
            ]
        money = [number for number in numbers if number.money]
        line = _tax_line(rates, money, Decimal(subtotal.value) if subtotal else None)
        if line is None:
            continue
        rate, base, tax = line
        if (rate.value, tax.value) in seen:
            continue
        seen.add((rate.value, tax.value))
        signals = {"arithmetic": float(base is not None)}
        made = {"rate": _number(rate, "rate", signals), "amount": _number(tax, "amount", signals)}
        if base is not None:
            made["base"] = _number(base, "base", signals)
        found.append(made)
    return found


def _tax_line(
    rates: Sequence[Number], money: Sequence[Number], subtotal: Decimal | None
) -> tuple[Number, Number | None, Number] | None:
    for rate in rates:
        for base in money:
            for tax in money:
                if base is not tax and rate.value and abs(base.value * rate.value / 100 - tax.value) <= Decimal("0.02"):
                    return rate, base, tax
        if subtotal is not None and rate.value:
            for tax in money:
                if abs(subtotal * rate.value / 100 - tax.value) <= Decimal("0.02"):
                    return rate, None, tax
    return None
