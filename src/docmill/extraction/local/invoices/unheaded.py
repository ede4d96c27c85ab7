"""Items without a heading: amounts one beneath the other that make the one beneath them all.

On bills of telephone, energy, rides and craft the items are words and an amount, with other boxes left and right of
them. So what is looked at is the column of amounts and not the row.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from docmill.extraction.local.invoices.grid import CENT
from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.sheet import Cell
from docmill.extraction.local.invoices.spans import Number
from docmill.extraction.local.invoices.vocabulary import AMOUNT_LABELS

_EDGE = 0.012
"""Widths of the page: amounts of one column end no further apart."""
_APART = 8
"""Rows between two amounts of one run."""
_CHANCE = 2
"""Amounts whose sum may be the next one without anything being meant by it."""
_MOST = 200
"""Amounts of one run."""
_SURE = 0.55
_SUMS = ("subtotal", "total", "due")


class Line(NamedTuple):
    """An amount, and the words left of it."""

    amount: Number
    words: tuple[Cell, ...]

    @property
    def label(self) -> str:
        """The words that stand nearest."""
        return self.words[-1].plain

    def means(self, *names: str) -> bool:
        """Whether its label says one of these."""
        meaning = AMOUNT_LABELS(self.label)
        return any(meaning.get(name, 0.0) >= _SURE for name in names)

    @property
    def taxes(self) -> bool:
        """Whether it is a tax, or what rounds a sum."""
        means = [AMOUNT_LABELS(cell.plain) for cell in self.words]
        return any(meaning.get(name, 0.0) >= _SURE for meaning in means for name in ("tax", "rounding"))


def lines_of(paper: Paper, sums: set[Decimal]) -> list[tuple[int, Number, Cell]]:
    """The best run of amounts that make one beneath them: rows, amounts and what they are for."""
    best: Sequence[Line] = ()
    points = 0.0
    for column in _columns(paper):
        closed = {place for place, line in enumerate(column) if line.means(*_SUMS, "carried")}
        for place, last in enumerate(column):
            run = _run(column, place, closed)
            some = sum(bool(line.amount.value) for line in run)
            if some < 2 or (some <= _CHANCE and not last.means(*_SUMS)):
                continue
            closed.add(place)
            net = last.means("subtotal")
            worth = len(run) + 3.0 * net + 2.0 * (last.amount.value in sums) - 2.0 * sum(line.taxes for line in run)
            if worth > points:
                best, points = _untaxed(paper, run, net=net), worth
    return [(line.amount.cell.row, line.amount, _described(line, best)) for line in best]


def _untaxed(paper: Paper, run: Sequence[Line], *, net: bool) -> Sequence[Line]:
    """Without the taxes on the others: those before a total, and all, if what is left makes a sum that is printed too.

    Before a net amount (`net`), a tax is one that is itself sold on.
    """
    rest = [line for line in run if not line.taxes]
    total = sum((line.amount.value for line in rest), Decimal(0))
    last = run[-1].amount.cell.row
    printed = (number.value for number in paper.numbers if number.money and number.cell.row > last)
    if rest and any(abs(value - total) <= CENT for value in printed):
        return rest
    while not net and len(run) > 1 and run[-1].taxes:
        run = run[:-1]
    return run


def _columns(paper: Paper) -> Iterator[list[Line]]:
    """Amounts with words before them, by where they end."""
    lines = []
    for number in paper.numbers:
        if number.money and paper.is_money(number.cell):
            row = paper.sheet.rows[number.cell.row]
            words = [cell for cell in row if cell.left < number.left and cell.worded and not paper.is_value(cell)]
            if words:
                lines.append(Line(number, tuple(words)))
    lines.sort(key=lambda line: line.amount.right)
    column: list[Line] = []
    for line in lines:
        if column and line.amount.right - column[-1].amount.right > _EDGE:
            yield sorted(column, key=lambda each: each.amount.cell.row)
            column = []
        column.append(line)
    yield sorted(column, key=lambda each: each.amount.cell.row)


def _run(column: Sequence[Line], place: int, closed: set[int]) -> Sequence[Line]:
    """The amounts right above one that make it; not through other sums, nor what was carried over."""
    wanted, total = column[place].amount.value, Decimal(0)
    for at in range(place - 1, max(place - _MOST, 0) - 1, -1):
        row = column[at].amount.cell.row
        # What has grown far beyond it is hardly made smaller by discounts.
        if at in closed or column[at + 1].amount.cell.row - row > _APART or abs(total) > 3 * abs(wanted):
            break
        total += column[at].amount.value
        if wanted and abs(total - wanted) <= CENT and place - at > 1:
            return column[at:place]
    return ()


def _described(line: Line, run: Sequence[Line]) -> Cell:
    """What an amount is for: where most of the run has its words begin; boxes beside them have others."""
    edges = Counter(round(cell.left, 2) for each in run for cell in each.words)
    return max(line.words, key=lambda cell: edges[round(cell.left, 2)])


def naming(paper: Paper, words: Sequence[Cell]) -> Sequence[Cell]:
    """Words that name what was sold: the line above, if these only say that the amount is one without tax."""
    if not words or AMOUNT_LABELS(words[0].plain).get("subtotal", 0.0) < 0.55 or not words[0].row:
        return words
    above = paper.sheet.rows[words[0].row - 1]
    close = above[0].page == words[0].page and words[0].top - above[0].bottom < words[0].height
    naming = [cell for cell in above if cell.worded and not paper.is_value(cell)]
    return naming if close and naming and not any(map(paper.is_money, above)) else words
