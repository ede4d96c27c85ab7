"""An extraction as the rows that reviewers see: one per field and per cell of a table. Pure.

A row is known by its path: `total`, or `line_items[2].amount`, rows counted from 0. Between processes rows travel
as one text of JSON: lists, in the order of the columns they are written to.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import orjson

from docmill.extraction.checks import REQUIRED
from docmill.extraction.result import Extraction, FieldValue
from docmill.extraction.schema import THRESHOLD, FieldSchema
from docmill.extraction.values.kinds import FieldType
from docmill.model.review import FieldState
from docmill.review.priority import complexity_of, value_of

MOST_FIELDS = 2000
"""Rows that one document has: what comes after them is cut, by whole tables' rows, and cannot be corrected."""
_MOST_BOXES, _MOST_OTHERS = 4, 5
_MOST_TEXT = 20_000
_AMOUNTS = ("total", "amount_due", "grand_total")
"""Fields that tell the value of a document, the first that there is."""
_PATH = re.compile(r"([^\[\].]+)(?:\[(\d{1,6})\](?:\.([^\[\].]+))?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """One field or cell of an item, as it is stored."""

    path: str
    position: int
    name: str
    """Of the field, or of the table."""
    row_index: int | None
    column_name: str
    """Empty for a field."""
    value: str | None
    """What counts now."""
    extracted: str | None
    """What the machine read last."""
    confidence: float | None
    threshold: float
    required: bool
    needs_review: bool
    state: FieldState
    locked: bool
    proposed: str | None
    """What the machine reads now, beside the value of a person."""
    differs: bool
    """Whether there is such a proposal; it may be that the machine finds nothing."""
    details: Mapping[str, Any]
    """`raw`, `evidence`, `passed`, `failed`, `alternatives`, `reader`."""
    changed_by: str | None
    changed_at: str | None

    def packed(self) -> list[Any]:
        """As plain data, in the order of the columns."""
        return [getattr(self, name) for name in COLUMNS]

    @classmethod
    def unpacked(cls, row: Sequence[Any]) -> Self:
        """What `packed` made."""
        values = dict(zip(COLUMNS, row, strict=True))
        return cls(**values | {"state": FieldState(values["state"])})


COLUMNS = tuple(each.name for each in fields(FieldRow))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that review needs to know of an extraction."""

    rows: tuple[FieldRow, ...]
    cut: tuple[str, ...]
    """Tables of which not all rows are there."""
    complexity: float
    value: float

    def as_json(self) -> dict[str, Any]:
        """For the result of a step. The rows are one text, which nobody on their way to the database takes apart."""
        rows = [row.packed() for row in self.rows]
        text = orjson.dumps(rows).decode()
        return {
            # A NUL in it would not be noticed, and databases refuse it: as a list it is, with the error that says so.
            "fields": rows if "\\u0000" in text else text,
            "fields_total": len(rows),
            "fields_to_review": sum(row.needs_review for row in self.rows),
            "cut": list(self.cut),
            "complexity": round(self.complexity, 4),
            "value": round(self.value, 4),
        }


def found_in(extraction: Extraction, schema: FieldSchema | None) -> Found:
    """The rows of an extraction; without its schema, nothing is required and `THRESHOLD` is sure enough."""
    rows = [*_scalars(extraction, schema)]
    cut = []
    for table, lines in extraction.rows.items():
        for number, line in enumerate(lines):
            if len(rows) + len(line) > MOST_FIELDS:
                cut.append(table)
                break
            rows += _cells(table, number, line, schema, len(rows))
    failed = sum(not check.passed for check in extraction.checks)
    to_review = sum(row.needs_review for row in rows)
    return Found(
        rows=tuple(rows),
        cut=tuple(cut),
        complexity=complexity_of(fields=len(rows), to_review=to_review, failed_checks=failed),
        value=value_of(_amount(extraction, schema)),
    )


def _scalars(extraction: Extraction, schema: FieldSchema | None) -> Iterator[FieldRow]:
    position = 0
    for name, found in extraction.fields.items():
        field = None if schema is None else schema.fields.get(name)
        threshold, required = (THRESHOLD, False) if field is None else (field.threshold, field.required)
        yield _row((name, None, ""), position, found, threshold=threshold, required=required)
        position += 1
    for name in () if schema is None else schema.required:
        if name not in extraction.fields and not extraction.rows.get(name):
            yield missing_row(name, position, required=True)
            position += 1


def missing_row(path: str, position: int, *, required: bool = False, threshold: float = THRESHOLD) -> FieldRow:
    """The row of a field or cell that was not found."""
    name, row_index, column = parse_path(path)
    details = {"raw": None, "evidence": [], "passed": [], "failed": [REQUIRED] if required else [], "alternatives": []}
    return FieldRow(
        path=path,
        position=position,
        name=name,
        row_index=row_index,
        column_name=column,
        value=None,
        extracted=None,
        confidence=None,
        threshold=threshold,
        required=required,
        needs_review=required,
        state=FieldState.EXTRACTED,
        locked=False,
        proposed=None,
        differs=False,
        details=details | {"reader": None},
        changed_by=None,
        changed_at=None,
    )


def _cells(
    table: str, number: int, line: Mapping[str, FieldValue], schema: FieldSchema | None, position: int
) -> Iterator[FieldRow]:
    known = None if schema is None else schema.tables.get(table)
    for place, (column, found) in enumerate(line.items(), start=position):
        field = None if known is None else known.columns.get(column)
        threshold = THRESHOLD if field is None else field.threshold
        required = field is not None and field.required
        yield _row((table, number, column), place, found, threshold=threshold, required=required)


def _row(
    at: tuple[str, int | None, str], position: int, found: FieldValue, *, threshold: float, required: bool
) -> FieldRow:
    name, row_index, column = at
    value = found.value[:_MOST_TEXT]
    confidence = round(found.confidence, 4)
    return FieldRow(
        path=name if row_index is None else f"{name}[{row_index}].{column}",
        position=position,
        name=name,
        row_index=row_index,
        column_name=column,
        value=value,
        extracted=value,
        confidence=confidence,
        threshold=threshold,
        required=required,
        needs_review=confidence < threshold or bool(found.failed),
        state=FieldState.EXTRACTED,
        locked=False,
        proposed=None,
        differs=False,
        details=details_of(found),
        changed_by=None,
        changed_at=None,
    )


def details_of(found: FieldValue) -> dict[str, Any]:
    """What speaks for and against a value, as it is kept with it."""
    return {
        "raw": found.raw[:_MOST_TEXT],
        "evidence": [each.as_json() for each in found.evidence[:_MOST_BOXES]],
        "passed": list(found.passed),
        "failed": list(found.failed),
        "alternatives": list(found.alternatives[:_MOST_OTHERS]),
        "reader": found.reader.value,
    }


def _amount(extraction: Extraction, schema: FieldSchema | None) -> float | None:
    kinds = {} if schema is None else {name: field.type for name, field in schema.fields.items()}
    names = [name for name, kind in kinds.items() if kind is FieldType.AMOUNT]
    named = [name for name in _AMOUNTS if name in extraction.fields]
    amounts = [amount for name in named[:1] or names if (amount := _number(extraction.fields.get(name))) is not None]
    return max(amounts, key=abs, default=None)


def _number(found: FieldValue | None) -> float | None:
    try:
        return None if found is None else float(found.value)
    except ValueError:
        return None


def parse_path(path: str) -> tuple[str, int | None, str]:
    """Name, row and column of a path; ValueError if it is none. `line_items[2]` is a row, its column empty."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise ValueError(path)
    return found[1], None if found[2] is None else int(found[2]), found[3] or ""
