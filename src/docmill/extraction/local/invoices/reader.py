"""Reading an invoice: lay it out, find candidates, let the rankers score them, choose what fits together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp
from operator import itemgetter

from docmill.documents.reading import Reading
from docmill.documents.skew import straightened
from docmill.extraction.askew import as_it_lies
from docmill.extraction.confidence import DOUBTED_BY_READER
from docmill.extraction.local.invoices import (
    amounts,
    currency,
    dates,
    extras,
    identifiers,
    kinds,
    names,
    parties,
    rows,
    tax_ids,
)
from docmill.extraction.local.invoices.items import Items, items_in
from docmill.extraction.local.invoices.money import FIELDS, Money, money_in
from docmill.extraction.local.invoices.paper import Option, Paper, paper_of
from docmill.extraction.local.invoices.wording import letters
from docmill.extraction.local.ranker import NONE, Ranker
from docmill.extraction.local.training import Model, shipped
from docmill.extraction.result import Extraction, FieldValue, Reader
from docmill.extraction.schema import FieldSchema, load_schema

RANKED = (
    "invoice_number",
    "issue_date",
    "due_date",
    "delivery_date",
    "currency",
    "seller_name",
    "buyer_name",
    *FIELDS,
)
"""Fields whose candidates are scored by a ranker."""
_POINTS = itemgetter(0)
_ABSENT = {"issue_date": -4.0, "seller_name": 1.0, "buyer_name": 2.0, "total": 1.0, "currency": 1.0}
BY_HAND = {name: Ranker(weights={"prior": 5.0, "none": _ABSENT.get(name, 2.5)}) for name in RANKED}
"""For fields that the model has no ranker for: the weights set by hand."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One invoice, laid out, with the candidates of every field; made once, for reading and for training."""

    reading: Reading
    """Its pages straightened."""
    paper: Paper
    items: Items = field(default_factory=Items)

    @cached_property
    def money(self) -> list[Money]:
        return money_in(self.paper, self.items)

    @cached_property
    def _looks(self) -> list[amounts.Look]:
        return amounts.looks_of(self.paper, self.items, self.money)

    @cached_property
    def _dated(self) -> list[Mapping[str, float]]:
        return dates.meanings_of(self.paper)

    @cached_property
    def named(self) -> list[tuple[names.Name, Mapping[str, float]]]:
        return parties.describe(self.paper, names.names_in(self.paper, self.items))

    def options(self, name: str) -> Sequence[Option]:
        """Candidates of a field."""
        match name:
            case "invoice_number":
                return identifiers.options(self.paper, self.items)
            case "issue_date" | "due_date" | "delivery_date":
                return dates.options(self.paper, self.items, name, self._dated)
            case "currency":
                return currency.options(self.paper)
            case "seller_name" | "buyer_name":
                return parties.options(self.named, name)
            case _:
                return amounts.options(self._looks, name)


def case_of(reading: Reading) -> Case:
    """Lay an invoice out."""
    straight = straightened(reading)
    paper = paper_of(straight)
    return Case(reading=straight, paper=paper, items=items_in(paper))


def read_invoice(reading: Reading, model: Model | None = None, schema: FieldSchema | None = None) -> Extraction:
    """The fields and rows of an invoice, with signals for calibration; `model` is the shipped one unless given."""
    model = model or shipped("invoice")
    schema = schema or load_schema("invoice")
    case = case_of(reading)
    candidates = {name: case.options(name) for name in RANKED}
    scores = {name: _scores(model, name, candidates[name]) for name in RANKED}
    found: dict[str, FieldValue] = {}
    for name in ("invoice_number", "issue_date", "delivery_date", "currency"):
        _add(found, name, candidates[name], scores[name])
    _add_due_date(found, candidates["due_date"], scores["due_date"])
    seller, buyer = _add_parties(found, candidates, scores)
    sums = amounts.choose(case.paper, case.money, candidates, scores)
    _add_sums(found, sums)
    for name, party, other in (("seller_address", seller, buyer), ("buyer_address", buyer, seller)):
        if (address := extras.address_of(case.paper, party, candidates["seller_name"], other)) is not None:
            found[name] = address
    found |= extras.parts(case.paper, case.money, case.items, sums)
    labelled = tax_ids.told_apart(extras.by_label(case.reading, schema, case.paper), case.paper, seller, buyer)
    found |= {name: value for name, value in labelled.items() if name not in found}
    if "currency" not in found and (code := currency.by_country(case.paper)):
        found["currency"] = FieldValue(value=code, raw="", confidence=0.5, signals={"score": 0.5, "guessed": 1.0})
    kind = kinds.kind_of(case.paper.sheet)
    made = Extraction(
        schema=schema.name,
        schema_version=schema.version,
        reader=Reader.LOCAL,
        document_type=kind,
        fields={name: value for name, value in found.items() if name in schema.fields},
        rows=rows.rows_of(case.paper, case.items, sums),
    )
    return as_it_lies(made, reading)


