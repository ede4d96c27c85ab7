"""Which cells of an invoice are labels by where they stand, whatever their words."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.party_words import has_form, in_address
from docmill.extraction.local.invoices.sheet import Cell

_COLON = re.compile(r":(?!\d\d\b)")
_SAME = 0.006
"""Widths of the page: how far the beginnings of cells of one column may lie apart."""
_LARGER = 1.35
"""How much higher than its value a label is at most."""
_NEAR = 4
"""Rows up or down in which other labels of a column stand."""
_FEWEST = 2
"""Other cells that must be labels of values before one in line with them is taken for one."""


def heads_in(paper: Paper) -> set[int]:
    """By identity: cells of rows that stand over a row of values, each over its own, as in a bar of boxes."""
    found: set[int] = set()
    for row, below in pairwise(paper.sheet.rows):
        if len(row) <= _FEWEST or len(below) <= _FEWEST or row[0].page != below[0].page:
            continue
        over = [(cell, under) for cell in row if (under := _under(cell, below)) is not None]
        if sum(_is_value(paper, under) for _, under in over) > _FEWEST - 1:
            found |= {id(cell) for cell, under in over if not _in_address(under) and _may_label(cell)}
    return found


def keys_in(paper: Paper) -> set[int]:
    """By identity: cells left of an amount, and those of a column of labels with their values in the next one."""
    found: set[int] = set()
    columns: dict[tuple[int, int], list[tuple[Cell, Cell]]] = defaultdict(list)
    for cell, after in _pairs(paper):
        if paper.is_money(after):
            found.add(id(cell))
        columns[cell.page, round(cell.left / _SAME)].append((cell, after))
    for column in columns.values():
        rows = [cell.row for cell, _ in column]
        for cell, after in column:
            # In the order of their rows, so those nearby are neighbours.
            near = column[bisect_left(rows, cell.row - _NEAR) : bisect_right(rows, cell.row + _NEAR)]
            beside = [other for key, other in near if key is not cell and abs(other.left - after.left) < _SAME]
            if sum(_is_value(paper, other) for other in [*beside, after]) >= _FEWEST and beside:
                found.add(id(cell))
    return found


def _pairs(paper: Paper) -> Iterator[tuple[Cell, Cell]]:
    """Cells that could be labels, each with the next one of its row."""
    for row in paper.sheet.rows:
        for cell, after in pairwise(row):
            if cell.worded and _may_label(cell) and cell.height < _LARGER * after.height:
                yield cell, after


def _may_label(cell: Cell) -> bool:
    return len(cell.tokens) <= 5 and ":" not in cell.text.rstrip(" :") and not has_form(cell.text)


def _under(cell: Cell, below: tuple[Cell, ...]) -> Cell | None:
    """What stands right beneath, in the same box."""
    for other in below:
        middles = abs(other.left + other.right - cell.left - cell.right)
        if abs(other.left - cell.left) < _SAME or (middles < 2 * _SAME and other.overlaps(cell)):
            return other if other.top - cell.bottom < 1.5 * cell.height else None
    return None


def _is_value(paper: Paper, cell: Cell) -> bool:
    """A number, a date, or one word with a digit."""
    if _COLON.search(cell.text.lstrip(" :")):
        # It brings its own label; a time of day does not.
        return False
    if id(cell) in paper.dates_of:
        return True
    one = len(cell.tokens) == 1 and any(map(str.isdigit, cell.text))
    return one or (paper.is_value(cell) and sum(map(str.isalpha, cell.text)) < 4)


def _in_address(cell: Cell) -> bool:
    return any(in_address(cell.text))
