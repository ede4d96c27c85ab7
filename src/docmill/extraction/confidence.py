"""Confidence: the probability that a value is right, computed from what speaks for it. Pure.

Readers leave signals with every value: how well it was ranked and by what margin, how often it is printed, whether sums
agree, whether its label stands beside it. A logistic model per field, fitted on documents that the ranker had not seen,
turns them into a probability. Where a value stands and which checks it passed are signals too; the score of the OCR is
at most one among many: it says how sure the characters are, and hardly anything about which value is meant.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Self

from docmill.extraction.checks import OF_FIELDS
from docmill.extraction.combining import AGREEMENT
from docmill.extraction.result import Extraction, FieldValue, Reader
from docmill.extraction.several_documents import CHECK as SEVERAL

VERSION = 1
ANY = "*"
UNGROUNDED_CAP = 0.5
"""The most that a value can have which was not found on the page: as likely wrong as right."""
FAILED_CAP = 0.6
"""The most that a value can have which fails a check of its own, such as a pattern or a range. A rule between fields
that is broken says that one of them is wrong, not which; it is weighed. The cells of a column whose sum breaks a rule
are capped too: nothing but the sum speaks for a row that was left out or read twice. So is what may come from another
paper in the same file: nothing that speaks for the value says whose it is."""
DOUBTED_BY_READER = "doubted"
"""A signal of a value that its reader chose for want of a better one and does not believe itself: capped as above."""
EXACT = 0.995
"""What the XML of an e-invoice says, it says; what is left is that its sender may have meant something else."""
DOUBTED = 0.9
"""The same when a rule is broken: it is read exactly all the same, and the broken rule is told."""
DISPUTED = 0.6
"""The same when the visible page says otherwise: one of the two is wrong."""
MISSING = 0.05
"""What a required field that was not found leaves of the confidence of its document."""
_CAPPING = frozenset({*OF_FIELDS, SEVERAL})
_TOLD = frozenset({*OF_FIELDS, AGREEMENT})
"""Checks that say nothing by being passed, or that are a signal of their own."""
_ODD = 0.002
"""No ranker is surer than this."""
_WELL = 2.0
"""The score from which on a value stands well, whatever else could be it."""
_CLOSE = 1.5
"""The log odds below which another value comes close."""
_FURTHEST = 4.0
"""Standard deviations: no single signal decides alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A logistic model over named signals."""

    bias: float
    weights: Mapping[str, float]
    """By the name of a signal, of its standardised value; `NAME?` is the weight of its absence."""
    mean: Mapping[str, float] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)
    _terms: tuple[tuple[str, float, float, float, float], ...] = field(init=False, repr=False, compare=False)
    """By signal: its mean, its scale, its weight, and that of its absence; looked up once and not for every value."""

    def __post_init__(self) -> None:
        terms = tuple(
            (name, mean, self.scale[name], self.weights.get(name, 0.0), self.weights.get(f"{name}?", 0.0))
            for name, mean in self.mean.items()
        )
        object.__setattr__(self, "_terms", terms)

    def probability(self, signals: Mapping[str, float]) -> float:
        """Of being right."""
        # As `inputs` says, in one go: it is asked for every cell of every row.
        total = 0.0
        for name, mean, scale, weight, absent in self._terms:
            value = signals.get(name)
            if value is None or not isfinite(value):
                total += absent
            elif weight:
                total += weight * max(-_FURTHEST, min(_FURTHEST, (value - mean) / scale))
        return sigmoid(self.bias + total)

    def inputs(self, signals: Mapping[str, float]) -> Iterable[tuple[str, float]]:
        """What is weighed: each known signal in standard deviations from its mean, and which are missing."""
        for name, mean in self.mean.items():
            value = signals.get(name)
            if value is None or not math.isfinite(value):
                yield f"{name}?", 1.0
            else:
                yield name, max(-_FURTHEST, min(_FURTHEST, (value - mean) / self.scale[name]))

    def as_json(self) -> dict[str, Any]:
        """As it is shipped; six digits are more than the data can tell."""
        return {
            "bias": round(self.bias, 6),
            "weights": {name: round(value, 6) for name, value in sorted(self.weights.items())},
            "mean": {name: round(value, 6) for name, value in sorted(self.mean.items())},
            "scale": {name: round(value, 6) for name, value in sorted(self.scale.items())},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        return cls(bias=data["bias"], weights=data["weights"], mean=data["mean"], scale=data["scale"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How signals become confidence."""

    formulas: Mapping[str, Formula] = field(default_factory=dict)
    """By `schema.field`, `schema.*` or `*`; the most particular one counts."""
    exponent: float = 1.0
    """Of the product of confidences: below 1 where fields of one document tend to be right together."""

    def formula(self, schema: str, name: str) -> Formula | None:
        """The one for a field."""
        for key in (f"{schema}.{name}", f"{schema}.{ANY}", ANY):
            if key in self.formulas:
                return self.formulas[key]
        return None

    def as_json(self) -> dict[str, Any]:
        """As it is shipped."""
        return {
            "version": VERSION,
            "exponent": round(self.exponent, 6),
            "formulas": {name: formula.as_json() for name, formula in sorted(self.formulas.items())},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        if data.get("version") != VERSION:
            raise ValueError(f"a calibration of version {data.get('version')!r}; this release reads {VERSION}")
        formulas = {name: Formula.from_json(formula) for name, formula in data["formulas"].items()}
        return cls(formulas=formulas, exponent=data["exponent"])

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """From the text of a file."""
        return cls.from_json(json.loads(text))


_BELIEVED = {"agrees": 1.8, "grounded": 1.2, "checks_passed": 0.5, "checks_failed": -1.5}
MODEL_FORMULA = Formula(
    bias=0.4, weights=_BELIEVED, mean=dict.fromkeys(_BELIEVED, 0.0), scale=dict.fromkeys(_BELIEVED, 1.0)
)
"""For what a model read, until there are labelled answers to fit it on: models are often right, and are believed when
the value stands on the page, the sums agree and the local reader read the same. Set by hand, on the careful side."""


def signals_of(found: FieldValue) -> dict[str, float]:
    """All that speaks for or against a value: the signals of its reader, and what its record says."""
    signals = {name: float(value) for name, value in found.signals.items()}
    chance = _unit(signals.get("probability", signals.get("score", 0.5)))
    # Between 0.99 and 0.999 lies as much as between 0.9 and 0.99.
    signals["odds"] = math.log((chance + _ODD) / (1 - chance + _ODD))
    if "probability" in signals and "score" in signals:
        # Better than all others by far, and yet hardly better than nothing: the right one may not be among them.
        signals["standing"] = min(_WELL, max(0.0, signals["score"]))
        # Another comes close, and no label says which: where a label decides, the other has one of its own.
        signals["contested"] = max(0.0, _CLOSE - signals["odds"]) * (1 - _unit(signals.get("label", 0.0)))
    if "repeats" in signals:
        # The second time says much, the tenth little.
        signals["repeats"] = math.log(max(1.0, signals["repeats"]))
    signals["grounded"] = float(found.grounded)
    signals["checks_passed"] = float(min(3, sum([name not in _TOLD for name in found.passed]))) if found.passed else 0.0
    signals["checks_failed"] = float(min(3, sum([name != AGREEMENT for name in found.failed]))) if found.failed else 0.0
    return signals


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.5


def confidence(found: FieldValue, *, schema: str, name: str, calibration: Calibration, cell: bool = False) -> float:
    """How likely the value, or the cell of a table, is right."""
    if found.reader is Reader.EINVOICE:
        if any(name.startswith("page") for name in found.failed):
            return DISPUTED
        return DOUBTED if found.failed else EXACT
    formula = MODEL_FORMULA if found.reader is not Reader.LOCAL else calibration.formula(schema, name)
    stated = found.confidence if formula is None else formula.probability(signals_of(found))
    if not found.grounded:
        stated = min(stated, UNGROUNDED_CAP)
    capping = [each for each in found.failed if each in _CAPPING or (cell and each != AGREEMENT)]
    if capping or found.signals.get(DOUBTED_BY_READER):
        stated = min(stated, FAILED_CAP)
    return max(0.0, min(1.0, stated))


def calibrated(
    extraction: Extraction,
    *,
    required: Iterable[str],
    calibration: Calibration,
    known_as: Mapping[str, tuple[str, str]] | None = None,
) -> Extraction:
    """The extraction with the confidence of every value and of the whole.

    `known_as`: by its name, the schema and the field by whose calibration a field is judged instead of its own.
    """

    known: dict[tuple[object, ...], float] = {}

    def sure(name: str, found: FieldValue, *, cell: bool = False) -> FieldValue:
        # The cells of a column mostly have the same to say for themselves.
        said = (name, found.reader, found.grounded, found.confidence, found.passed, found.failed)
        key = (*said, *found.signals.items())
        stated = known.get(key)
        if stated is None:
            schema, field = (known_as or {}).get(name, (extraction.schema, name))
            stated = confidence(found, schema=schema, name=field, calibration=calibration, cell=cell)
            known[key] = stated
        return found.sure(stated)

    fields = {name: sure(name, found) for name, found in extraction.fields.items()}
    rows = {
        table: [{column: sure(f"{table}.{column}", found, cell=True) for column, found in row.items()} for row in rows]
        for table, rows in extraction.rows.items()
    }
    whole = document_confidence(fields, rows, required=required, exponent=calibration.exponent)
    return replace(extraction, fields=fields, rows=rows, confidence=whole)


def document_confidence(
    fields: Mapping[str, FieldValue],
    tables: Mapping[str, Any],
    *,
    required: Iterable[str],
    exponent: float = 1.0,
) -> float:
    """How sure it is that every required field is there and right; with none required, every field that was found."""
    names = list(required) or list(fields)
    product, lacking = 1.0, 0
    for name in names:
        if name in fields:
            product *= fields[name].confidence
        elif not tables.get(name):
            lacking += 1
    return (product**exponent if names else 0.0) * MISSING**lacking


def sigmoid(x: float) -> float:
    """Log odds as a probability."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
