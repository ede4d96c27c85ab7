"""What a reader found in a document: one record, whichever of the readers it was.

Values are text in one canonical form per type, so that they can be stored, compared and exported alike: an amount is
`-1234.50` (a point, two digits or as many as are written, no separators), a date `2026-11-16`, a currency its ISO code,
a count `3`; text is trimmed with single spaces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from docmill.documents.reading import Box


class Reader(StrEnum):
    """Who read the fields."""

    EINVOICE = "einvoice"
    """The XML of an e-invoice: exact."""
    LOCAL = "local"
    """Candidates from words and layout, scored by the learned ranker."""
    MODEL = "model"
    COMBINED = "combined"
    """A model, cross-checked by the local reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where on the page a value stands."""

    page: int
    """From 1."""
    box: Box

    def as_json(self) -> dict[str, Any]:
        """For a checkpoint or an answer."""
        return {"page": self.page, "box": _box_as_json(self.box)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValue:
    """One field as it was read."""

    value: str
    raw: str
    """As it is written in the document (or said by the model)."""
    confidence: float
    """The calibrated probability that the value is right, 0 to 1."""
    evidence: tuple[Evidence, ...] = ()
    """Empty: ungrounded, the value was not found on a page."""
    passed: tuple[str, ...] = ()
    """Names of the checks that it passed, such as `total_adds_up` or `printed_repeatedly`."""
    failed: tuple[str, ...] = ()
    reader: Reader = Reader.LOCAL
    signals: Mapping[str, float] = field(default_factory=dict)
    """What the confidence was computed from, by name; kept so that calibration can be refitted."""
    alternatives: tuple[str, ...] = ()
    """Other values that were considered, best first."""

    @property
    def grounded(self) -> bool:
        return bool(self.evidence)

    def judged(self, passed: tuple[str, ...], failed: tuple[str, ...]) -> "FieldValue":
        """The same with these checks. By hand, as `sure`: every value of every row goes through both."""
        return FieldValue(
            value=self.value,
            raw=self.raw,
            confidence=self.confidence,
            evidence=self.evidence,
            passed=passed,
            failed=failed,
            reader=self.reader,
            signals=self.signals,
            alternatives=self.alternatives,
        )

    def sure(self, confidence: float) -> "FieldValue":
        """The same with this confidence."""
        return FieldValue(
            value=self.value,
            raw=self.raw,
            confidence=confidence,
            evidence=self.evidence,
            passed=self.passed,
            failed=self.failed,
            reader=self.reader,
            signals=self.signals,
            alternatives=self.alternatives,
        )

    def as_json(self) -> dict[str, Any]:
        """For a checkpoint or an answer."""
        return {
            "value": self.value,
            "raw": self.raw,
            "confidence": round(self.confidence, 4),
            "evidence": [found.as_json() for found in self.evidence],
            "passed": list(self.passed),
            "failed": list(self.failed),
            "reader": self.reader.value,
            "signals": dict(self.signals),
            "alternatives": list(self.alternatives),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        return cls(
            value=data["value"],
            raw=data["raw"],
            confidence=data["confidence"],
            evidence=tuple(Evidence(page=found["page"], box=Box(*found["box"])) for found in data["evidence"]),
            passed=tuple(data["passed"]),
            failed=tuple(data["failed"]),
            reader=Reader(data["reader"]),
            signals=data["signals"],
            alternatives=tuple(data["alternatives"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A rule of the schema that was looked at."""

    name: str
    passed: bool
    message: str
    """What was compared, with the values; a sentence for a person."""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchecked:
    """A rule of the schema that could not be looked at: it speaks neither for a value nor against it."""

    name: str
    message: str
    """What is missing; a sentence for a person."""
    fields: tuple[str, ...] = ()
    """What it needs and was not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """All fields of one document."""

    schema: str
    """Name of the field schema; empty if nothing was looked for."""
    schema_version: str
    reader: Reader
    document_type: str
    """What kind of document it was taken for, such as `invoice`, `credit_note`, `receipt`, `other`."""
    type_confidence: float = 1.0
    fields: Mapping[str, FieldValue] = field(default_factory=dict)
    """By name, those that were found."""
    rows: Mapping[str, Sequence[Mapping[str, FieldValue]]] = field(default_factory=dict)
    """Fields that are tables (`line_items`, `tax_lines`): their rows, each a mapping of column to value."""
    checks: tuple[Check, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    """Apart from the checks, so that whoever counts what passed and failed counts no third thing."""
    confidence: float = 0.0
    """That of the document: how sure it is that every required field is right."""
    notes: tuple[str, ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)
    """Limits of reading beyond which something of the document was left out, with what they were."""

    def as_json(self) -> dict[str, Any]:
        """For a checkpoint or an answer."""
        return {
            "schema": self.schema or None,
            "schema_version": self.schema_version or None,
            "reader": self.reader.value,
            "document_type": self.document_type,
            "type_confidence": round(self.type_confidence, 4),
            "fields": {name: found.as_json() for name, found in self.fields.items()},
            "rows": {
                name: [{column: found.as_json() for column, found in row.items()} for row in rows]
                for name, rows in self.rows.items()
            },
            "checks": [
                {"name": check.name, "passed": check.passed, "message": check.message, "fields": list(check.fields)}
                for check in self.checks
            ],
            "unchecked": [
                {"name": rule.name, "message": rule.message, "fields": list(rule.fields)} for rule in self.unchecked
            ],
            "confidence": round(self.confidence, 4) if self.schema else None,
            "notes": list(self.notes),
            **({"cut": dict(self.cut)} if self.cut else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        return cls(
            schema=data["schema"] or "",
            schema_version=data["schema_version"] or "",
            reader=Reader(data["reader"]),
            document_type=data["document_type"],
            type_confidence=data["type_confidence"],
            fields={name: FieldValue.from_json(found) for name, found in data["fields"].items()},
            rows={
                name: [{column: FieldValue.from_json(found) for column, found in row.items()} for row in rows]
                for name, rows in data["rows"].items()
            },
            checks=tuple(Check(**{**check, "fields": tuple(check["fields"])}) for check in data["checks"]),
            # What was stored before there were such has none.
            unchecked=tuple(
                Unchecked(**{**rule, "fields": tuple(rule["fields"])}) for rule in data.get("unchecked", ())
            ),
            confidence=data["confidence"] or 0.0,
            notes=tuple(data["notes"]),
            cut=data.get("cut", {}),
        )


def _box_as_json(box: Box) -> list[float]:
    left, top, right, bottom = box
    return [round(left, 5), round(top, 5), round(right, 5), round(bottom, 5)]
