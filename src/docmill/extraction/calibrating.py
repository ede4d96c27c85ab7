"""Fitting confidence to documents whose values are known.

The fields of a schema share one logistic model, in which each has a bias of its own; the weights of a field are then
drawn towards it as strongly as the field has few examples. The same pull holds what `docmill learn` fits near the
shipped one. What is known beforehand is put in: a greater margin never speaks against a value, a broken rule never for
it, and documents that nobody has seen yet hold a few mistakes more than those the readers were made with.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docmill.extraction.confidence import ANY, Calibration, Formula

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

PULL = 80.0
"""Of the weights of a schema towards those expected: about so many examples must disagree to move them by one."""
FIELD_PULL = 80.0
"""Of the weights of one field towards those of its schema."""
BIAS_PULL = 6.0
"""Of the bias of a field towards that of its schema: how often a field is right is what its examples tell best."""
ALL_PULL = 0.5
"""Of what the fields of a schema have in common: how often its values are right."""
STEEP_PULL = 20.0
"""Of all weights together towards those expected: how much all signals say is easier to tell than what each does."""
APART_PULL = 4.0
"""Of each field towards what they have in common: a field without a labelled mistake makes some too."""
FITTED = 4.0
"""By how much stronger the pull of a bias is towards one that was itself fitted."""
PER_GROUP = 3.0
"""As many documents a sender counts as, at most: what is peculiar to one should not look like what is true of all."""
OPTIMISM = 0.015
"""The share of right values that is taken to be wrong on documents of senders nobody has seen yet: readers were made by
people who had looked at the labelled ones."""
EXPECTED: Mapping[str, float] = {
    "odds": 0.5,
    "standing": 0.3,
    "contested": -0.4,
    "label": 0.1,
    "repeats": 0.4,
    "arithmetic": 0.4,
    "agrees": 1.0,
    "domain": 0.1,
    "known": 0.3,
    "grounded": 0.3,
    "checks_passed": 0.2,
    "checks_failed": -0.4,
    "repaired": -0.3,
    "guessed": -0.5,
    "legal": 0.3,
    "page_legible": 0.4,
    "legible": 0.5,
    "rivals": -0.3,
    "lines": -0.2,
    "boundary": -0.3,
    "elsewhere": -0.3,
    "before": -0.2,
    "open": -0.4,
    "goes_on": -0.1,
    "open_joins": -0.2,
    "stops": -0.3,
    "run_on": -0.1,
    "torn_words": -0.3,
    "numbered": -0.2,
    "last_stop": -0.5,
    "either": -0.6,
    "shared": -0.3,
    "unlike": -0.5,
    "settled": 0.2,
    "unsettled": -0.1,
    "cents": 0.2,
    "rank": -0.2,
    "amounts": -0.2,
}
"""Signals that are weighed, with their weights per standard deviation before there are examples; their signs stay.

They are round numbers set by hand, and stay near them: a few dozen mistakes do not tell thirty weights. More signals
were tried and made it no better on senders not seen: position, length, words that are not in the list among them."""
_FEWEST_DOCUMENTS = 20
_STEPS = 60
_SMALLEST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One value that was read by a ranker that had not seen its document, and whether it was right."""

    document: str
    group: str
    """Documents that share it (a seller) are never split between fitting and measuring."""
    schema: str
    field: str
    signals: Mapping[str, float]
    right: bool
    required: bool = False
    doubt: float = OPTIMISM
    """The share of right values of such a field that is taken to be wrong on documents nobody has seen yet."""


def fit(examples: Sequence[Example], prior: Calibration | None = None) -> Calibration:
    """The calibration that these examples speak for, near the prior where they say little."""
    before = prior or Calibration()
    formulas = dict(before.formulas)
    by_schema: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        by_schema[example.schema].append(example)
    for schema, some in sorted(by_schema.items()):
        formulas |= _fit_schema(schema, some, before)
    kept = Calibration(formulas=formulas, exponent=before.exponent)
    return Calibration(formulas=formulas, exponent=_fit_exponent(examples, kept))


