"""Values that a person decided: they stand in every result of the document, whoever reads it again."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from docmill.extraction.result import Extraction, FieldValue

CHECKED_BY_A_PERSON = "decided_by_a_person"
"""The check that such a value has passed."""


def with_locked(extraction: Extraction, locked: Mapping[str, Any]) -> Extraction:
    """The extraction with the locked values in their places; the very same one if it has them already.

    A value that the reader found instead is kept among the alternatives, to be shown beside the person's.
    """
    fields = dict(extraction.fields)
    for name, value in locked.items():
        fields[name] = _decided(str(value), fields.get(name))
    return extraction if fields == dict(extraction.fields) else replace(extraction, fields=fields)


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
