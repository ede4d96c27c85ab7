"""Net, tax and gross row by row, by rate or by item, and the row that sums them up: that one is the whole.

Each row of such a table adds up by itself, so that a part of the invoice looks as sound as the whole of it. What tells
them apart is that the whole is the sum of the parts, in every column.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import accumulate, combinations, permutations
from typing import NamedTuple

from docmill.extraction.local.invoices.money import CENT, money_text
from docmill.extraction.local.invoices.paper import Option, Paper, meanings
from docmill.extraction.local.invoices.spans import Number
from docmill.extraction.local.invoices.vocabulary import AMOUNT_LABELS

_MOST_NUMBERS = 8
"""Of a row that are added to each other."""
_MOST_ROWS = 200
"""That are added up."""
_MOST_RATED = 30
_NEXT = 2
"""Rows by rate stand no further apart: beside them, other text may have rows of its own."""
_HIGHEST = 30
"""Of rates that are written without a percent sign."""
_NEAR = Decimal("0.02")
_WHOLE = 3.0
"""Log odds of what sums up the parts; a part is as unlikely."""
_FIELDS = ("subtotal", "tax", "total")


class Three(NamedTuple):
    """What stands in one row: a net amount and a tax that make a gross amount."""

    net: Decimal
    tax: Decimal
    gross: Decimal
    row: int


class Breakdown(NamedTuple):
    """The whole, and the rows that it sums up."""

    whole: Three
    parts: tuple[Three, ...]


def breakdown_of(paper: Paper) -> Breakdown | None:
    """The largest sum of rows that each add up themselves, if a row says it, or an amount anywhere."""
    threes = [three for row in range(len(paper.sheet.rows)) if (three := _three(paper, row)) is not None]
    found = [
        Breakdown(three, parts)
        for place, three in enumerate(threes)
        for others in (threes[:place][::-1], threes[place + 1 :])
        if (parts := _parts(three, others))
    ]
    return max(found, key=lambda each: abs(each.whole.gross), default=None) or _unsaid(paper, threes)


def _unsaid(paper: Paper, threes: Sequence[Three]) -> Breakdown | None:
    """The largest sum of rows by rate, one beneath the other, that is printed anywhere: net and tax, or gross."""
    known = {three.row: three for three in threes}
    runs: list[list[Three]] = []
    for row in range(len(paper.sheet.rows)):
        if (three := _rated(paper, row, known.get(row))) is None:
            continue
        if runs and three.row - runs[-1][-1].row <= _NEXT and len(runs[-1]) < _MOST_RATED:
            runs[-1].append(three)
        else:
            runs.append([three])
    runs = [run for run in runs if len(run) > 1]
    printed = {number.value for number in paper.numbers if number.money} if runs else set()
    best: Breakdown | None = None
    for run in runs:
        columns = [part.net for part in run], [part.tax for part in run], [part.gross for part in run]
        upto = [tuple(accumulate(column, initial=Decimal(0))) for column in columns]
        for first, last in combinations(range(len(run) + 1), 2):
            net, tax, gross = (sums[last] - sums[first] for sums in upto)
            if last - first < 2 or (gross not in printed and not (net in printed and tax in printed)):
                continue
            # What is taken off is a rate of something, too.
            if (gross in printed or net - tax not in printed) and (best is None or abs(gross) > abs(best.whole.gross)):
                best = Breakdown(Three(net, tax, gross, run[last - 1].row), tuple(run[first:last]))
    return best


def _rated(paper: Paper, row: int, three: Three | None) -> Three | None:
    """What a row says of one rate: an amount, and the tax that the rate makes of it."""
    numbers = [number for cell in paper.sheet.rows[row] for number in paper.numbers_of.get(id(cell), ())]
    values = [number.value for number in numbers if number.money][:_MOST_NUMBERS]
    rates = [number.value for number in numbers if number.percent]
    if not values or (not rates and not any(AMOUNT_LABELS(cell.plain).get("tax") for cell in paper.sheet.rows[row])):
        return None
    if rates and three is not None:
        return three
    for rate in rates or [number.value for number in numbers[:1] if 0 < number.value <= _HIGHEST]:
        if not rate:
            return Three(values[0], Decimal(0), values[0], row)
        for net, tax in permutations(values, 2):
            if net != rate and tax and abs(net * rate / 100 - tax) <= _NEAR and net - tax not in values:
                return Three(net, tax, net + tax, row)
    return None


def _three(paper: Paper, row: int) -> Three | None:
    """The largest amount of a row that is the sum of two others, the smaller of which is the tax."""
    numbers = [number for cell in paper.sheet.rows[row] for number in paper.numbers_of.get(id(cell), ())]
    money = [number for number in numbers if number.money][-_MOST_NUMBERS:]
    values = [number.value for number in money]
    if len(values) < 3:
        return None
    known = set(values)
    best: Three | None = None
    for one, other in combinations(money, 2):
        gross = one.value + other.value
        if one.value * other.value < 0 or gross not in known or not gross or (best and abs(best.gross) >= abs(gross)):
            continue
        net, tax = (one, other) if abs(one.value) >= abs(other.value) else (other, one)
        # Halves of a tax make the tax; no tax is as much of what it is on. Without tax, net and gross are printed both.
        if 2 * abs(tax.value) >= abs(net.value) or (not tax.value and values.count(gross) < 2):
            continue
        if values.index(gross) < money.index(tax) < money.index(net) and not _called_tax(paper, tax):
            # A price, what is taken off it, and what is left.
            continue
        best = Three(net.value, tax.value, gross, row)
    return best


def _called_tax(paper: Paper, number: Number) -> bool:
    means = meanings(AMOUNT_LABELS, paper.labels(number.cell, number.start, number.end))
    return means.get("tax", 0.0) > means.get("discount", 0.0)


def _parts(whole: Three, others: Sequence[Three]) -> tuple[Three, ...]:
    """The nearest rows, two or more, that make the whole in all three columns."""
    net = tax = gross = Decimal(0)
    for count, part in enumerate(others[:_MOST_ROWS], start=1):
        net, tax, gross = net + part.net, tax + part.tax, gross + part.gross
        near = CENT * count
        if (
            count > 1
            and abs(net - whole.net) <= near
            and abs(tax - whole.tax) <= near
            and abs(gross - whole.gross) <= near
        ):
            return tuple(others[:count])
        if abs(gross) > abs(whole.gross) + near:
            break
    return ()


def weighed(
    breakdown: Breakdown, candidates: Mapping[str, Sequence[Option]], scores: Mapping[str, Sequence[float]]
) -> dict[str, Sequence[float]]:
    """The scores, once it is known what is the whole and what are parts of it."""
    made = dict(scores)
    wholes = [money_text(value) for value in breakdown.whole[:3]]
    parts = {money_text(value) for part in breakdown.parts for value in part[:3]} - {*wholes}
    for name, whole in zip(_FIELDS, wholes, strict=True):
        made[name] = [
            score + _WHOLE * ((option.value == whole) - (option.value in parts))
            for option, score in zip(candidates[name], scores[name], strict=True)
        ]
    return made


def summed(paper: Paper, breakdown: Breakdown) -> Option:
    """The tax of the whole as the sum of its parts: it need not be printed."""
    numbers = [
        number
        for part in breakdown.parts
        for cell in paper.sheet.rows[part.row]
        for number in paper.numbers_of.get(id(cell), ())
        if number.money and number.value == part.tax
    ]
    page = numbers[0].cell.page
    return Option(
        value=money_text(breakdown.whole.tax),
        raw=" + ".join(number.text for number in numbers),
        spans=(),
        features={},
        signals={"label": 0.9, "repeats": 1.0, "summed": 1.0},
        tokens=tuple(token for number in numbers if number.cell.page == page for token in number.tokens),
        page=page,
    )
