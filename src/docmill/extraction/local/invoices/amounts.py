"""Subtotal, tax, total and amount due: candidates with features, and the choice of all four together.

Each amount is scored for each field on its own first. What is chosen is the set of four that scores best together:
a subtotal and a tax that make the total, a rate that makes the tax of the subtotal, and a total that less what was paid
is the amount due speak for each other.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from math import log
from typing import NamedTuple

from docmill.extraction.local.invoices.breakdowns import breakdown_of, summed, weighed
from docmill.extraction.local.invoices.due import due_margin, due_of, left_of, unpaid
from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.money import FIELDS, MEANING, Money, money_text
from docmill.extraction.local.invoices.paper import Option, Paper
from docmill.extraction.local.invoices.priors import prior
from docmill.extraction.local.invoices.settled import Paid, paid_of
from docmill.extraction.local.invoices.threes import FIELDS as SUMMED
from docmill.extraction.local.invoices.threes import Threes
from docmill.extraction.local.invoices.wording import plain

_TAX_OF = re.compile(
    r"\b(?:mwst|ust|umsatzsteuer|vat|tva|btw|iva|[csi]?gst|utgst|hst|[pq]st|tps|tvq|moms|mva|alv|dph|tax)\b\W*\d|"
    r"\d\s?%\W*(?:mwst|ust|vat|tva|btw|iva|moms|mva|alv|dph|[csi]?gst|[hpq]st)"
)
"""The row of a tax, whatever it is on: `Versandkosten USt. 19 %`."""
_BASE_OF = re.compile(r"%\W*(?:\w+\W+)?(?:auf|on|of|von|aus|sur|de|su|van|over)\W*$")
"""Before what is taxed: `19 % USt. auf`."""
_JUST_BEFORE = 40
"""Letters before an amount that may say what it is on."""
_SUMMED = 1.0
"""Log odds of a tax that is not printed, but is the sum of what is printed rate by rate."""
_TAKEN_OFF = 3.0
"""Log odds against a discount as the tax."""
_ROUNDED = Decimal(5)
"""The most that a total is rounded by."""
KEPT = 7
"""Candidates per field that are tried together."""
_RIVALS = 40
"""Of the choices with another value for a field: their values are its alternatives."""


class Look(NamedTuple):
    """An amount, as it is kept and as it is written, how often it is, and its features whatever it is taken for."""

    money: Money
    value: str
    raw: str
    repeats: float
    features: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Sums:
    """The amounts that were chosen together."""

    chosen: Mapping[str, Option]
    adds_up: bool
    """Whether subtotal and tax make the total."""
    rated: bool
    """Whether a printed rate makes the tax of the subtotal."""
    scores: Mapping[str, float]
    margins: Mapping[str, float]
    others: Mapping[str, tuple[str, ...]]
    settled: Paid | None = None
    """What was paid of the total, if no amount says what is left."""

    @property
    def taxed_twice(self) -> bool:
        """Whether the tax is more than what it is on: one of the two is something else."""
        net, levy, whole = (
            Decimal(self.chosen[name].value) if name in self.chosen else None for name in ("subtotal", "tax", "total")
        )
        if levy is None or (net is None and whole is None):
            return False
        base = net if net is not None else (whole or Decimal(0)) - levy
        return abs(levy) > abs(base)


def looks_of(paper: Paper, items: Items, money: Sequence[Money]) -> list[Look]:
    """What is the same of each amount whichever of the four it may be."""
    counts = Counter(abs(each.number.value) for each in money)
    largest = max((abs(each.number.value) for each in money if not each.in_items), default=Decimal(0))
    first = min(items.rows, default=0)
    # The amounts of a long table look alike: what is alike is one object, and is weighed once.
    alike: dict[tuple[float, ...], Mapping[str, float]] = {}
    found = []
    for each in money:
        number = each.number
        value = abs(number.value)
        features = {
            "unlabelled": float(not each.means),
            "repeats": min(log(counts[value]), 2.0),
            "in_items": float(each.in_items),
            "below_items": float(bool(items.rows) and number.cell.row > first and not each.in_items),
            "currency": float(number.currency is not None),
            "cents": float(number.decimals == 2),
            "largest": float(value == largest),
            "last_of_row": float(number.cell is paper.sheet.rows[number.cell.row][-1]),
            "zero": float(value == 0),
            "negative": float(number.value < 0),
            "large_type": min(number.cell.height / paper.sheet.height, 2.5) - 1.0,
            "total_label": each.means.get("total", 0.0),
        }
        shared = alike.setdefault(tuple(features.values()), features)
        found.append(Look(each, money_text(number.value), number.text, float(counts[value]), shared))
    return found


def options(looks: Sequence[Look], field: str) -> list[Option]:
    """Candidates of one field."""
    meaning = MEANING[field]
    alike: dict[tuple[int, float, float], Mapping[str, float]] = {}
    found = []
    for each, value, raw, repeats, shared in looks:
        number = each.number
        own = each.means.get(meaning, 0.0)
        others = [sure for name, sure in each.means.items() if name != meaning] if each.means else ()
        rival = max(others) if others else 0.0
        key = (id(shared), own, rival)
        if (features := alike.get(key)) is None:
            features = alike[key] = _features(field, own, rival, shared)
        found.append(
            Option(
                value=value,
                raw=raw,
                spans=(),
                features=features,
                signals={"label": own, "repeats": repeats},
                tokens=number.tokens,
                page=number.cell.page,
            )
        )
    return found


def _features(field: str, own: float, rival: float, shared: Mapping[str, float]) -> Mapping[str, float]:
    features = {
        "label": own,
        "label_strong": float(own >= 0.75),
        "rival": rival,
        "rival_stronger": float(rival > own),
        **shared,
    }
    features["prior"] = prior(field, features)
    return features


def choose(
    paper: Paper,
    money: Sequence[Money],
    candidates: Mapping[str, Sequence[Option]],
    scores: Mapping[str, Sequence[float]],
) -> Sums:
    """The best set of four; `scores` are those of the candidates, with "it is not there" at 0."""
    if (breakdown := breakdown_of(paper)) is not None:
        scores = weighed(breakdown, candidates, scores)
    scores = {**scores, "tax": _less_taken_off(money, scores["tax"])}
    best_of = {field: _best(candidates[field], scores[field]) for field in FIELDS}
    best_of = {field: [(option, _outside(option, score)) for option, score in best] for field, best in best_of.items()}
    best_of["tax"] = _with_sums(paper, money, best_of["tax"])
    if breakdown is not None and breakdown.whole.tax and money_text(breakdown.whole.tax) not in _values(best_of["tax"]):
        best_of["tax"].append((summed(paper, breakdown), _SUMMED))
    rates = {number.value for number in paper.numbers if number.percent and 0 < number.value <= 40}
    paid = {abs(each.number.value) for each in money if each.means.get("paid", 0.0) >= 0.7} | {
        abs(each.number.value) for each in money if each.means.get("rounding", 0.0) >= 0.7
    }
    sides = {-abs(each.number.value) for each in money if each.means.get("discount", 0.0) >= 0.7} | {
        abs(each.number.value)
        for each in money
        if each.means.get("shipping", 0.0) >= 0.7 and not _TAX_OF.search(_line(paper, each))
    }
    sides = {value for value in sides if value} - {each.number.value for each in money if each.in_items}
    if len(sides) > 1:
        sides.add(sum(sides, Decimal(0)))
    sides |= _rounding(money)
    best = Threes(best_of, rates, sides)
    chosen = {name: option for name in SUMMED if (option := best.chosen(name)) is not None}
    total = chosen.get("total")
    due = left_of(money, candidates["amount_due"], total) or due_of(best_of["amount_due"], total, paid)
    settled = None
    if total is not None and due is not None and due.value == total.value:
        settled = paid_of(paper, money, Decimal(total.value))
        due = unpaid(due, settled) if settled is not None else due
    if due is not None:
        chosen["amount_due"] = due
    margins, others = {}, {}
    for name in SUMMED:
        rest = best.others(name, _RIVALS)
        margins[name] = best.points - rest[0][0] if rest else 9.0
        others[name] = tuple(dict.fromkeys(option.value for _, option in rest if option is not None))[:3]
    ranked = best_of["amount_due"]
    others["amount_due"] = tuple(option.value for option, _ in ranked if due is None or option.value != due.value)[:3]
    margins["amount_due"] = due_margin(ranked, due, margins.get("total", 0.0), chosen.get("total"))
    final = {
        name: {id(option): score for option, score in best_of[name]}.get(id(option), 0.0)
        for name, option in chosen.items()
    }
    return Sums(
        chosen=chosen,
        adds_up=best.adds_up,
        rated=best.rated,
        scores=final,
        margins=margins,
        others=others,
        settled=settled,
    )


def _less_taken_off(money: Sequence[Money], scores: Sequence[float]) -> list[float]:
    """The scores of taxes: what is taken off a price makes another price with what is left, too, and is none."""
    return [
        score - _TAKEN_OFF if each.means.get("discount", 0.0) > max(0.5, each.means.get("tax", 0.0)) else score
        for each, score in zip(money, scores, strict=True)
    ]


def _values(best: Sequence[tuple[Option, float]]) -> set[str]:
    return {option.value for option, _ in best}


def _rounding(money: Sequence[Money]) -> set[Decimal]:
    """What a total is rounded by: up or down, with its sign or without."""
    values = {abs(each.number.value) for each in money if each.means.get("rounding", 0.0) >= 0.7}
    return {sign * value for value in values if 0 < value <= _ROUNDED for sign in (1, -1)}


def _line(paper: Paper, each: Money) -> str:
    """The words of the row in front of an amount."""
    return " ".join(cell.plain for cell in paper.sheet.rows[each.number.cell.row] if cell.left <= each.number.cell.left)


def _is_tax(paper: Paper, each: Money) -> bool:
    sure = each.means.get("tax", 0.0)
    return (sure >= 0.6 and sure == max(each.means.values())) or bool(_TAX_OF.search(_line(paper, each)))


def _outside(option: Option, score: float) -> float:
    """The sums of one item agree too: an amount within the items is the last to be believed."""
    return score - 1.5 if option.features.get("in_items") else score


def _best(candidates: Sequence[Option], scores: Sequence[float]) -> list[tuple[Option, float]]:
    """The best few with different values; what is printed twice counts once, at its best place."""
    found: dict[str, tuple[Option, float]] = {}
    for option, score in zip(candidates, scores, strict=True):
        known = found.get(option.value)
        if known is None or score > known[1]:
            found[option.value] = (option, score)
    return sorted(found.values(), key=lambda pair: -pair[1])[:KEPT]


def _with_sums(
    paper: Paper, money: Sequence[Money], best: Sequence[tuple[Option, float]]
) -> list[tuple[Option, float]]:
    """Taxes that are printed apart (two rates, state and central tax) also as their sum."""
    parts = [
        each
        for each in money
        if _is_tax(paper, each)
        and not each.in_items
        and each.number.value
        and not _BASE_OF.search(plain(each.number.cell.text[: each.number.start])[-_JUST_BEFORE:])
    ]
    found = list(best)
    values = _values(best)
    for count in (2, 3):
        for group in combinations(parts[:6], count):
            if (
                len({_place(paper, each) for each in group}) < count
                or len({each.number.value > 0 for each in group}) > 1
            ):
                continue
            value = money_text(sum((each.number.value for each in group), Decimal(0)))
            if value in values:
                continue
            values.add(value)
            first = group[0].number
            option = Option(
                value=value,
                raw=" + ".join(each.number.text for each in group),
                spans=(),
                features={},
                signals={"label": min(each.means.get("tax", 0.0) for each in group), "repeats": 1.0, "summed": 1.0},
                tokens=tuple(
                    token for each in group if each.number.cell.page == first.cell.page for token in each.number.tokens
                ),
                page=first.cell.page,
            )
            found.append((option, best[0][1] - 1.0 if best else 0.0))
    return found


def _place(paper: Paper, each: Money) -> tuple[int, str]:
    """The row of a tax, and its rate if that stands above it: rates may stand side by side."""
    over = [
        label.text for label in paper.labels(each.number.cell, each.number.start, each.number.end) if "%" in label.text
    ]
    return each.number.cell.row, over[0] if over else ""
