"""Headings of columns that stand so close that they look like one: told apart by what stands beneath them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.sheet import Cell, Token

_DEEP = 4
"""Rows beneath a heading in which the first item is looked for."""
_MOST = 16
"""Words of a heading that are told apart."""
_MOST_GAPS = 8
_WIDER = 1.2
"""Than the narrowest gap of a cell is the gap between two columns."""
_ALONE = 0.4
"""Heights of a line: as wide is the gap between two words that are two columns."""
Piece = tuple[float, float]
"""From where to where something goes."""


def parted(paper: Paper, row: Sequence[Cell], named: Callable[[Cell], str | None]) -> list[Cell]:
    """The cells of a heading, those apart that head different columns; `named` says which column a cell names."""
    if not any(1 < len(cell.tokens) <= _MOST for cell in row):
        return list(row)
    beneath = _beneath(paper, row)
    found: list[Cell] = []
    for cell in row:
        found += _parts(cell, beneath, named) if 1 < len(cell.tokens) <= _MOST else (cell,)
    return found


def _beneath(paper: Paper, row: Sequence[Cell]) -> list[Piece]:
    """From where to where the numbers and words of the first row with an amount and more go."""
    for below in paper.sheet.rows[row[0].row + 1 : row[0].row + 1 + _DEEP]:
        pieces: list[Piece] = []
        amounts = 0
        for cell in below:
            numbers = paper.numbers_of.get(id(cell), ())
            amounts += any(number.money for number in numbers)
            if numbers and paper.is_value(cell):
                pieces += [(number.left, number.right) for number in numbers]
            else:
                pieces.append((cell.left, cell.right))
        if below[0].page == row[0].page and amounts and len(pieces) > max(2, len(row) - 1):
            return pieces
    return []


def _parts(cell: Cell, beneath: Sequence[Piece], named: Callable[[Cell], str | None]) -> Sequence[Cell]:
    """A cell, or its words by column: where gaps are wide, if that tells columns apart that are called differently."""
    under = [piece for piece in beneath if piece[0] < cell.right and cell.left < piece[1]]
    gaps = [after.left - before.right for before, after in pairwise(cell.tokens)]
    least = min(gaps)
    wide = [
        place
        for place, gap in enumerate(gaps, start=1)
        if gap >= (_WIDER * least if gap > least else _ALONE * cell.height)
    ]
    whole = named(cell)
    wide = sorted(sorted(wide, key=lambda place: -gaps[place - 1])[:_MOST_GAPS])
    for count in range(min(len(under) - 1, len(wide)), 0, -1):
        best = min(combinations(wide, count), key=lambda cuts: _misfit(_cut(cell.tokens, cuts), under))
        parts = [replace(cell, tokens=tokens) for tokens in _cut(cell.tokens, best)]
        kinds = [named(part) for part in parts]
        if all(kinds) and len({*kinds}) > 1 and (whole is None or len({*kinds}) == len(kinds)):
            return parts
    return (cell,)


def _cut(tokens: tuple[Token, ...], cuts: Sequence[int]) -> list[tuple[Token, ...]]:
    return [tokens[first:last] for first, last in pairwise((0, *cuts, len(tokens)))]


def _misfit(groups: Sequence[tuple[Token, ...]], under: Sequence[Piece]) -> float:
    """How far groups of words are from what they may head: by their left edges, their right edges or their middles."""
    return sum(min(_distances(group, under)) for group in groups)


def _distances(group: tuple[Token, ...], under: Sequence[Piece]) -> Iterator[float]:
    left, right = group[0].left, group[-1].right
    for first, last in under:
        yield min(abs(left - first), abs(right - last), abs(left + right - first - last) / 2)
