"""Whether the page that people see says what the XML says, and where on it each value stands.

The XML is what is booked, the page is what was approved: if the two differ, a person must know before anything is paid.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from docmill.documents.reading import Reading
from docmill.extraction.einvoice.reader import scored
from docmill.extraction.grounding import MOST, places
from docmill.extraction.labelled import read_labelled
from docmill.extraction.likeness import called
from docmill.extraction.pages import Pages
from docmill.extraction.result import Check, Extraction, FieldValue
from docmill.extraction.schema import Field, FieldSchema
from docmill.extraction.values.kinds import DECIMALS, FieldType

PAGE_AGREES = "page_agrees"
COMPARED = ("invoice_number", "issue_date", "total")
"""Fields that every printed invoice shows."""
_DOUBTED = frozenset({FieldType.AMOUNT, FieldType.DATE})
"""Types of fields that are doubted with those that differ."""
_STATED = 0.6
"""Score from which on the page is taken to state another value, rather than something nearby."""


def compared_with_page(extraction: Extraction, reading: Reading | Pages, schema: FieldSchema) -> Extraction:
    """The extraction with evidence for every value that is printed, and the check `page_agrees`.

    A page without text (an XML file, a scan that was not read) can neither agree nor differ: no check is made.
    """
    pages = reading if isinstance(reading, Pages) else Pages(reading)
    if not pages.readable:
        return extraction
    fields = {name: _grounded(value, schema, name, pages) for name, value in extraction.fields.items()}
    rows = {
        name: [
            {
                column: _grounded_cell(value, table.columns[column].type, pages) if column in table.columns else value
                for column, value in row.items()
            }
            for row in extraction.rows[name]
        ]
        for name, table in schema.tables.items()
        if name in extraction.rows
    }
    names = [name for name in (called(schema, name) for name in COMPARED) if name and name in fields]
    differing = dict(_differing(names, fields, schema, pages))
    told = [
        f"{schema.fields[name].title}: the XML says {fields[name].value}, "
        + (f"the page {printed}" if printed else "which is not on the page")
        for name, printed in differing.items()
    ]
    # An XML that is not about what the page shows may be of another invoice: then no sum and no day of it is sure.
    doubted = {name for name in fields if differing and name in schema.fields and schema.fields[name].type in _DOUBTED}
    for name in {*names, *doubted}:
        fields[name] = _marked(fields[name], name not in differing and name not in doubted)
    if differing:
        rows = {name: [_doubted(row, schema.tables[name].columns) for row in table] for name, table in rows.items()}
    message = (
        "; ".join(told) + "." if told else f"The page shows the same {', '.join(_plain(names, schema))} as the XML."
    )
    checks = [check for check in extraction.checks if check.name != PAGE_AGREES]
    if names:
        checks.append(Check(name=PAGE_AGREES, passed=not told, message=message, fields=tuple(differing or names)))
    changed = replace(extraction, fields=fields, rows={**extraction.rows, **rows}, checks=tuple(checks))
    return scored(changed, schema.required)


def _grounded(value: FieldValue, schema: FieldSchema, name: str, pages: Pages) -> FieldValue:
    field = schema.fields.get(name)
    return value if field is None or not field.printed else _grounded_cell(value, field.type, pages)


def _grounded_cell(value: FieldValue, kind: FieldType, pages: Pages) -> FieldValue:
    found = places(value.value, kind, pages)[:MOST]
    return replace(value, evidence=tuple(place.evidence for place in found))


def _differing(
    names: list[str], fields: dict[str, FieldValue], schema: FieldSchema, pages: Pages
) -> Iterator[tuple[str, str | None]]:
    """Fields whose value is not on the page, with what the page states instead, if that can be told."""
    missing = [name for name in names if not fields[name].grounded]
    if not missing:
        return
    printed = read_labelled(pages, schema)
    for name in missing:
        other = printed.get(name)
        if other is not None and _same(schema.fields[name].type, other.value, fields[name].value):
            continue
        stated = other is not None and other.signals.get("score", 0.0) >= _STATED
        yield name, other.value if stated and other is not None else None


def _same(kind: FieldType, one: str, other: str) -> bool:
    return Decimal(one) == Decimal(other) if kind in DECIMALS else one.casefold() == other.casefold()


def _marked(value: FieldValue, agrees: bool) -> FieldValue:
    passed = tuple(name for name in value.passed if name != PAGE_AGREES)
    failed = tuple(name for name in value.failed if name != PAGE_AGREES)
    if agrees:
        return replace(value, passed=(*passed, PAGE_AGREES), failed=failed)
    return replace(value, passed=passed, failed=(*failed, PAGE_AGREES))


def _doubted(row: Mapping[str, FieldValue], columns: Mapping[str, Field]) -> dict[str, FieldValue]:
    return {
        name: _marked(value, False) if name in columns and columns[name].type in _DOUBTED else value
        for name, value in row.items()
    }


def _plain(names: list[str], schema: FieldSchema) -> list[str]:
    return [schema.fields[name].title.lower() for name in names]
