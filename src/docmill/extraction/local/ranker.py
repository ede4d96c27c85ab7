"""The learned ranker: a probability for every candidate of a field, and for "it is not there".

A conditional logit over all features (words included) carries most of it; boosted trees on the features that are not
words correct what a sum cannot say. Both are fitted on whole lists, so a probability is meant against the other
candidates of the same document.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from docmill.extraction.local.boosting import Floats, Growth, Ints, Trees, grow, pull, softmax
from docmill.extraction.local.candidates import Candidate

Features = Mapping[str, float]

NONE: Features = {"none": 1.0}
"""Features of the answer that the field is not there."""
STRENGTH = 0.3
"""How strongly weights are drawn to zero, as a rule."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was chosen, and what else there was."""

    candidate: Candidate | None
    """None: the field is not there."""
    probability: float
    """Of the value: of all the candidates that say the same."""
    margin: float
    """Over the next best value."""
    agreeing: tuple[Candidate, ...] = ()
    """All candidates with this value, the best first."""
    alternatives: tuple[tuple[str | None, float], ...] = ()
    """Other values with their probabilities, best first; None is "not there"."""


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """A fitted ranker of one field."""

    weights: Mapping[str, float]
    trees: Trees | None = None

    def scores(self, rows: Sequence[Features]) -> Floats:
        """One number per row; greater is better. A row that comes again, as the same object, is weighed once."""
        known = {id(row): row for row in rows}
        different = rows if len(known) == len(rows) else list(known.values())
        made = np.array([_weighed(self.weights, row) for row in different])
        if self.trees is not None and different:
            made = np.asarray(made + self.trees.score(table(different, self.trees.names)))
        if different is rows:
            return made
        places = {key: place for place, key in enumerate(known)}
        return made[[places[id(row)] for row in rows]]

    def choose(self, candidates: Sequence[Candidate], absent: Features = NONE) -> Choice:
        """The value that is most probable; candidates with one value speak for each other."""
        rows = [*(candidate.features for candidate in candidates), {**NONE, **absent}]
        chances = softmax(self.scores(rows), np.array([0]))
        by_value: dict[str | None, float] = {None: float(chances[-1])}
        for candidate, chance in zip(candidates, chances, strict=False):
            by_value[candidate.value] = by_value.get(candidate.value, 0.0) + float(chance)
        (value, chance), *others = sorted(by_value.items(), key=lambda item: -item[1])
        order = sorted(range(len(candidates)), key=lambda index: -chances[index])
        agreeing = tuple(candidates[index] for index in order if candidates[index].value == value)
        return Choice(
            candidate=agreeing[0] if agreeing else None,
            probability=chance,
            margin=chance - (others[0][1] if others else 0.0),
            agreeing=agreeing,
            alternatives=tuple(others[:5]),
        )

    def as_json(self) -> dict[str, Any]:
        """As it ships with the package."""
        weights = {name: float(f"{weight:.4g}") for name, weight in sorted(self.weights.items()) if abs(weight) >= 1e-3}
        return {"weights": weights, "trees": self.trees and self.trees.as_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        return cls(weights=data["weights"], trees=Trees.from_json(data["trees"]) if data["trees"] else None)


@dataclass(frozen=True, kw_only=True)
class Example:
    """One document as a ranker learns from it: candidates of a field and which of them are right."""

    rows: Sequence[Features]
    right: Sequence[bool]
    group: str = ""
    """Whose document it is: a word counts as shared only if several groups have it."""


def fit(
    examples: Sequence[Example],
    *,
    growth: Growth | None = None,
    strength: float = STRENGTH,
    least_groups: int = 3,
    rounds: int = 150,
) -> Ranker:
    """Fit a ranker; the same examples give the same ranker. Lists without any right row are left out."""
    useful = [example for example in examples if any(example.right) and not all(example.right)]
    if not useful:
        return Ranker(weights={"none": 0.0})
    names = _names(useful, least_groups)
    starts = np.cumsum([0, *(len(example.rows) for example in useful[:-1])])
    right = np.array([float(value) for example in useful for value in example.right])
    rows = [row for example in useful for row in example.rows]
    sizes = Counter(example.group for example in useful if example.group)
    # A seller with many documents teaches more than one with a single document, but not as much more as it has.
    share = np.array([sizes[example.group] ** -0.5 if example.group else 1.0 for example in useful])
    of_row = np.repeat(share / share.mean(), [len(example.rows) for example in useful])
    weights = _logit(rows, names, right, starts, of_row, strength, rounds)
    ranker = Ranker(weights=dict(zip(names, weights.tolist(), strict=True)))
    if growth is not None and growth.trees == 0:
        return ranker
    columns = [name for name in names if "=" not in name]
    trees = grow(columns, table(rows, columns), right, starts, ranker.scores(rows), of_row, growth)
    return Ranker(weights=ranker.weights, trees=trees)


def _weighed(weights: Mapping[str, float], row: Features) -> float:
    total = 0.0
    for name, value in row.items():
        # Most features of most candidates are zero.
        if value:
            total += weights.get(name, 0.0) * value
    return total


def table(rows: Sequence[Features], names: Sequence[str]) -> Floats:
    """Features as columns; what a row does not have is 0."""
    return np.array([[row.get(name, 0.0) for name in names] for row in rows], dtype=np.float64).reshape(-1, len(names))


def _names(examples: Sequence[Example], least_groups: int) -> list[str]:
    """Features worth a weight: all numbers, and the words that several groups share."""
    groups: dict[str, set[str]] = {}
    for number, example in enumerate(examples):
        for row in example.rows:
            for name in row:
                groups.setdefault(name, set()).add(example.group or str(number))
    return sorted(name for name, having in groups.items() if "=" not in name or len(having) >= least_groups)


def _logit(
    rows: Sequence[Features],
    names: Sequence[str],
    right: Floats,
    starts: Ints,
    of_row: Floats,
    strength: float,
    rounds: int,
) -> Floats:
    """Weights of the conditional logit with a quadratic penalty, by Adam on all lists at once."""
    column = {name: number for number, name in enumerate(names)}
    where, which, values = [], [], []
    for number, row in enumerate(rows):
        for name, value in row.items():
            if name in column and value:
                where.append(number)
                which.append(column[name])
                values.append(value)
    row_of, column_of, value_of = np.array(where), np.array(which), np.array(values, dtype=np.float64)
    lists = len(starts)
    weights = np.zeros(len(names))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, rounds + 1):
        scores = np.bincount(row_of, value_of * weights[column_of], len(rows)).astype(np.float64)
        slope, _ = pull(scores, right, starts, of_row)
        gradient = np.bincount(column_of, value_of * slope[row_of], len(names)) / lists + strength * weights / 10
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = 0.1 * (1 - step / (rounds + 1))
        weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights
