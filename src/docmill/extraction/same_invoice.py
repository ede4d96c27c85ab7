"""The same invoice in another file: a seller gives a number once, so it may be about to be paid twice. Pure.

Files of the same bytes are duplicates and known before they are read; this is about a scan and its original, or the
copy that came by post. Names and numbers are compared by their letters and digits.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from docmill.extraction.result import Check, Extraction, FieldValue
from docmill.extraction.values.texts import loose

CHECK = "same_invoice"
SELLER, NUMBER = "seller_name", "invoice_number"


class Earlier(NamedTuple):
    """The document that was processed before."""

    document_id: str
    file_name: str


def named(fields: Mapping[str, FieldValue]) -> dict[str, str]:
    """What was found of seller and number."""
    return {name: fields[name].value for name in (SELLER, NUMBER) if name in fields}


def identity(values: Mapping[str, Any]) -> str | None:
    """What no two invoices share, as a hash; None where seller or number are not known."""
    parts = [loose(str(values.get(name) or "")) for name in (SELLER, NUMBER)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() if all(parts) else None


def compared(extraction: Extraction, earlier: Earlier | None) -> Extraction:
    """The extraction with the check made anew; it is told only where it fails, and a person looks at the number."""
    if earlier is None and not any(check.name == CHECK for check in extraction.checks):
        return extraction
    checks = tuple(check for check in extraction.checks if check.name != CHECK)
    fields = {name: _without(found) for name, found in extraction.fields.items()}
    if earlier is not None:
        message = (
            f"The same seller and number are those of {earlier.file_name} (document {earlier.document_id}): "
            "pay one of them."
        )
        checks += (Check(name=CHECK, passed=False, message=message, fields=(NUMBER,)),)
        found = fields[NUMBER]
        fields[NUMBER] = found.judged(found.passed, (*found.failed, CHECK))
    return replace(extraction, fields=fields, checks=checks)


def _without(found: FieldValue) -> FieldValue:
    if CHECK not in found.failed:
        return found
    return found.judged(found.passed, tuple(name for name in found.failed if name != CHECK))
