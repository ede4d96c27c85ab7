"""Fitting the classifier of document types on documents whose type is known; used by the training script.

Multinomial logistic regression by full gradient steps: a few hundred documents, some thirty features, deterministic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from docmill.extraction.classification import PRECISE, WEIGHED, Classifier, DocumentType

_PULL = 0.02
_STEPS = 1500
_RATE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedDocument:
    """The features of a document, and what it is."""

    features: Mapping[str, float]
    type: DocumentType
    """The precise one: what the model does not weigh counts as `other`, and a credit note as an invoice."""
    group: str
    """Never split between fitting and measuring."""


def weighed(kind: DocumentType) -> DocumentType:
    """The type that the model is to give such a document."""
    if kind is DocumentType.CREDIT_NOTE:
        return DocumentType.INVOICE
    return kind if kind in WEIGHED else DocumentType.OTHER


def fit_types(documents: Sequence[TypedDocument]) -> Classifier:
    """The classifier that these documents speak for; each type counts alike, however many there are of it."""
    # The titles of other types settle their names; weighed as well, a mere mention of an order would unmake an invoice.
    told = {f"title_{kind.value}" for kind in PRECISE}
    names = sorted({name for document in documents for name in document.features} - told)
    table = np.array([[document.features.get(name, 0.0) for name in names] for document in documents])
    mean, scale = table.mean(axis=0), table.std(axis=0)
    scale = np.where(scale > 1e-6, scale, 1.0)
    inputs = np.hstack([np.clip((table - mean) / scale, -4, 4), np.ones((len(documents), 1))])
    wanted = np.array([[float(weighed(document.type) is kind) for kind in WEIGHED] for document in documents])
    share = (wanted / np.maximum(1.0, wanted.sum(axis=0))).sum(axis=1)
    share /= share.sum()
    weights = np.zeros((inputs.shape[1], len(WEIGHED)))
    pull = np.full((inputs.shape[1], 1), _PULL)
    pull[-1] = 0.0
    for _ in range(_STEPS):
        odds = inputs @ weights
        powers = np.exp(odds - odds.max(axis=1, keepdims=True))
        stated = powers / powers.sum(axis=1, keepdims=True)
        weights -= _RATE * (inputs.T @ ((stated - wanted) * share[:, None]) + pull * weights)
    return Classifier(
        features=tuple(names),
        mean=tuple(float(value) for value in mean),
        scale=tuple(float(value) for value in scale),
        weights={kind: tuple(float(value) for value in weights[:, at]) for at, kind in enumerate(WEIGHED)},
    )


def folds_of(documents: Sequence[TypedDocument], folds: int = 5) -> list[int]:
    """Which fold each document belongs to: groups stay together."""
    place = {name: number % folds for number, name in enumerate(sorted({document.group for document in documents}))}
    return [place[document.group] for document in documents]
