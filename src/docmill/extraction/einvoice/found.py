"""What an e-invoice says, still as it is written there, by the names of the shipped invoice schema."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Fields and rows by name; what is not said is left out."""

    syntax: str
    """`UBL` or `CII`."""
    fields: Mapping[str, str]
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)


def kept(**values: str | None) -> dict[str, str]:
    """Those that have something in them."""
    return {name: value for name, value in values.items() if value}


def address(*lines: str | None) -> str | None:
    """Parts of an address as one line."""
    return ", ".join(line for line in lines if line) or None


def joined(*parts: str | None) -> str | None:
    """Postcode and town, side by side."""
    return " ".join(part for part in parts if part) or None
