"""Candidates by type: everything on the pages that may be a date, an amount, an IBAN …, with its place."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from docmill.documents.reading import Box
from docmill.extraction.pages import PageLine, Pages, Place
from docmill.extraction.schema import Field
from docmill.extraction.schema_text import compiled, encodable
from docmill.extraction.values import canonical
from docmill.extraction.values.amounts import AmountFound, format_amount, format_number
from docmill.extraction.values.currencies import find_currencies
from docmill.extraction.values.dates import DateFound, find_times
from docmill.extraction.values.identifiers import (
    Found,
    find_addresses,
    find_bics,
    find_ibans,
    find_phones,
    find_tax_ids,
    find_vat_ids,
    iban_end,
)
from docmill.extraction.values.kinds import FieldType
from docmill.extraction.values.texts import bare, clean

_CODE = re.compile(r"(?<![\w/.#-])#?(?=[\w/.-]*\d)[A-Za-z0-9][\w/.#-]*(?:[ ]?[/-][ ]?[\w/.-]*\d[\w/.-]*)*", re.ASCII)
_PERCENT = re.compile(r"(?<![\d.,])(\d{1,3}(?:[.,]\d{1,3})?)\s?%")
_IBAN_LIKE = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{2,4}){3,8}(?![A-Za-z0-9])")
_WORDY = frozenset({FieldType.TEXT, FieldType.CURRENCY, FieldType.BIC, FieldType.ENUM, FieldType.BOOLEAN})
"""Types whose values may have no digit."""
PAGE_SPOTS = 1000
"""Candidates of one type on one page; more stand on none that a person reads."""
_PATTERN_HITS = 200
PAYMENTS = {
    "cash": "cash bar barzahlung especes contanti efectivo contant gotowka hotove kontant tunai cash-sale",
    "card": "card visa mastercard maestro amex credit debit kreditkarte karte girocard ec-karte carte cb carta tarjeta "
    "pin pinpas karta kort bankcard",
    "transfer": "transfer bacs uberweisung virement bonifico transferencia overschrijving przelew duitnow fpx",
    "voucher": "voucher gutschein coupon bon-cadeau buono vale giftcard",
    "wallet": "wallet paypal paywave applepay googlepay touchngo tng grabpay boost alipay wechat swish vipps mobilepay "
    "twint bizum",
}
"""Words printed for the ways to pay that the receipt schema knows."""
_PAYMENT_WORDS = {word: kind for kind, words in PAYMENTS.items() for word in words.split()}


@dataclass(frozen=True, slots=True)
class Spot:
    """A value that may be meant."""

    line: int
    """Index into `Pages.lines`."""
    start: int
    end: int
    value: str
    """Canonical."""
    place: Place
    kind: FieldType = FieldType.TEXT
    weight: float = 1.0
    """How much its shape alone says that it is of this type: 1 for a right IBAN, little for a bare whole number."""

    @property
    def box(self) -> Box:
        return self.place.box


def spots(field: Field, pages: Pages) -> tuple[Spot, ...]:
    """Every candidate of a field; none for free text, which has no shape of its own.

    Fields of one type share their candidates, so these are looked for once per document.
    """
    key = (field.type, field.pattern, field.enum)
    kept = pages.kept.get(key)
    if kept is None:
        kept = pages.kept[key] = tuple(_searched(field, pages))
    return kept


def _searched(field: Field, pages: Pages) -> Iterator[Spot]:
    digits = field.type not in _WORDY and field.pattern is None
    page, count = None, 0
    for index, line in enumerate(pages.lines):
        if line.page != page:
            page, count = line.page, 0
        if count >= PAGE_SPOTS:
            pages.note(f"Page {page} has more values of one kind than are looked at: {PAGE_SPOTS:,} of them.")
        elif not digits or line.has_digit:
            for start, end, value, weight in _in_line(field, index, line, pages):
                yield Spot(index, start, end, value, line.place(start, end), field.type, weight)
                count += 1


def _in_line(field: Field, index: int, line: PageLine, pages: Pages) -> Iterator[tuple[int, int, str, float]]:
    if field.pattern is not None and field.type in (FieldType.TEXT, FieldType.IDENTIFIER, FieldType.TAX_ID):
        yield from _matching(field.pattern, line.text)
        return
    text = line.text
    match field.type:
        case FieldType.AMOUNT:
            for one in pages.numbers_in(index):
                yield (
                    one.start,
                    one.end,
                    format_amount(one.value),
                    1.0 if one.digits == 2 else 0.75 if one.currency else 0.4,
                )
        case FieldType.NUMBER | FieldType.COUNT:
            for one in pages.numbers_in(index):
                if field.type is FieldType.NUMBER or not one.digits:
                    yield one.start, one.end, format_number(one.value), 0.8
        case FieldType.PERCENT:
            for match in _PERCENT.finditer(text):
                if value := canonical(FieldType.PERCENT, match[1]):
                    yield *match.span(), value, 1.0
        case FieldType.DATE:
            for day in pages.days_in(index):
                yield day.start, day.end, day.among(pages.hints.order).isoformat(), 1.0
        case FieldType.TIME:
            for start, end, clock in find_times(text):
                yield start, end, clock, 1.0
        case FieldType.CURRENCY:
            for money in find_currencies(text):
                yield money.start, money.end, money.code, 0.6 if money.weak else 1.0
        case FieldType.IBAN:
            right = find_ibans(text)
            for number in right:
                yield number.start, number.end, number.value, 1.0
            # Printed with a slip: worth showing beside a label, and its check will say what is wrong.
            for match in () if right else _IBAN_LIKE.finditer(text):
                start, end = match.start(), iban_end(text, *match.span())
                yield start, end, text[start:end].replace(" ", ""), 0.45
        case FieldType.BIC:
            for number in find_bics(text):
                yield number.start, number.end, number.value, 0.6
        case FieldType.TAX_ID:
            sure = {number.start for number in find_vat_ids(text)}
            for number in _outside(find_tax_ids(text), find_phones(text)):
                yield number.start, number.end, number.value, 1.0 if number.start in sure else 0.5
        case FieldType.IDENTIFIER:
            yield from _codes(text, pages.days_in(index), pages.cells_in(index))
        case FieldType.ENUM:
            yield from _listed(field, line.bare)
        case FieldType.BOOLEAN:
            for word in re.finditer(r"[^\W_]+", text):
                if value := canonical(FieldType.BOOLEAN, word[0]):
                    yield *word.span(), value, 0.6
        case FieldType.TEXT:
            return
        case _:
            assert_never(field.type)


def _matching(pattern: str, text: str) -> Iterator[tuple[int, int, str, float]]:
    """Whole words, or runs of them, that match a user's pattern."""
    search = compiled(pattern)
    for count, match in enumerate(search.finditer(encodable(text))):
        start, end = match.span()
        if count >= _PATTERN_HITS:
            return
        if start < end and not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum():
            yield start, end, clean(match.group(0)), 1.0


