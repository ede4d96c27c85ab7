"""The same paper in another file: it may be about to be paid, or counted, twice. Pure.

Files of the same bytes are duplicates and known before they are read; this is about a scan and its original, the copy
that came by post, a receipt that was photographed twice. A seller gives a number to one invoice. A till numbers as it
likes, but sells for the same sum in the same minute once. Names and numbers are compared by their letters and digits.

Only what is owed or was paid is compared: a statement lists the numbers of invoices, and is none of them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from docmill.extraction.result import Check, Extraction, FieldValue
from docmill.extraction.values.texts import loose

INVOICE, RECEIPT = "same_invoice", "same_receipt"
"""The checks."""
KNOWN_BY: Mapping[str, tuple[str, ...]] = {
    INVOICE: ("seller_name", "invoice_number"),
    RECEIPT: ("company", "date", "total", "time"),
}
"""What a paper is known by; a receipt may have no time."""
_MARKED: Mapping[str, str] = {INVOICE: "invoice_number", RECEIPT: "total"}
"""The field that a person looks at."""
_SAID: Mapping[str, str] = {
    INVOICE: "The same seller and number are those of {file} (document {id}): pay one of them.",
    RECEIPT: "The same company, date and total are those of {file} (document {id}): count one of them.",
}
_KIND = "check"
"""Beside the values, which of the checks they are for; without it, that of invoices."""


class Earlier(NamedTuple):
    """The document that was processed before."""

    document_id: str
    file_name: str


class Identity(NamedTuple):
    """What no two papers share, as hashes."""

    claims: tuple[str, ...]
    """What this one is known by from now on."""
    against: tuple[str, ...]
    """What another that is the same is known by."""


def named(extraction: Extraction) -> dict[str, str] | None:
    """What was found of that by which the paper is known; None for one by which nothing is owed or paid.

    A file of several papers is none of them: once it is split, its first page is not accused of being the whole.
    """
    # Here, because only children call this, and whoever imports the module has no need of vocabularies.
    from docmill.extraction.classification import PRECISE, DocumentType
    from docmill.extraction.likeness import KINDS as LEARNED
    from docmill.extraction.several_documents import CHECK as SEVERAL

    if extraction.schema in LEARNED and extraction.document_type in PRECISE:
        return None
    if any(check.name == SEVERAL and not check.passed for check in extraction.checks):
        return None
    kind = _kind(extraction)
    if kind == RECEIPT and extraction.document_type != DocumentType.RECEIPT:
        return None
    found = {name: extraction.fields[name].value for name in KNOWN_BY[kind] if name in extraction.fields}
    return {_KIND: kind, **found} if kind != INVOICE else found


def identity(values: Mapping[str, Any] | None, decided: Mapping[str, Any]) -> Identity | None:
    """By what was named and what people decided since; None where too little is known."""
    if values is None:
        return None
    kind = values.get(_KIND, INVOICE)
    known = {**values, **{name: value for name, value in decided.items() if name in KNOWN_BY[kind]}}
    if kind == RECEIPT:
        return _of_receipt(known)
    parts = [loose(str(known.get(name) or "")) for name in KNOWN_BY[INVOICE]]
    mine = (_hash(*parts),) if all(parts) else ()
    return Identity(claims=mine, against=mine) if mine else None


def _of_receipt(known: Mapping[str, Any]) -> Identity | None:
    """Two with a time are the same if it is one time; one without is the same as any of that day and sum."""
    company, day, time = loose(str(known.get("company") or "")), known.get("date"), known.get("time")
    try:
        total = Decimal(str(known.get("total") or 0)).normalize()
    except InvalidOperation:
        return None
    if not company or not day or not total:
        return None
    # Of the time the minute: the seconds are the first that a copy loses.
    at = str(time)[:5] if time else "none"
    either, untimed, timed = (_hash(RECEIPT, company, str(day), str(total), when) for when in ("any", "none", at))
    if not time:
        return Identity(claims=(untimed, either), against=(either,))
    return Identity(claims=(timed, either), against=(timed, untimed))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _kind(extraction: Extraction) -> str:
    return RECEIPT if extraction.schema == "receipt" else INVOICE


def compared(extraction: Extraction, earlier: Earlier | None) -> Extraction:
    """The extraction with the check made anew; it is told only where it fails, and a person looks at one field."""
    kind = _kind(extraction)
    if earlier is None and not any(check.name == kind for check in extraction.checks):
        return extraction
    checks = tuple(check for check in extraction.checks if check.name != kind)
    fields = {name: _without(found, kind) for name, found in extraction.fields.items()}
    if earlier is not None:
        marked = _MARKED[kind]
        message = _SAID[kind].format(file=earlier.file_name, id=earlier.document_id)
        checks += (Check(name=kind, passed=False, message=message, fields=(marked,)),)
        if (found := fields.get(marked)) is not None:
            fields[marked] = found.judged(found.passed, (*found.failed, kind))
    return replace(extraction, fields=fields, checks=checks)


def with_values(extraction: Extraction, values: Mapping[str, Any]) -> Extraction:
    """Without the check where these values make it another paper: of that, nobody has asked yet which came before.

    Written otherwise, with a space or in small letters, it is the same paper, and what the check says of it stands.
    """
    kind = _kind(extraction)
    read = {name: found.value for name, found in extraction.fields.items() if name in KNOWN_BY[kind]}
    known = {_KIND: kind, **read}
    return extraction if identity(known, {}) == identity(known, values) else compared(extraction, None)


def _without(found: FieldValue, kind: str) -> FieldValue:
    if kind not in found.failed:
        return found
    return found.judged(found.passed, tuple(name for name in found.failed if name != kind))
