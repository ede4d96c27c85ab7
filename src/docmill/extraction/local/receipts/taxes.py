"""Tax, rounding and currency of a receipt: what labels say, held against the total and the summary of taxes.

A till often prints `Total incl. GST` and, below, a summary with a column of amounts and one of taxes. What a label
alone would take for the tax is then the total, or what is taxed; no value is better than such a one.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from docmill.extraction.local.layout import Layout, Span
from docmill.extraction.local.receipts.amounts import Amounts
from docmill.extraction.local.receipts.country import Country, country_of
from docmill.extraction.result import Evidence, FieldValue
from docmill.extraction.values.amounts import format_amount

_TAX = re.compile(r"\b(?:gst|[gs]st\d?|tax|vat|cukai|mwst|ust|tva|iva|btw|moms|mva)\b", re.IGNORECASE)
_COLUMN = re.compile(r"\b(?:summary|analysis|a[mr]+[no1]?ount|am[t1]|net+|sales|goods|base|taxable)\b", re.IGNORECASE)
_OF_ITEMS = re.compile(r"\b(?:desc\w*|qty|items?|u?\W?price)\b", re.IGNORECASE)
_OTHERS = frozenset({"incl", "excl", "sub", "round", "cash", "change", "disc", "grand", "summary", "qty", "service"})
"""Labels of rows whose amount is not a tax, though they name it."""
_SHARE = 4
"""A tax is at most this part of the total: no country takes a third of what a thing costs."""
_NEAR = Decimal("0.05")
_MISREAD = Decimal("0.05")
"""Share of the total by which a summary may miss it and still be meant to make it."""
_MALAYSIAN = re.compile(
    r"\bS[DO0]N\W{0,3}BH[DO]\b|\(M\)\W{0,3}BHD\b|\bGST\b[^\n\d]{0,20}\d{12}\b"
    r"|\b(?:KUALA LUMPUR|SELANGOR|JOHOR|MALAYSIA)\b",
    re.IGNORECASE,
)


def settle(
    fields: Mapping[str, FieldValue], layout: Layout, amounts: Amounts, total: Decimal | None
) -> dict[str, FieldValue]:
    """The fields with tax, rounding and currency put right; those that cannot be right are left out."""
    settled = dict(fields)
    for name, found in (
        ("tax", _tax(fields.get("tax"), amounts, total)),
        ("rounding", _rounding(fields.get("rounding"), amounts)),
        ("tip", _tip(fields.get("tip"), amounts)),
        ("currency", _currency(fields.get("currency"), layout)),
    ):
        settled.pop(name, None)
        if found is not None:
            settled[name] = found
    return settled


def _tax(labelled: FieldValue | None, amounts: Amounts, total: Decimal | None) -> FieldValue | None:
    """By the summary if it makes the total, by a row that names the tax, by the summary alone, by the label."""
    base, tax, spans = _summary(amounts)
    off = Decimal(0) if total is None else abs(base + tax - total)
    summed = _value(tax, spans, 0.9) if spans and _plausible(tax, total) else None
    if summed is not None and off <= _NEAR:
        return summed
    rows = [(span, value) for span, value in amounts.found if _names_tax(amounts, span, value)]
    rows = [(span, value) for span, value in rows if value >= 0 and _plausible(value, total)]
    if not rows and total is not None:
        rows = _behind_net(amounts, total)
    if rows:
        nets = amounts.labelled("excl", "sub") if total is not None else set()
        span, value = max(
            rows, key=lambda row: (any(abs(net + row[1] - (total or 0)) <= _NEAR for net in nets), row[1])
        )
        return _value(value, [span], 0.8)
    if spans and total is not None and off <= _MISREAD * abs(total):
        return None  # The summary is that of the total, and one of its amounts was misread.
    if summed is not None:
        return summed
    return labelled if labelled is not None and _plausible(Decimal(labelled.value), total) else None


def _behind_net(amounts: Amounts, total: Decimal) -> list[tuple[Span, Decimal]]:
    """What stands right behind the total without tax and makes the total with it, its label unread."""
    nets = [
        (row, amounts.last[row]) for row, said in enumerate(amounts.labels) if "excl" in said and row in amounts.last
    ]
    return [
        (span, value)
        for span, value in amounts.found
        for row, net in nets
        if 0 < span.piece.row - row <= 2
        and amounts.labels[span.piece.row].keys() <= {"tax", "rm"}
        and value > 0
        and abs(net + value - total) <= _NEAR
        and _plausible(value, total)
    ]


def _plausible(tax: Decimal, total: Decimal | None) -> bool:
    return total is None or abs(tax) * _SHARE <= abs(total)


def _names_tax(amounts: Amounts, span: Span, value: Decimal) -> bool:
    """Whether the amount is the last of a row that calls it a tax and nothing else."""
    row = span.piece.row
    before = amounts.layout.before(span)
    named = bool(_TAX.search(before)) and amounts.labels[row].keys().isdisjoint(_OTHERS)
    return named and amounts.last.get(row) == value


def _summary(amounts: Amounts) -> tuple[Decimal, Decimal, list[Span]]:
    """What is taxed and the tax by the summary of taxes: its row of totals, else the sum of its rows."""
    in_row: dict[int, list[tuple[Span, Decimal]]] = {}
    for span, value in amounts.found:
        in_row.setdefault(span.piece.row, []).append((span, value))
    base, tax, spans, broken = Decimal(0), Decimal(0), list[Span](), False
    heading = False
    for row in range(len(amounts.layout.rows)):
        text = amounts.layout.row_text(row)
        found = in_row.get(row, [])
        if not found and _TAX.search(text) and _COLUMN.search(text) and not _OF_ITEMS.search(text):
            if not spans:
                heading = True
            continue
        pair = _pair(found) if heading else None
        if pair is None:
            broken = broken or (heading and len(found) > 1)
            heading = heading and not spans and len(found) != 1
            continue
        taxed, (span, value) = pair
        repeated = bool(spans) and (taxed, value) == (base, tax) and not re.search(r"[A-Za-z]{2}", text)
        if "total" in amounts.labels[row] or repeated:
            return taxed, value, [span]
        base, tax = base + taxed, tax + value
        spans = [span] if value and tax == value else [*spans, span] if value or not spans else spans
    return (base, tax, []) if broken else (base, tax, spans)


def _pair(found: Sequence[tuple[Span, Decimal]]) -> tuple[Decimal, tuple[Span, Decimal]] | None:
    """Of one row of the summary: what is taxed, and the tax, which is the smaller; a sum of both may stand behind."""
    values = [value for _, value in found]
    if len(values) > 2 and values[-3] + values[-2] == values[-1] and 0 <= values[-2] * _SHARE <= values[-3]:
        return values[-3], found[-2]
    if len(values) < 2 or min(values[-2:]) < 0:
        return None
    tax, taxed = (-1, -2) if values[-1] <= values[-2] else (-2, -1)
    return (values[taxed], found[tax]) if values[tax] * _SHARE <= values[taxed] else None


def _rounding(labelled: FieldValue | None, amounts: Amounts) -> FieldValue | None:
    """Rounding is a matter of cents: an amount that is more belongs to a row above or below."""
    if labelled is not None and abs(Decimal(labelled.value)) < 1:
        return labelled
    for span, value in amounts.found:
        said = amounts.labels[span.piece.row].keys()
        if "round" in said and said.isdisjoint({"total", "incl", "disc"}) and abs(value) < 1:
            return _value(value, [span], 0.8)
    return None


def _tip(labelled: FieldValue | None, amounts: Amounts) -> FieldValue | None:
    """As it is labelled, if that is a row of its own: `Tip Top Bread` is none."""
    given = {amounts.last.get(row) for row in amounts.extras}
    return labelled if labelled is not None and Decimal(labelled.value) in given else None


def _currency(labelled: FieldValue | None, layout: Layout) -> FieldValue | None:
    """As it is named; by the country where it is not, or where a sign or a legal form was taken for one."""
    if labelled is not None and not (labelled.value == "BHD" or labelled.raw.strip() == "$"):
        return labelled
    text = "\n".join(layout.row_text(row) for row in range(len(layout.rows)))
    code = "MYR" if _MALAYSIAN.search(text) else "USD" if layout.once(country_of) is Country.AMERICA else None
    if code is None or (labelled is not None and labelled.value == code):
        return labelled
    return FieldValue(value=code, raw="", confidence=0.5, signals={"score": 0.5, "guessed": 1.0})


def _value(value: Decimal, spans: Sequence[Span], sure: float) -> FieldValue:
    return FieldValue(
        value=format_amount(value),
        raw=" + ".join(span.text.strip() for span in spans),
        confidence=sure,
        evidence=tuple(Evidence(page=span.piece.page, box=span.box) for span in spans),
        signals={"score": sure, "label": sure},
    )
