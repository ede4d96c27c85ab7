"""The types a field can have."""

from enum import StrEnum


class FieldType(StrEnum):
    """What a value is, which decides how it is found, compared and kept."""

    TEXT = "text"
    """Kept as `Musterhaus 1, 12345 Berlin`: trimmed, single spaces."""
    AMOUNT = "amount"
    """Money: `-1234.50`."""
    NUMBER = "number"
    """Any decimal number: `2.5`."""
    COUNT = "count"
    """A whole number: `3`."""
    PERCENT = "percent"
    """A rate in percent: `19` for 19 %."""
    DATE = "date"
    """`2026-11-16`."""
    TIME = "time"
    """`14:05:00`."""
    CURRENCY = "currency"
    """ISO 4217: `EUR`."""
    IDENTIFIER = "identifier"
    """A number or code somebody gave, such as `RE-2026/0815`; it holds a digit and no sentence."""
    TAX_ID = "tax_id"
    """A VAT or tax registration number."""
    IBAN = "iban"
    """Without spaces, with a right checksum."""
    BIC = "bic"
    ENUM = "enum"
    """One of the words that the schema lists."""
    BOOLEAN = "boolean"
    """`true` or `false`."""


DECIMALS = frozenset({FieldType.AMOUNT, FieldType.NUMBER, FieldType.COUNT, FieldType.PERCENT})
"""Types whose canonical form is a decimal number."""