def _scores(model: Model, name: str, candidates: Sequence[Option]) -> list[float]:
    """One per candidate; "it is not there" is at 0."""
    ranker = model.rankers.get(name) or BY_HAND[name]
    made = ranker.scores([*(candidate.features for candidate in candidates), NONE])
    scores: list[float] = (made[:-1] - made[-1]).tolist()
    return scores


def _ranked(candidates: Sequence[Option], scores: Sequence[float]) -> list[tuple[Option, float]]:
    """The best candidate of each value, best first."""
    best: dict[str, tuple[Option, float]] = {}
    for option, score in zip(candidates, scores, strict=True):
        key = letters(option.value) or option.value
        if key not in best or score > best[key][1]:
            best[key] = (option, score)
    return sorted(best.values(), key=lambda pair: -pair[1])


def _add(found: dict[str, FieldValue], name: str, candidates: Sequence[Option], scores: Sequence[float]) -> None:
    ranked = _ranked(candidates, scores)
    if ranked and ranked[0][1] > 0:
        found[name] = _field(ranked[0][0], ranked, {})


def _field(
    chosen: Option, ranked: Sequence[tuple[Option, float]], more: Mapping[str, float], margin: float | None = None
) -> FieldValue:
    score = next((points for option, points in ranked if option is chosen), 0.0)
    if margin is None:
        margin = score - max([0.0, *[points for option, points in ranked if option.value != chosen.value][:1]])
    chance = 1 / (1 + exp(-max(-20.0, min(20.0, margin))))
    return FieldValue(
        value=chosen.value,
        raw=chosen.raw,
        confidence=chance,
        evidence=chosen.evidence,
        signals={"score": score, "margin": margin, "probability": chance, **chosen.signals, **more},
        alternatives=tuple(option.value for option, _ in ranked if option.value != chosen.value)[:3],
    )


def _add_due_date(found: dict[str, FieldValue], candidates: Sequence[Option], scores: Sequence[float]) -> None:
    """The day by which to pay; not before the invoice was written, if it can be helped."""
    issued = found["issue_date"].value if "issue_date" in found else ""
    kept = [(option, score) for option, score in zip(candidates, scores, strict=True) if score > 0]
    ranked = _ranked(
        [option for option, _ in kept], [score if option.value >= issued else score - 0.7 for option, score in kept]
    )
    if ranked:
        found["due_date"] = _field(ranked[0][0], ranked, {"after_issue": float(ranked[0][0].value >= issued)})


def _add_parties(
    found: dict[str, FieldValue], candidates: Mapping[str, Sequence[Option]], scores: Mapping[str, Sequence[float]]
) -> tuple[Option | None, Option | None]:
    """Seller and buyer: the best pair of two different names.

    How sure each is, is told by the best pair without it: that the name of one could be the other's, but for the other,
    says nothing against either.
    """
    sellers = _ranked(candidates["seller_name"], scores["seller_name"])[:6]
    buyers = _ranked(candidates["buyer_name"], scores["buyer_name"])[:6]
    pairs = [
        (seller_score + buyer_score, seller, buyer)
        for seller, seller_score in [*sellers, (None, 0.0)]
        for buyer, buyer_score in [*buyers, (None, 0.0)]
        if seller is None or buyer is None or not _same(seller.value, buyer.value)
    ]
    points, seller, buyer = max(pairs, key=_POINTS)
    if seller is not None:
        known = {"domain": seller.features.get("domain", 0.0), **_of_name(seller)}
        margin = points - max(each[0] for each in pairs if each[1] is not seller)
        found["seller_name"] = _field(seller, sellers, known, margin)
    if buyer is not None:
        margin = points - max(each[0] for each in pairs if each[2] is not buyer)
        found["buyer_name"] = _field(buyer, buyers, _of_name(buyer), margin)
    return seller, buyer


def _of_name(party: Option) -> dict[str, float]:
    """A legal form speaks for a name; people write the stop that ends one down, or do not; rather if it has others.

    What looks like a line of an address, a label or a title is chosen only for want of something better.
    """
    return {
        "legal": party.features.get("legal_inside", 0.0),
        "last_stop": party.value.endswith(".") * (0.5 if "." in party.value.split()[-1][:-1] else 1.0),
        "unlike": max(party.features.get(name, 0.0) for name in ("address", "label_like", "title")),
    }


def _same(one: str, other: str) -> bool:
    first, second = letters(one), letters(other)
    return first == second or (min(len(first), len(second)) > 4 and (first in second or second in first))


def _add_sums(found: dict[str, FieldValue], sums: amounts.Sums) -> None:
    doubted = {DOUBTED_BY_READER: 1.0} if sums.taxed_twice else {}
    for name, option in sums.chosen.items():
        margin = sums.margins.get(name, 0.0)
        chance = 1 / (1 + exp(-max(-20.0, min(20.0, margin))))
        found[name] = FieldValue(
            value=option.value,
            raw=option.raw,
            confidence=chance,
            evidence=option.evidence,
            signals={
                "score": sums.scores.get(name, 0.0),
                "margin": margin,
                "probability": chance,
                "arithmetic": float(sums.adds_up),
                "rate": float(sums.rated),
                **option.signals,
                **(doubted if name in ("subtotal", "tax") else {}),
            },
            alternatives=sums.others.get(name, ()),
        )