def predict(calibration: Calibration, example: Example) -> float:
    """The probability it gives, before caps."""
    formula = calibration.formula(example.schema, example.field)
    return 0.5 if formula is None else formula.probability(example.signals)


def _fit_schema(schema: str, examples: Sequence[Example], before: Calibration) -> dict[str, Formula]:
    """The formula of a schema, and those of its fields."""
    whole = f"{schema}.{ANY}" if schema != ANY else ANY
    pooled = before.formulas.get(whole) or _unfitted(examples)
    names = sorted({example.field for example in examples})
    by_field = {name: [example for example in examples if example.field == name] for name in names}
    start = {name: before.formulas.get(f"{schema}.{name}", pooled) for name in names}
    known = {name for name in names if f"{schema}.{name}" in before.formulas}
    shared, biases = _fit_shared(examples, pooled, {name: start[name].bias for name in names}, fitted=bool(known))
    formulas = {whole: shared}
    for name in names if schema != ANY else ():
        if name in known:
            formulas[f"{schema}.{name}"] = _fit_near(by_field[name], start[name], BIAS_PULL * FITTED)
        else:
            near = Formula(bias=biases[name], weights=shared.weights, mean=shared.mean, scale=shared.scale)
            formulas[f"{schema}.{name}"] = _fit_near(by_field[name], near, BIAS_PULL)
    return formulas


def _unfitted(examples: Sequence[Example]) -> Formula:
    """What is expected before anything is fitted, on the scale of these examples."""
    import numpy as np

    held: dict[str, list[float]] = defaultdict(list)
    for example in examples:
        for name, value in example.signals.items():
            if name in EXPECTED and math.isfinite(value):
                held[name].append(value)
    mean = {name: float(np.mean(values)) for name, values in held.items()}
    scale = {name: float(np.std(values)) for name, values in held.items()}
    return Formula(
        bias=1.5,
        weights={name: EXPECTED[name] for name in held},
        mean=mean,
        scale={name: value if value > _SMALLEST else 1.0 for name, value in scale.items()},
    )


def _fit_shared(
    examples: Sequence[Example], near: Formula, biases: Mapping[str, float], *, fitted: bool
) -> tuple[Formula, dict[str, float]]:
    """Weights that the fields share, with a bias for each; the bias of the formula is their mean."""
    import numpy as np

    fields = sorted(biases)
    columns = _columns(near)
    inputs = _inputs(examples, near, columns)
    ones = np.array([[float(example.field == name) for name in fields] for example in examples])
    weighed = [near.weights.get(name, 0.0) for name in columns]
    start = np.array([*weighed, *(biases[name] - near.bias for name in fields), near.bias, 0.0])
    strength = FITTED if fitted else 1.0
    pulls = np.array([PULL] * len(columns) + [APART_PULL * strength] * len(fields) + [ALL_PULL, STEEP_PULL])
    signs = np.array([*(_sign(name) for name in columns), *(0.0 for _ in fields), 0.0, 0.0])
    expected = inputs @ np.array(weighed)
    matrix = np.hstack([inputs, ones, np.ones((len(examples), 1)), expected[:, None]])
    found = signed(matrix, _wanted(examples), start, pulls, signs, _counts(examples))
    steep = found[: len(columns)] + found[-1] * np.array(weighed)
    weights = {name: float(value) for name, value in zip(columns, steep, strict=True) if abs(value) > _SMALLEST}
    own = {name: float(value + found[-2]) for name, value in zip(fields, found[len(columns) :], strict=False)}
    # A field without examples is trusted a little less than those with.
    bias = sum(own.values()) / len(own) - 0.5
    return Formula(bias=bias, weights=weights, mean=near.mean, scale=near.scale), own


def _fit_near(examples: Sequence[Example], near: Formula, bias_pull: float) -> Formula:
    """The formula of one field, near the one given."""
    import numpy as np

    columns = _columns(near)
    inputs = np.hstack([_inputs(examples, near, columns), np.ones((len(examples), 1))])
    start = np.array([*(near.weights.get(name, 0.0) for name in columns), near.bias])
    pulls = np.array([FIELD_PULL] * len(columns) + [bias_pull])
    signs = np.array([*(_sign(name) for name in columns), 0.0])
    found = signed(inputs, _wanted(examples), start, pulls, signs, _counts(examples))
    return Formula(
        bias=float(found[-1]),
        weights={name: float(value) for name, value in zip(columns, found, strict=False) if abs(value) > _SMALLEST},
        mean=near.mean,
        scale=near.scale,
    )


