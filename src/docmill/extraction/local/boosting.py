"""Boosted regression trees for ranking, in numpy: small data, a few dozen features, milliseconds to apply.

A tree of depth d is kept as a complete binary tree in arrays, so that all trees walk all rows one level at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BINS = 32


@dataclass(frozen=True, kw_only=True)
class Trees:
    """Fitted trees; the score of a row is the sum of its leaves."""

    names: tuple[str, ...]
    """Features by column."""
    features: Ints
    """(trees, inner nodes): the column asked at each node; the root is 0, children of i are 2i+1 and 2i+2."""
    thresholds: Floats
    """(trees, inner nodes): go right when the value is greater."""
    leaves: Floats
    """(trees, leaves)."""

    def score(self, rows: Floats) -> Floats:
        """The sum of the leaves that each row reaches."""
        count, inner = self.features.shape
        if not count:
            return np.zeros(len(rows))
        every = np.arange(count)
        at = np.zeros((len(rows), count), dtype=np.int64)
        while True:
            columns = self.features[every, at]
            values = np.take_along_axis(rows, columns, axis=1)
            at = 2 * at + 1 + (values > self.thresholds[every, at])
            if at[0, 0] >= inner:
                break
        return np.asarray(self.leaves[every, at - inner].sum(axis=1))

    def as_json(self) -> dict[str, Any]:
        """Rounded: four digits of a score are more than the data can tell."""
        return {
            "names": list(self.names),
            "features": self.features.tolist(),
            "thresholds": [[float(f"{value:.5g}") for value in row] for row in self.thresholds],
            "leaves": [[float(f"{value:.4g}") for value in row] for row in self.leaves],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        return cls(
            names=tuple(data["names"]),
            features=np.array(data["features"], dtype=np.int64),
            thresholds=np.array(data["thresholds"], dtype=np.float64),
            leaves=np.array(data["leaves"], dtype=np.float64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How trees are grown."""

    trees: int = 30
    depth: int = 2
    rate: float = 0.15
    smoothing: float = 10.0
    """Added to the curvature of every leaf: keeps leaves of few rows small."""
    least: float = 3.0
    """Curvature that each side of a split must have."""


def softmax(scores: Floats, starts: Ints) -> Floats:
    """Probabilities within each list; `starts` says where each list begins."""
    sizes = np.diff(np.append(starts, len(scores)))
    top = np.repeat(np.maximum.reduceat(scores, starts), sizes)
    powers = np.exp(scores - top)
    return np.asarray(powers / np.repeat(np.add.reduceat(powers, starts), sizes))


def pull(scores: Floats, right: Floats, starts: Ints, weights: Floats) -> tuple[Floats, Floats]:
    """Gradient and curvature of the loss: minus the log of the probability that a right row is chosen from its list.

    `weights`, one per row and alike within a list, say how much each list counts.
    """
    sizes = np.diff(np.append(starts, len(scores)))
    chance = softmax(scores, starts)
    share = chance * right
    total = np.repeat(np.add.reduceat(share, starts), sizes)
    wanted = share / np.maximum(total, 1e-12)
    return weights * (chance - wanted), weights * np.maximum(chance * (1 - chance), 1e-6)


def grow(
    names: Sequence[str],
    rows: Floats,
    right: Floats,
    starts: Ints,
    base: Floats,
    weights: Floats,
    growth: Growth | None = None,
) -> Trees:
    """Fit trees on top of the scores that are already there (`base`)."""
    growth = growth or Growth()
    cuts = [_cuts(rows[:, column]) for column in range(rows.shape[1])]
    binned = np.stack(
        [np.searchsorted(cut, rows[:, column], side="left") for column, cut in enumerate(cuts)], axis=1
    ).astype(np.int64)
    scores = base.copy()
    kept: list[tuple[list[int], list[float], list[float]]] = []
    for _ in range(growth.trees):
        slope, curve = pull(scores, right, starts, weights)
        features, splits, leaves, reached = _tree(binned, slope, curve, growth)
        scores += np.array(leaves)[reached]
        thresholds = [
            float(cuts[column][split]) if split < len(cuts[column]) else float("1e30")
            for column, split in zip(features, splits, strict=True)
        ]
        kept.append((features, thresholds, leaves))
    inner, outer = 2**growth.depth - 1, 2**growth.depth
    return Trees(
        names=tuple(names),
        features=np.array([tree[0] for tree in kept], dtype=np.int64).reshape(-1, inner),
        thresholds=np.array([tree[1] for tree in kept], dtype=np.float64).reshape(-1, inner),
        leaves=np.array([tree[2] for tree in kept], dtype=np.float64).reshape(-1, outer),
    )


def _cuts(column: Floats) -> Floats:
    """Where a feature may be split: between its values, at most 31 places, by quantile."""
    values = np.unique(column)
    if len(values) > _BINS:
        values = np.unique(np.quantile(column, np.linspace(0, 1, _BINS)))
    return np.asarray((values[1:] + values[:-1]) / 2)


def _tree(binned: Ints, slope: Floats, curve: Floats, growth: Growth) -> tuple[list[int], list[int], list[float], Ints]:
    """One tree, level by level; a node that gains nothing sends all its rows left."""
    at = np.zeros(len(binned), dtype=np.int64)
    features: list[int] = []
    splits: list[int] = []
    for level in range(growth.depth):
        nodes = 2**level
        best_gain = np.zeros(nodes)
        best_column = np.zeros(nodes, dtype=np.int64)
        best_split = np.full(nodes, _BINS, dtype=np.int64)
        for column in range(binned.shape[1]):
            keys = at * _BINS + binned[:, column]
            slopes = np.bincount(keys, slope, nodes * _BINS).reshape(nodes, _BINS).cumsum(axis=1)
            curves = np.bincount(keys, curve, nodes * _BINS).reshape(nodes, _BINS).cumsum(axis=1)
            gains = _gain(slopes, curves, growth)
            split = gains.argmax(axis=1)
            gain = gains[np.arange(nodes), split]
            better = gain > best_gain + 1e-9
            best_gain[better], best_column[better], best_split[better] = gain[better], column, split[better]
        features += best_column.tolist()
        splits += best_split.tolist()
        at = 2 * at + (binned[np.arange(len(binned)), best_column[at]] > best_split[at])
    outer = 2**growth.depth
    leaves = -growth.rate * np.bincount(at, slope, outer) / (np.bincount(at, curve, outer) + growth.smoothing)
    return features, splits, leaves.tolist(), at


def _gain(slopes: Floats, curves: Floats, growth: Growth) -> Floats:
    all_slope, all_curve = slopes[:, -1:], curves[:, -1:]
    gain = (
        slopes**2 / (curves + growth.smoothing)
        + (all_slope - slopes) ** 2 / (all_curve - curves + growth.smoothing)
        - all_slope**2 / (all_curve + growth.smoothing)
    )
    enough = (curves >= growth.least) & (all_curve - curves >= growth.least)
    return np.where(enough, gain, 0.0)
