"""A subtotal, a tax and a total: every choice of the three, and what they say about each other.

There are hundreds of choices, so they are weighed all at once, in whole numbers of the smallest digit: as exact as
decimals. No amount has more digits than such numbers hold, see `docmill.extraction.local.invoices.spans`.
"""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from docmill.extraction.local.boosting import Floats, Ints
from docmill.extraction.local.invoices.money import CENT
from docmill.extraction.local.invoices.paper import Option

FIELDS = ("subtotal", "tax", "total")
Scored = Sequence[tuple[Option, float]]
_Flags = NDArray[np.bool_]
_NEAR = Decimal("0.02")
_RATE_PLACES = 4
"""Digits behind the point of a rate in percent, at most."""


class Threes:
    """All choices, the best first; of each field the last choice is that it is not there."""

    def __init__(self, best: Mapping[str, Scored], rates: Collection[Decimal], sides: Collection[Decimal]) -> None:
        """Of scored candidates. `rates` are printed, `sides` are discounts and charges that a total may hold."""
        self._options: dict[str, list[Option | None]] = {
            name: [*(one for one, _ in best[name]), None] for name in FIELDS
        }
        scores = {name: np.array([*(score for _, score in best[name]), 0.0]) for name in FIELDS}
        subtotals, taxes, totals = ([Decimal(one.value) for one, _ in best[name]] for name in FIELDS)
        said = _agreement(subtotals, taxes, totals, rates, sides)
        points = scores["total"][:, None, None] + scores["subtotal"][:, None] + scores["tax"] + said.bonus
        self._adds_up, self._rated = said.adds_up.ravel(), said.rated.ravel()
        self._points: Floats = points.ravel()
        self._order: Ints = np.argsort(-self._points, kind="stable")
        total, subtotal, tax = np.unravel_index(self._order, points.shape)
        self._places = {"subtotal": subtotal, "tax": tax, "total": total}

    @property
    def points(self) -> float:
        """Of the best."""
        return float(self._points[self._order[0]])

    @property
    def adds_up(self) -> bool:
        """Whether in the best, subtotal and tax make the total."""
        return bool(self._adds_up[self._order[0]])

    @property
    def rated(self) -> bool:
        """Whether in the best, a printed rate makes the tax of the subtotal."""
        return bool(self._rated[self._order[0]])

    def chosen(self, field: str) -> Option | None:
        """What the best has for a field."""
        return self._options[field][int(self._places[field][0])]

    def others(self, field: str, most: int) -> list[tuple[float, Option | None]]:
        """The best with something else for this field, with their points."""
        own = _value(self.chosen(field))
        differ = np.array([_value(option) != own for option in self._options[field]])
        places = self._places[field]
        first = np.flatnonzero(differ[places])[:most]
        points = self._points[self._order[first]].tolist()
        return [(score, self._options[field][place]) for score, place in zip(points, places[first], strict=True)]


def _value(option: Option | None) -> str | None:
    return option.value if option is not None else None


class _Said(NamedTuple):
    """By total, subtotal and tax: what three amounts say about each other."""

    bonus: Floats
    adds_up: _Flags
    rated: _Flags


def _agreement(
    subtotals: Sequence[Decimal],
    taxes: Sequence[Decimal],
    totals: Sequence[Decimal],
    rates: Collection[Decimal],
    sides: Collection[Decimal],
) -> _Said:
    places = max([3, *(_digits(value) for value in (*subtotals, *taxes, *totals, *sides))])
    cent = int(CENT.scaleb(places))
    nets, levies, wholes = ([int(value.scaleb(places)) for value in some] for some in (subtotals, taxes, totals))
    shape = (len(wholes) + 1, len(nets) + 1, len(levies) + 1)
    said = _Said(np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool))
    whole, net, levy = (np.array(some, dtype=np.int64) for some in (wholes, nets, levies))
    whole = whole[:, None]
    aside = [int(side.scaleb(places)) for side in sides]
    said.bonus[:-1, -1, :-1] = np.where(levy < whole, 0.0, -2.0)
    said.bonus[:-1, :-1, -1] = _untaxed(net, whole, aside, cent)
    whole, net = whole[:, :, None], net[:, None]
    rated = np.array(_rated(nets, levies, rates, places), dtype=bool).reshape(len(nets), len(levies))
    # `VAT @ 0 % on 80.65`: no tax is all of what it is on, nor more.
    too_much = np.abs(levy) > np.abs(net)
    gap = net + levy - whole
    adds_up = np.abs(gap) <= cent
    bonus = np.where((np.abs(whole - net) <= cent) & (np.abs(levy) < np.abs(whole)), 0.5, rated - 1.0)
    if aside:
        bonus = np.where(_sided(gap, aside, cent, np.abs(levy)), rated + 3.5, bonus)
    # No tax on a total that is the subtotal says less than a tax that makes the two agree.
    bonus = np.where(adds_up, np.where((levy == 0) & (net == whole), 1.5, rated + 4.0), bonus)
    said.bonus[:-1, :-1, :-1] = np.where(too_much, -2.0, bonus)
    said.adds_up[:-1, :-1, :-1] = adds_up & ~too_much
    said.rated[:-1, :-1, :-1] = rated & ~too_much
    return said


def _untaxed(net: Ints, whole: Ints, sides: Sequence[int], cent: int) -> Floats:
    """What a subtotal and a total say about each other where there is no tax."""
    bonus = np.where(np.abs(net) > np.abs(whole), -1.5, -0.5)
    if sides:
        bonus = np.where(_sided(net - whole, sides, cent), 2.0, bonus)
    return np.where(net == whole, 1.0, bonus)


def _sided(gap: Ints, sides: Sequence[int], cent: int, levy: Ints | None = None) -> _Flags:
    """Whether a discount or a charge closes a gap; not one that is the tax itself."""
    closed = np.zeros(gap.shape, dtype=bool)
    for side in sides:
        closes = np.abs(gap + side) <= cent
        closed |= closes if levy is None else closes & (levy != abs(side))
    return closed


def _rated(nets: Sequence[int], levies: Sequence[int], rates: Collection[Decimal], places: int) -> list[list[bool]]:
    """Whether a tax is one of the printed rates of an amount."""
    percents = [int(rate.scaleb(_RATE_PLACES)) for rate in rates]
    hundred = 100 * 10**_RATE_PLACES
    near = int(_NEAR.scaleb(places)) * hundred
    due = [levy * hundred for levy in levies]
    found = []
    for net in nets:
        taxes = [net * percent for percent in percents]
        found.append([levy != 0 and min([abs(tax - levy) for tax in taxes], default=near + 1) <= near for levy in due])
    return found


def _digits(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0