def _columns(formula: Formula) -> list[str]:
    names = sorted(formula.mean)
    return [*names, *(f"{name}?" for name in names)]


def _inputs(examples: Sequence[Example], formula: Formula, columns: Sequence[str]) -> "Matrix":
    import numpy as np

    place = {name: number for number, name in enumerate(columns)}
    matrix = np.zeros((len(examples), len(columns)))
    for row, example in enumerate(examples):
        for name, value in formula.inputs(example.signals):
            matrix[row, place[name]] = value
    return matrix


def _wanted(examples: Sequence[Example]) -> "Matrix":
    import numpy as np

    return np.array([1.0 - example.doubt if example.right else 0.0 for example in examples])


def _counts(examples: Sequence[Example]) -> "Matrix":
    """How much each example counts: of one field, a group counts as a few documents, however many it has."""
    import numpy as np

    held = Counter((example.field, example.group) for example in examples)
    return np.array([min(1.0, PER_GROUP / held[example.field, example.group]) for example in examples])


def _sign(name: str) -> float:
    expected = EXPECTED.get(name, 0.0)
    return math.copysign(1.0, expected) if expected else 0.0


def signed(
    matrix: "Matrix", wanted: "Matrix", start: "Matrix", pulls: "Matrix", signs: "Matrix", counts: "Matrix"
) -> "Matrix":
    """`logistic`, with weights of a known sign: those that would come out with the other one are nothing."""
    import numpy as np

    free = np.ones(len(start), dtype=bool)
    while True:
        weights = np.zeros(len(start))
        weights[free] = logistic(matrix[:, free], wanted, start[free], pulls[free], counts)
        against = free & (weights * signs < 0)
        if not against.any():
            return weights
        free &= ~against


def logistic(matrix: "Matrix", wanted: "Matrix", start: "Matrix", pulls: "Matrix", counts: "Matrix") -> "Matrix":
    """Weights of a logistic regression that is drawn towards `start`, each weight by its own pull. Newton's method.

    `counts` says how much each row counts.
    """
    import numpy as np

    def loss(weights: "Matrix") -> float:
        z = matrix @ weights
        return float(np.sum(counts * (np.logaddexp(0, z) - wanted * z)) + 0.5 * np.sum(pulls * (weights - start) ** 2))

    weights = start.copy()
    before = loss(weights)
    for _ in range(_STEPS):
        stated = 1 / (1 + np.exp(-np.clip(matrix @ weights, -30, 30)))
        slope = matrix.T @ (counts * (stated - wanted)) + pulls * (weights - start)
        bend = (matrix * (counts * stated * (1 - stated))[:, None]).T @ matrix + np.diag(pulls)
        step = np.linalg.solve(bend, slope)
        size = 1.0
        while size > _SMALLEST and loss(weights - size * step) > before:
            size /= 2
        weights = weights - size * step
        after = loss(weights)
        if before - after < 1e-9:
            break
        before = after
    return weights


def _fit_exponent(examples: Sequence[Example], calibration: Calibration) -> float:
    """The power of the product of required confidences that says best how often all of a document are right."""
    documents: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for example in examples:
        if example.required:
            documents[example.document].append((predict(calibration, example), example.right))
    if len(documents) < _FEWEST_DOCUMENTS:
        return calibration.exponent
    logs = [
        (sum(math.log(max(stated, 1e-9)) for stated, _ in found), all(right for _, right in found))
        for found in documents.values()
    ]

    def loss(exponent: float) -> float:
        total = 0.0
        for log, right in logs:
            stated = min(1 - 1e-9, math.exp(exponent * log))
            total -= math.log(stated) if right else math.log(1 - stated)
        return total

    return min((number / 100 for number in range(50, 131)), key=loss)
