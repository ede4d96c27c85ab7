"""Fitting the local reader on labelled documents: used for the models that ship, and by `docmill learn`.

`train` fits a model on everything it is given. `cross_validate` reads each document with a model that has seen neither
it nor any other document of its group (its seller), so what it returns may be measured and calibrated against.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Self
from zlib import crc32

from docmill.documents.reading import Reading
from docmill.extraction.local.boosting import Growth
from docmill.extraction.local.candidates import Knowledge, Target
from docmill.extraction.local.layout import lay_out
from docmill.extraction.local.ranker import NONE, STRENGTH, Example, Ranker, fit
from docmill.extraction.result import Extraction

MODEL_VERSION = 1
"""Of the shape of the JSON; a model of another version is refused."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """A document whose fields are known."""

    reading: Reading
    labels: Mapping[str, str]
    """By field. A field that is not named is unknown; one that is named with an empty text is not on the page."""
    group: str = ""
    """Its seller or whatever else it must not share with what it is tested on; empty: on its own."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of document that can be learned."""

    name: str
    targets: tuple[Target, ...]
    learn: Callable[[Sequence[Labelled]], Knowledge] = lambda documents: {}
    """What is learned before candidates are made, such as a list of words; from the training part only."""
    growth: Mapping[str, Growth] = field(default_factory=dict)
    """How trees are grown, by field, where it differs from the usual."""
    strength: Mapping[str, float] = field(default_factory=dict)
    """How strongly weights are drawn to zero, by field, where it differs from the usual."""
    fit: "Callable[[Sequence[Labelled]], Model] | None" = None
    """For a kind that is laid out and fitted in its own way; its targets are then not used."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Everything a local reader knows about a kind of document."""

    kind: str
    rankers: Mapping[str, Ranker]
    knowledge: Knowledge = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As it ships with the package, or is stored by `docmill learn`."""
        return {
            "version": MODEL_VERSION,
            "kind": self.kind,
            "rankers": {name: ranker.as_json() for name, ranker in sorted(self.rankers.items())},
            "knowledge": dict(self.knowledge),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        if data.get("version") != MODEL_VERSION:
            raise ValueError(f"A model of version {data.get('version')}, not {MODEL_VERSION}: fit it anew.")
        rankers = {name: Ranker.from_json(ranker) for name, ranker in data["rankers"].items()}
        return cls(kind=data["kind"], rankers=rankers, knowledge=data["knowledge"])


def shipped(kind: str) -> Model:
    """The model of this kind that comes with the package."""
    text = resources.files("docmill.extraction.local").joinpath("models", f"{kind}.json").read_text(encoding="utf-8")
    return Model.from_json(json.loads(text))


def train(documents: Iterable[Labelled], kind: Kind) -> Model:
    """Fit a model; the same documents in the same order give the same model."""
    return _train(list(documents), kind, {})


_Seen = dict[tuple[int, str], Example | None]
"""Examples by the identity of the document and the field: most are the same in every fold."""


def _train(known: Sequence[Labelled], kind: Kind, seen: _Seen) -> Model:
    if kind.fit is not None:
        return kind.fit(known)
    knowledge = kind.learn(known)
    rankers = {}
    for target in kind.targets:
        examples = [_example(document, target, knowledge, seen) for document in known]
        useful = [example for example in examples if example is not None]
        strength = kind.strength.get(target.name, STRENGTH)
        rankers[target.name] = fit(useful, growth=kind.growth.get(target.name), strength=strength)
    return Model(kind=kind.name, rankers=rankers, knowledge=knowledge)


def cross_validate(
    documents: Sequence[Labelled],
    kind: Kind,
    read: Callable[[Reading, Model], Extraction],
    *,
    also: Sequence[Labelled] = (),
    folds: int = 5,
) -> list[Extraction]:
    """Each document as read by a model that has not seen its group; in the order of the documents.

    `also` are further documents to learn from; those of a group under test are left out too.
    """
    found: dict[int, Extraction] = {}
    seen: _Seen = {}
    for fold in range(folds):
        inside = [index for index, document in enumerate(documents) if _fold(document, index, folds) == fold]
        if not inside:
            continue
        groups = {documents[index].group for index in inside} - {""}
        rest = [document for index, document in enumerate(documents) if index not in set(inside)]
        model = _train([*rest, *(document for document in also if document.group not in groups)], kind, seen)
        for index in inside:
            found[index] = read(documents[index].reading, model)
    return [found[index] for index in range(len(documents))]


def _fold(document: Labelled, index: int, folds: int) -> int:
    return crc32((document.group or str(index)).encode()) % folds


def _example(document: Labelled, target: Target, knowledge: Knowledge, seen: _Seen) -> Example | None:
    key = (id(document), target.name)
    if target.informed or key not in seen:
        seen[key] = _made(document, target, knowledge)
    return seen[key]


def _made(document: Labelled, target: Target, knowledge: Knowledge) -> Example | None:
    label = document.labels.get(target.name)
    if label is None:
        return None
    layout = lay_out(document.reading)
    candidates = target.find(layout, knowledge)
    right = list(target.right(candidates, label)) if label else [False] * len(candidates)
    if label and not any(right):
        return None  # The page as it was read does not say it: choosing "not there" would be no better than missing it.
    rows = [*(candidate.features for candidate in candidates), {**NONE, **target.absent(layout)}]
    return Example(rows=rows, right=[*right, not label], group=document.group)


def examples_of(documents: Iterable[Labelled], target: Target, knowledge: Knowledge) -> list[Example]:
    """What these documents teach about one field."""
    found = (_made(document, target, knowledge) for document in documents)
    return [example for example in found if example is not None]
