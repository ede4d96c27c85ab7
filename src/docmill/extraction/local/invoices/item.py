"""One line item."""

from dataclasses import dataclass, field

from docmill.extraction.local.invoices.sheet import Token
from docmill.extraction.local.invoices.spans import Number


@dataclass(kw_only=True, eq=False)
class Item:
    """One item while its rows are gathered."""

    rows: list[int]
    position: str | None = None
    values: dict[str, Number] = field(default_factory=dict)
    """By column: numbers."""
    words: list[tuple[int, tuple[Token, ...]]] = field(default_factory=list)
    """Of the description: page and tokens, line by line."""
    unit: tuple[int, tuple[Token, ...]] | None = None

    @property
    def amount(self) -> Number | None:
        return self.values.get("amount")
