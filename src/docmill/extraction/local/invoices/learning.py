"""Fitting the rankers of an invoice: how far to trust the weights set by hand, and small corrections to them.

There are few labelled invoices and they come from few sellers, so the sum of the weights by hand is one feature beside
the others, and the others are made small: the penalty on weights then keeps them near zero unless many groups agree.
No group counts more than `PER_GROUP` times, and no feature is a word.
"""

from collections import Counter
from collections.abc import Sequence

from docmill.extraction.local.boosting import Growth
from docmill.extraction.local.invoices.money import FIELDS as AMOUNTS
from docmill.extraction.local.invoices.reader import BY_HAND, RANKED, Case, case_of
from docmill.extraction.local.ranker import NONE, Example, Ranker, fit
from docmill.extraction.local.training import Kind, Labelled, Model
from docmill.extraction.values.amounts import labelled_amount
from docmill.extraction.values.texts import loose

SHADE = 0.15
"""By how much features other than the sum by hand are made smaller, which makes the penalty on them stronger."""
STRENGTH = 0.3
PER_GROUP = 3
FEWEST = 8
"""Documents from which on a field is fitted; below, the weights by hand stand."""


def fit_invoices(documents: Sequence[Labelled]) -> Model:
    """A model of these documents; the same documents in the same order give the same model."""
    seen: Counter[str] = Counter()
    kept: list[tuple[Labelled, Case]] = []
    for number, document in enumerate(documents):
        group = document.group or f"#{number}"
        seen[group] += 1
        if seen[group] <= PER_GROUP:
            kept.append((document, case_of(document.reading)))
    rankers = {}
    for name in RANKED:
        examples = [made for document, case in kept if (made := _example(document, case, name)) is not None]
        if len(examples) >= FEWEST:
            rankers[name] = _fitted(name, examples)
    return Model(kind="invoice", rankers=rankers)


def _fitted(name: str, examples: Sequence[Example]) -> Ranker:
    made = fit(examples, growth=Growth(trees=0), strength=STRENGTH)
    weights = {each: weight * (1.0 if each == "prior" else SHADE) for each, weight in made.weights.items()}
    # Labels seldom say that a field is not on the page: where "not there" lies is not learned but kept in proportion.
    hand = BY_HAND[name].weights
    weights["none"] = hand["none"] * weights["prior"] / hand["prior"]
    return Ranker(weights=weights)


def _example(document: Labelled, case: Case, name: str) -> Example | None:
    label = document.labels.get(name)
    if not label:
        return None
    options = case.options(name)
    wanted = _comparable(name, label)
    right = [_comparable(name, option.value) == wanted for option in options]
    if not any(right):
        return None
    rows = [
        {each: value if each == "prior" else value * SHADE for each, value in option.features.items()}
        for option in options
    ]
    return Example(rows=[*rows, NONE], right=[*right, False], group=document.group)


def candidates_of(documents: Sequence[Labelled]) -> dict[str, list[Example]]:
    """For each field the candidates of every document, as a ranker sees them, and which are right.

    A label that is empty says that the field is not there.
    """
    cases = [(document, case_of(document.reading)) for document in documents]
    found: dict[str, list[Example]] = {name: [] for name in RANKED}
    for name, examples in found.items():
        for document, case in cases:
            label = document.labels.get(name)
            if label is not None:
                options = case.options(name)
                wanted = _comparable(name, label)
                right = [bool(label) and _comparable(name, option.value) == wanted for option in options]
                if any(right) or not label:
                    rows = [*(option.features for option in options), NONE]
                    examples.append(Example(rows=rows, right=[*right, not label], group=document.group))
    return found


def _comparable(name: str, value: str) -> object:
    if name in AMOUNTS:
        return labelled_amount(value)
    return loose(value) if name.endswith("_name") else value.strip()


KIND = Kind(name="invoice", targets=(), fit=fit_invoices)
