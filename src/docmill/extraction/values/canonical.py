"""From what is written to the canonical form of its type."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from docmill.extraction.values import amounts, currencies, dates, identifiers, texts
from docmill.extraction.values.dates import DateOrder
from docmill.extraction.values.kinds import FieldType

_DECIMAL = re.compile(r"-?\d{1,30}(?:\.\d{1,20})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_CLOCK = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?", re.ASCII)
_YES = frozenset({"true", "yes", "ja", "oui", "si", "sí", "sim", "tak", "ano", "x", "1"})
_NO = frozenset({"false", "no", "nein", "non", "não", "nie", "ne", "0"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """How the document writes numbers and dates, where it shows."""

    decimal: str | None = None
    order: DateOrder | None = None


def hints_of(lines: Iterable[str]) -> Hints:
    """What the lines of a document show beyond doubt."""
    kept = list(lines)
    return Hints(decimal=amounts.guess_decimal(kept), order=dates.guess_order(kept))


_NO_HINTS = Hints()


def canonical(kind: FieldType, raw: str, hints: Hints = _NO_HINTS, *, words: Iterable[str] = ()) -> str | None:
    """The value in the canonical form of its type; None if it has none. `words` are those of an enum."""
    text = texts.clean(raw)
    if not text:
        return None
    match kind:
        case FieldType.TEXT:
            return text
        case FieldType.AMOUNT:
            amount = amounts.parse_amount(text, decimal=hints.decimal)
            return None if amount is None else amounts.format_amount(amount)
        case FieldType.NUMBER | FieldType.PERCENT:
            return _number(text, hints)
        case FieldType.COUNT:
            found = _number(text, hints)
            return found if found is not None and "." not in found else None
        case FieldType.DATE:
            day = dates.parse_date(text, order=hints.order)
            return day.isoformat() if day else None
        case FieldType.TIME:
            times = dates.find_times(text)
            return times[0][2] if len(times) == 1 else None
        case FieldType.CURRENCY:
            return currencies.parse_currency(text)
        case FieldType.IBAN:
            return identifiers.iban(text)
        case FieldType.BIC:
            return identifiers.bic(text)
        case FieldType.IDENTIFIER | FieldType.TAX_ID:
            return text
        case FieldType.ENUM:
            folded = texts.fold(text)
            return next((word for word in words if texts.fold(word) == folded), None)
        case FieldType.BOOLEAN:
            folded = texts.fold(text)
            return "true" if folded in _YES else "false" if folded in _NO else None


def is_canonical(kind: FieldType, value: str) -> bool:
    """Whether a value already has the form in which its type is kept."""
    match kind:
        case FieldType.AMOUNT | FieldType.NUMBER | FieldType.PERCENT:
            return bool(_DECIMAL.fullmatch(value))
        case FieldType.COUNT:
            return bool(_DECIMAL.fullmatch(value)) and "." not in value
        case FieldType.DATE:
            return bool(_DAY.fullmatch(value)) and dates.is_day(value)
        case FieldType.TIME:
            return bool(_CLOCK.fullmatch(value))
        case FieldType.CURRENCY:
            return value in currencies.CODES
        case FieldType.IBAN:
            return identifiers.iban(value) == value
        case FieldType.BIC:
            return identifiers.bic(value) == value
        case FieldType.BOOLEAN:
            return value in ("true", "false")
        case FieldType.TEXT | FieldType.IDENTIFIER | FieldType.TAX_ID | FieldType.ENUM:
            return bool(value.strip())


def _number(text: str, hints: Hints) -> str | None:
    value: Decimal | None = amounts.parse_amount(text.rstrip(" %"), decimal=hints.decimal)
    return None if value is None else amounts.format_number(value)
