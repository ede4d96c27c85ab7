"""From the XML of an e-invoice to an extraction: canonical values, checked by the schema."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal, InvalidOperation
from types import MappingProxyType

from docmill.extraction import checks
from docmill.extraction.einvoice import cii, ubl
from docmill.extraction.einvoice.found import Found
from docmill.extraction.einvoice.tree import EInvoiceInvalid, name_of, parsed
from docmill.extraction.likeness import called, column_called, standard
from docmill.extraction.result import Extraction, FieldValue, Reader
from docmill.extraction.schema import Field, FieldSchema
from docmill.extraction.values import FieldType, canonical
from docmill.extraction.values.amounts import format_amount, format_number

CREDIT_NOTES = frozenset({"81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "532"})
"""Type codes (UNTDID 1001) of documents by which the seller gives money back."""
_ISO = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})(?:T.*|Z|[+-]\d{2}:?\d{2}|\d{4,6})?")
_DECIMAL = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)")
_SHAPES = {
    FieldType.IBAN: re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}"),
    FieldType.BIC: re.compile(r"[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?"),
}
NOTHING: Mapping[str, float] = MappingProxyType({})
_DOUBTED = 0.5
"""Confidence in a value that broke a rule: the XML is read exactly, but says something wrong."""


def read_einvoice(xml: str, schema: FieldSchema, *, tolerance: Decimal | None = None) -> Extraction:
    """What the XML says, exactly, in the fields that the schema has; EInvoiceInvalid if it is no e-invoice."""
    root = parsed(xml)
    kind = name_of(root)
    if kind in ubl.ROOTS:
        found = ubl.read_ubl(root)
    elif kind in cii.ROOTS:
        found = cii.read_cii(root)
    else:
        raise EInvoiceInvalid(
            f"The XML is a {kind[:80]!r}, not an invoice in UBL or CII; process it as another format."
        )
    return scored(checks.check(_extraction(found, schema), schema, tolerance=tolerance), schema.required)


def scored(extraction: Extraction, required: Collection[str]) -> Extraction:
    """Confidence 1, but for values that broke a rule; what the checks found is all that can be wrong with them."""
    fields = {
        name: replace(value, confidence=_DOUBTED if value.failed else 1.0) for name, value in extraction.fields.items()
    }
    doubted = any(not check.passed and check.name == checks.REQUIRED for check in extraction.checks) or any(
        name in required and value.failed for name, value in fields.items()
    )
    return replace(extraction, fields=fields, confidence=_DOUBTED if doubted else 1.0)


def _extraction(found: Found, schema: FieldSchema) -> Extraction:
    notes: list[str] = []
    said = {**found.fields, "syntax": found.syntax}
    fields: dict[str, FieldValue] = {}
    for name, raw in said.items():
        target = called(schema, name) or ""
        if target in schema.fields and target not in fields:
            signals = {checks.MADE_OF_MORE: 1.0} if name in found.made_of_more else NOTHING
            _keep(schema.fields[target], raw, fields, notes, signals)
    rows = {}
    for name, lines in found.rows.items():
        table = schema.tables.get(called(schema, name) or "")
        if table is not None:
            rows[table.name] = [_row(line, table.columns, name, notes) for line in lines]
    credit = said.get("type_code") in CREDIT_NOTES
    return Extraction(
        schema=schema.name,
        schema_version=schema.version,
        reader=Reader.EINVOICE,
        document_type="credit_note" if credit else "invoice",
        fields=fields,
        rows=rows,
        notes=tuple(notes),
    )


def _row(line: Mapping[str, str], columns: Mapping[str, Field], table: str, notes: list[str]) -> dict[str, FieldValue]:
    shipped = standard("invoice").tables[table].columns
    row: dict[str, FieldValue] = {}
    signals = {checks.SUMMARY: 1.0} if line.get("summary") else {}
    for name, raw in line.items():
        column = column_called(name, columns, shipped)
        if column is not None:
            _keep(column, raw, row, notes, signals)
    return row


def _keep(
    field: Field, raw: str, kept: dict[str, FieldValue], notes: list[str], signals: Mapping[str, float] = NOTHING
) -> None:
    value = exact(field, raw)
    if value is None:
        notes.append(f"The XML gives {field.name} as {raw[:80]!r}, which is no {field.type.value}; it was left out.")
    else:
        kept[field.name] = FieldValue(value=value, raw=raw, confidence=1.0, reader=Reader.EINVOICE, signals=signals)


def exact(field: Field, raw: str) -> str | None:
    """The canonical form of a value of XML, whose numbers and dates are written in one way only."""
    if field.type is FieldType.DATE and (match := _ISO.fullmatch(raw)):
        try:
            return date(int(match[1]), int(match[2]), int(match[3])).isoformat()
        except ValueError:
            return None
    if field.type in (FieldType.AMOUNT, FieldType.NUMBER, FieldType.PERCENT, FieldType.COUNT):
        if not _DECIMAL.fullmatch(raw):
            return canonical(field.type, raw)
        try:
            worth = Decimal(raw)
        except InvalidOperation:
            return None
        return format_amount(worth) if field.type is FieldType.AMOUNT else format_number(worth)
    if shape := _SHAPES.get(field.type):
        # An account of another kind is left out; an IBAN with a wrong checksum stays, and its check says so.
        number = re.sub(r"\s", "", raw).upper()
        return number if shape.fullmatch(number) else None
    return canonical(field.type, raw, words=field.enum)
