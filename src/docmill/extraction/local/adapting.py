"""Fitting the local reader to the documents of one house, starting from the model that ships.

The shipped model was fitted on documents that cannot be shipped, so it stands for them: what is learned here is a
correction to its weights, held back unless several documents speak for it. Its trees and its knowledge stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from docmill.documents.reading import Reading
from docmill.extraction.local.boosting import Floats, Ints, pull
from docmill.extraction.local.ranker import Example, Ranker, table
from docmill.extraction.local.training import Labelled, Model, examples_of

STRENGTH = 2.0
"""By how much a correction of one is held back: about so many documents must speak for it."""
_LEAST_GROUPS = 2
_STEPS = 150
_RATE = 0.05


def adapted(prior: Model, documents: Sequence[tuple[Reading, Mapping[str, str], str]]) -> Model:
    """The model with corrections for documents: what was read, labels by field (empty: not there), and the sender.

    The same documents give the same model.
    """
    known = [Labelled(reading=reading, labels=labels, group=group) for reading, labels, group in documents]
    rankers = dict(prior.rankers)
    for name, start, examples in _lists(prior, known):
        useful = [example for example in examples if any(example.right) and not all(example.right)]
        if useful:
            rankers[name] = corrected(start, useful)
    return replace(prior, rankers=rankers)


def _lists(prior: Model, documents: Sequence[Labelled]) -> Iterator[tuple[str, Ranker, list[Example]]]:
    """For each field: its ranker as it is, and the candidates of every document with those that are right."""
    if prior.kind == "invoice":
        from docmill.extraction.local.invoices.learning import candidates_of
        from docmill.extraction.local.invoices.reader import BY_HAND

        for name, examples in candidates_of(documents).items():
            yield name, prior.rankers.get(name, BY_HAND[name]), examples
    else:
        from docmill.extraction.local.receipts import RECEIPT

        for target in RECEIPT.targets:
            if target.name in prior.rankers:
                yield target.name, prior.rankers[target.name], examples_of(documents, target, prior.knowledge)


def corrected(ranker: Ranker, examples: Sequence[Example]) -> Ranker:
    """The ranker with its weights moved as far as these examples ask for."""
    rows = [row for example in examples for row in example.rows]
    names = _names(examples)
    inputs = table(rows, names)
    starts = np.cumsum([0, *(len(example.rows) for example in examples[:-1])])
    right = np.array([float(value) for example in examples for value in example.right])
    moved = _corrections(inputs, ranker.scores(rows), right, starts)
    weights = dict(ranker.weights)
    for name, value in zip(names, moved.tolist(), strict=True):
        weights[name] = weights.get(name, 0.0) + value
    return replace(ranker, weights=weights)


def _corrections(inputs: Floats, base: Floats, right: Floats, starts: Ints) -> Floats:
    """Adam on all lists at once: few hundred weights, none of them far from nothing."""
    moved, alike = np.zeros(inputs.shape[1]), np.ones(len(inputs))
    mean, square = np.zeros_like(moved), np.zeros_like(moved)
    for step in range(1, _STEPS + 1):
        slope, _ = pull(base + inputs @ moved, right, starts, alike)
        gradient = inputs.T @ slope + STRENGTH * moved
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = _RATE * (1 - step / (_STEPS + 1))
        moved = moved - rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return moved


def _names(examples: Sequence[Example]) -> list[str]:
    """All features that are no words, and the words that several groups share."""
    groups: dict[str, set[str]] = {}
    for number, example in enumerate(examples):
        for row in example.rows:
            for name in row:
                groups.setdefault(name, set()).add(example.group or str(number))
    return sorted(name for name, having in groups.items() if "=" not in name or len(having) >= _LEAST_GROUPS)