def _outside(found: Iterable[Found], taken: list[tuple[int, int]]) -> Iterator[Found]:
    for one in found:
        if not any(one.start < last and first < one.end for first, last in taken):
            yield one


def _codes(text: str, dates: list[DateFound], numbers: list[AmountFound]) -> Iterator[tuple[int, int, str, float]]:
    """Words with a digit in them that are no date, time, telephone number, link, rate or sum of money."""
    matches = list(_CODE.finditer(text))
    if not matches:
        return
    taken = [*find_phones(text), *find_addresses(text)]
    taken += [(found.start, found.end) for found in find_ibans(text)]
    days = [(found.start, found.end) for found in dates]
    clocks = [(start, end) for start, end, _ in find_times(text)]
    sums = [(found.start, found.end) for found in numbers if found.digits == 2 or found.currency]
    for match in matches:
        start, end = match.span()
        value = match[0].lstrip("#").rstrip(".-/")
        start = end - len(match[0].lstrip("#"))
        end = start + len(value)
        if not value or any(start < last and first < end for first, last in taken):
            continue
        if any(first <= start and end <= last for first, last in (*days, *clocks)):
            # A number may be made of the date, but a date is rarely a number.
            yield start, end, value, 0.15
        elif any(first <= start and end <= last for first, last in sums) or text[end : end + 2].strip()[:1] == "%":
            yield start, end, value, 0.1
        else:
            letters = any(sign.isalpha() for sign in value)
            yield start, end, value, 1.0 if len(value) >= 4 or letters else 0.6


def _listed(field: Field, folded: str) -> Iterator[tuple[int, int, str, float]]:
    known = {bare(word): word for word in field.enum}
    for word, value in known.items():
        for match in re.finditer(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", folded):
            yield *match.span(), value, 0.8
    if "cash" in known and "card" in known:
        for match in re.finditer(r"[^\W_][\w-]*", folded):
            kind = _PAYMENT_WORDS.get(match[0])
            if kind in field.enum and match[0] not in known:
                yield *match.span(), str(kind), 0.8
