"""What an e-invoice says, still as it is written there, by the names of the shipped invoice schema."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Fields and rows by name; what is not said is left out."""

    syntax: str
    """`UBL` or `CII`."""
    fields: Mapping[str, str]
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    made_of_more: frozenset[str] = frozenset()
    """Names of fields whose value is made of something that no field holds."""


def kept(**values: str | None) -> dict[str, str]:
    """Those that have something in them."""
    return {name: value for name, value in values.items() if value}


def worth(text: str | None) -> Decimal | None:
    """The amount that is written; None if it is none."""
    try:
        value = Decimal(text) if text else None
    except InvalidOperation:
        return None
    if value is None or not value.is_finite() or abs(value.adjusted()) > _DIGITS:
        return None
    return value


_DIGITS = 30
"""Before or behind the point, at most: `1e9999999` is no amount, and written out it would fill the memory."""


def summed(amounts: Sequence[str | None]) -> str | None:
    """Their sum; None if there are none, or one of them is no amount."""
    values = [value for amount in amounts if (value := worth(amount)) is not None]
    return f"{sum(values):f}" if values and len(values) == len(amounts) else None


def net(lines: str | None, allowances: str | None, charges: str | None) -> str | None:
    """The total without tax where it is not stated: that of the lines, less allowances, with charges."""
    total, less, more = worth(lines), worth(allowances or "0"), worth(charges or "0")
    return None if total is None or less is None or more is None else f"{total - less + more:f}"


def address(*lines: str | None) -> str | None:
    """Parts of an address as one line."""
    return ", ".join(line for line in lines if line) or None


def joined(*parts: str | None) -> str | None:
    """Postcode and town, side by side."""
    return " ".join(part for part in parts if part) or None
