"""How right an extraction is, held against labels. Pure.

Amounts, dates and counts are compared by value; text exactly (case and white space folded) and loosely (letters and
digits only). A label of null says that the document has no such value: right when nothing was found, and a value that
was found all the same counts against precision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from docmill.extraction.ground_truth import Labelled
from docmill.extraction.reliability import Outcome, auroc, calibration_error, straight_through
from docmill.extraction.result import Extraction
from docmill.extraction.schema import FieldSchema
from docmill.extraction.values import FieldType, Hints, canonical
from docmill.extraction.values.amounts import labelled_amount
from docmill.extraction.values.dates import DateOrder
from docmill.extraction.values.kinds import DECIMALS
from docmill.extraction.values.texts import clean, fold, loose

COUNTS: Mapping[str, str] = {"line_count": "line_items"}
"""Labels that count the rows of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldScore:
    """One label, and what was found in its place."""

    field: str
    expected: str | None
    found: str | None
    confidence: float | None
    """None: nothing was found."""
    exact: bool
    loose: bool
    visible: bool
    """Whether the page can tell: the value can be seen on it, or nobody said which can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentScore:
    """One document held against its labels."""

    file: str
    layout: str | None
    fields: tuple[FieldScore, ...]
    complete: bool
    """It was read, and every field that its schema requires was found."""
    decisive: tuple[float, ...] | None = None
    """Confidences on which it depends whether it may pass untouched: those of required fields, or of all if none is
    required; None if it may not at all."""
    error: str | None = None
    """The code of what went wrong, if it could not be read at all."""
    message: str | None = None

    @property
    def outcomes(self) -> list[Outcome]:
        """Of the values that were found, where the page can tell.

        A reader that is sure of what stands on the page is not wrong to be sure if the label says something else.
        """
        found = [field for field in self.fields if field.visible]
        return [(field.confidence, field.exact) for field in found if field.confidence is not None]


def score_document(
    labelled: Labelled,
    extraction: Extraction | None,
    schema: FieldSchema | None = None,
    *,
    error: tuple[str, str] | None = None,
) -> DocumentScore:
    """Hold an extraction against the labels of its document, whose names may be aliases of the schema's.

    No extraction is a document that could not be read; `error` is the code and the message of what went wrong.
    """
    scores = []
    for name, expected in labelled.fields.items():
        value, confidence = _found(name, extraction, schema)
        exact, loosely = compare(expected, value, _kind(name, schema))
        scores.append(
            FieldScore(
                field=name,
                expected=expected,
                found=value,
                confidence=confidence,
                exact=exact,
                loose=loosely,
                visible=labelled.sees(name),
            )
        )
    complete = extraction is not None and set(schema.required if schema else ()) <= {
        *extraction.fields,
        *extraction.rows,
    }
    return DocumentScore(
        file=labelled.file,
        layout=labelled.layout,
        fields=tuple(scores),
        complete=complete,
        decisive=_decisive(extraction, schema) if extraction and complete else None,
        error=error and error[0],
        message=error and error[1],
    )


def _decisive(extraction: Extraction, schema: FieldSchema | None) -> tuple[float, ...]:
    names = [name for name in (schema.required if schema else ()) if name in extraction.fields]
    return tuple(extraction.fields[name].confidence for name in names or extraction.fields)


def _kind(name: str, schema: FieldSchema | None) -> FieldType:
    field = schema and schema.fields.get(schema.resolve(name) or name)
    return field.type if field else FieldType.COUNT if name in COUNTS else FieldType.TEXT


def _found(name: str, extraction: Extraction | None, schema: FieldSchema | None) -> tuple[str | None, float | None]:
    if extraction is None:
        return None, None
    if name in COUNTS and name not in extraction.fields:
        # How sure it is that there are so many rows is nothing a reader says: counted, not ranked.
        return str(len(extraction.rows.get(COUNTS[name], ()))), None
    found = extraction.fields.get((schema and schema.resolve(name)) or name)
    return (None, None) if found is None else (found.value, found.confidence)


_WRITTEN = Hints(decimal=".", order=DateOrder.DMY)
"""How a label that could be read in two ways is meant: `05/03/2018` is in March. ISO leaves no doubt."""
_BY_VALUE = frozenset(FieldType) - {FieldType.TEXT, FieldType.ENUM, FieldType.IDENTIFIER}


def compare(expected: str | None, found: str | None, kind: FieldType) -> tuple[bool, bool]:
    """Whether a value is right: exactly, and loosely. Loose is never stricter than exact."""
    if expected is None or found is None:
        return (same := expected is None and found is None), same
    exact = fold(expected) == fold(found)
    if not exact and kind in _BY_VALUE:
        meant = _meant(kind, expected)
        exact = meant is not None and meant == _meant(kind, found)
        return exact, exact
    return exact, exact or (bool(loose(expected)) and loose(expected) == loose(found))


def _meant(kind: FieldType, text: str) -> Decimal | str | None:
    """Numbers as such and not as they are kept: `99.9950` and `99.995` are two canonical forms of one amount."""
    if kind in DECIMALS:
        return labelled_amount(text if kind is FieldType.AMOUNT else clean(text).rstrip(" %"))
    return canonical(kind, text, _WRITTEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSummary:
    """One field over all documents that have a label for it."""

    n: int
    exact: float
    loose: float
    """Shares, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All documents of a folder."""

    documents: int
    failed: int
    """Documents that could not be read: every one of their fields counts as not found."""
    exact_f1: float
    """Over all labelled values, as SROIE counts: found and right, against all found and against all that are there."""
    loose_mean: float
    """Mean over the fields of their loose shares."""
    micro: float
    """Share of all labels that are right."""
    micro_visible: float | None
    """The same, only labels whose value can be seen on the page; None if there are none."""
    by_field: Mapping[str, FieldSummary]
    by_layout: Mapping[str, "Summary"]
    auroc: float | None
    ece: float | None
    straight_through_99: float
    threshold_99: float | None
    """The confidence from which on 99 % of the values are right."""

    def as_json(self) -> dict[str, Any]:
        """For `docmill eval --json`."""
        return {
            "documents": self.documents,
            "failed": self.failed,
            "exact_f1": self.exact_f1,
            "loose_mean": self.loose_mean,
            "micro": self.micro,
            "micro_visible": self.micro_visible,
            "by_field": {
                name: {"n": field.n, "exact": field.exact, "loose": field.loose}
                for name, field in self.by_field.items()
            },
            "by_layout": {name: part.as_json() for name, part in self.by_layout.items()},
            "auroc": self.auroc,
            "ece": self.ece,
            "straight_through_99": self.straight_through_99,
            "threshold_99": self.threshold_99,
        }


def summarise(documents: Sequence[DocumentScore]) -> Summary:
    """The figures of a folder, and of each layout in it."""
    layouts = sorted({document.layout for document in documents if document.layout})
    apart = {name: [document for document in documents if document.layout == name] for name in layouts}
    return _summary(documents, {name: _summary(part, {}) for name, part in apart.items()})


def _summary(documents: Sequence[DocumentScore], by_layout: Mapping[str, Summary]) -> Summary:
    fields = [field for document in documents for field in document.fields]
    names = list(dict.fromkeys(field.field for field in fields))
    by_field = {name: _field_summary([field for field in fields if field.field == name]) for name in names}
    outcomes = [outcome for document in documents for outcome in document.outcomes]
    through, threshold = straight_through(outcomes, [document.decisive for document in documents])
    return Summary(
        documents=len(documents),
        failed=sum(document.error is not None for document in documents),
        exact_f1=_f1(fields),
        loose_mean=_share([part.loose for part in by_field.values()]) or 0.0,
        micro=_share([field.exact for field in fields]) or 0.0,
        micro_visible=_share([field.exact for field in fields if field.visible and field.expected is not None]),
        by_field=by_field,
        by_layout=by_layout,
        auroc=auroc(outcomes),
        ece=calibration_error(outcomes),
        straight_through_99=through,
        threshold_99=threshold,
    )


def _field_summary(fields: Sequence[FieldScore]) -> FieldSummary:
    return FieldSummary(
        n=len(fields),
        exact=_share([field.exact for field in fields]) or 0.0,
        loose=_share([field.loose for field in fields]) or 0.0,
    )


def _f1(fields: Sequence[FieldScore]) -> float:
    right = sum(field.exact for field in fields if field.expected is not None)
    found = sum(field.found is not None for field in fields)
    there = sum(field.expected is not None for field in fields)
    return 2 * right / (found + there) if found + there else 0.0


def _share(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
