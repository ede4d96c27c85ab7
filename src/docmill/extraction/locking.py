"""Values that a person decided: they stand in every result of the document, whoever reads it again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from docmill.extraction.result import Extraction, FieldValue

CHECKED_BY_A_PERSON = "decided_by_a_person"
"""The check that such a value has passed."""


def with_locked(extraction: Extraction, locked: Mapping[str, Any]) -> Extraction:
    """The extraction with the locked values in their places; the very same one if it has them already.

    A value, or None for a field that the document does not have, or the rows of a table, which then has no others. What
    the reader found instead is kept among the alternatives, to be shown beside the person's.
    """
    fields = dict(extraction.fields)
    rows = dict(extraction.rows)
    for name, value in locked.items():
        if isinstance(value, list):
            rows[name] = _table(value, extraction.rows.get(name, ()))
        elif value is None:
            fields.pop(name, None)
        else:
            fields[name] = _decided(str(value), fields.get(name))
    same = fields == dict(extraction.fields) and rows == dict(extraction.rows)
    return extraction if same else replace(extraction, fields=fields, rows=rows)


def _table(
    lines: Sequence[Mapping[str, str]], found: Sequence[Mapping[str, FieldValue]]
) -> list[Mapping[str, FieldValue]]:
    # A row is known by its place: what was found there may be what the person saw.
    return [
        {
            column: _decided(str(value), found[number].get(column) if number < len(found) else None)
            for column, value in line.items()
        }
        for number, line in enumerate(lines)
    ]


def _decided(value: str, found: FieldValue | None) -> FieldValue:
    if found is None:
        return FieldValue(value=value, raw=value, confidence=1.0, passed=(CHECKED_BY_A_PERSON,))
    passed = tuple(dict.fromkeys((*found.passed, CHECKED_BY_A_PERSON)))
    if found.value == value:
        return replace(found, confidence=1.0, passed=passed)
    others = tuple(dict.fromkeys((found.value, *found.alternatives)))
    # Evidence, checks and signals spoke of the value that the reader had found.
    return FieldValue(
        value=value,
        raw=value,
        confidence=1.0,
        passed=(CHECKED_BY_A_PERSON,),
        reader=found.reader,
        alternatives=tuple(other for other in others if other != value),
    )
