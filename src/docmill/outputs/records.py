"""A document and what was read from it, as the JSON file and the Parquet row have it."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Protocol, assert_never

from docmill.extraction.result import Extraction, FieldValue
from docmill.outputs.layout import Layout
from docmill.outputs.parquet import Column, ColumnType, fitting

FORM = "docmill.document/1"
"""Which shape a JSON file has; a later one says another number."""
_LARGEST = (1 << 63) - 1


class DocumentFacts(Protocol):
    """What must be known of a document to write its outputs."""

    @property
    def id(self) -> str: ...

    @property
    def org_id(self) -> str: ...

    @property
    def file_name(self) -> str: ...

    @property
    def sha256(self) -> str | None: ...

    @property
    def format(self) -> str | None: ...

    @property
    def status(self) -> str: ...

    @property
    def duplicate_of(self) -> str | None: ...

    @property
    def created_at(self) -> datetime: ...


def document_json(document: DocumentFacts, extraction: Extraction) -> dict[str, object]:
    """All of it, as plain data."""
    facts = {
        "id": document.id,
        "org_id": document.org_id,
        "file_name": document.file_name,
        "sha256": document.sha256,
        "format": None if document.format is None else str(document.format),
        "status": str(document.status),
        "duplicate_of": document.duplicate_of,
        "created_at": document.created_at.astimezone(UTC).isoformat(),
    }
    return {"form": FORM, "document": facts, **extraction.as_json()}


def document_row(document: DocumentFacts, extraction: Extraction, layout: Layout) -> dict[str, object]:
    """One row, by the names of the columns. What does not fit its column is null there; its text is in `fields`."""
    passed = sum(check.passed for check in extraction.checks)
    row: dict[str, object] = {
        "id": document.id,
        "org_id": document.org_id,
        "file_name": document.file_name,
        "sha256": document.sha256,
        "format": None if document.format is None else str(document.format),
        "status": str(document.status),
        "duplicate_of": document.duplicate_of,
        "created_at": document.created_at,
        "schema": extraction.schema or None,
        "schema_version": extraction.schema_version or None,
        "reader": extraction.reader.value,
        "document_type": extraction.document_type,
        "type_confidence": round(extraction.type_confidence, 4),
        "confidence": round(extraction.confidence, 4) if extraction.schema else None,
        "checks_passed": passed,
        "checks_failed": len(extraction.checks) - passed,
        "fields": [_field(name, found) for name, found in extraction.fields.items()],
    }
    for name, column in layout.fields.items():
        if (found := extraction.fields.get(name)) is not None:
            row[column.name] = typed(found.value, column.type)
    for name, column in layout.tables.items():
        row[column.name] = [_cells(cells, column) for cells in extraction.rows.get(name, ())]
    return row


def _field(name: str, found: FieldValue) -> dict[str, object]:
    record: dict[str, object] = {
        "name": name,
        "value": found.value,
        "raw": found.raw,
        "confidence": round(found.confidence, 4),
        "grounded": found.grounded,
        "passed": ", ".join(found.passed) or None,
        "failed": ", ".join(found.failed) or None,
        "reader": found.reader.value,
    }
    if found.evidence:
        first = found.evidence[0]
        box = first.box
        record |= {"page": first.page, "left": box.left, "top": box.top, "right": box.right, "bottom": box.bottom}
    return record


def _cells(cells: Mapping[str, FieldValue], table: Column) -> dict[str, object]:
    kinds = {part.name: part.type for part in table.parts}
    row = {name: typed(found.value, kinds[name]) for name, found in cells.items()}
    if cells:
        row["row_confidence"] = round(min(found.confidence for found in cells.values()), 4)
    return row


def typed(value: str, kind: ColumnType) -> object:
    """A canonical value as its column holds it; None if it is none of that type."""
    try:
        match kind:
            case ColumnType.AMOUNT | ColumnType.QUANTITY:
                return fitting(Decimal(value), kind)
            case ColumnType.INTEGER:
                number = int(value)
                return number if abs(number) <= _LARGEST else None
            case ColumnType.DAY:
                return date.fromisoformat(value)
            case ColumnType.FLAG:
                return {"true": True, "false": False}.get(value)
            case ColumnType.TEXT | ColumnType.NUMBER | ColumnType.MOMENT:
                return value
            case _:
                assert_never(kind)
    except (ValueError, InvalidOperation):
        return None
