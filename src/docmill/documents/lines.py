"""Words become lines: pure geometry, the same for every source that knows where its words stand."""

from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from docmill.documents.reading import Box, Line, Word

_SAME_ROW = 0.35
"""Of the lower of two heights: how far two baselines may be apart on one line (a superscript still belongs to it)."""
_GAP = 1.0
"""Of the height of a word: a wider gap separates columns, so it ends the line."""


class PlacedWord(NamedTuple):
    """A word with its box in page units (not normalised), top-down, and the line it stands on."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    baseline: float


_BASELINE, _LEFT = attrgetter("baseline"), attrgetter("left")


def join_lines(words: Iterable[PlacedWord], width: float, height: float) -> tuple[Line, ...]:
    """Lines of words side by side, from top to bottom and then left to right; boxes normalised to the page's size."""
    rows: list[list[PlacedWord]] = []
    base = lowest = 0.0
    for word in sorted(words, key=_BASELINE):
        size = word.bottom - word.top
        if rows and word.baseline - base <= _SAME_ROW * min(size, lowest):
            rows[-1].append(word)
            lowest = min(lowest, size)
        else:
            rows.append([word])
            base, lowest = word.baseline, size
    lines: list[Line] = []
    for row in rows:
        row.sort(key=_LEFT)
        piece = [row[0]]
        reach = row[0].right
        for word in row[1:]:
            size = max(word.bottom - word.top, piece[-1].bottom - piece[-1].top)
            if word.left - reach > _GAP * size:
                lines.append(_line(piece, width, height))
                piece = []
                reach = word.right
            piece.append(word)
            reach = max(reach, word.right)
        lines.append(_line(piece, width, height))
    return tuple(lines)


def _line(words: list[PlacedWord], width: float, height: float) -> Line:
    found = []
    for text, left, top, right, bottom, _ in words:
        if left < 0 or top < 0 or right > width or bottom > height:
            left, top, right, bottom = max(left, 0.0), max(top, 0.0), min(right, width), min(bottom, height)
        found.append(Word(text, Box(left / width, top / height, right / width, bottom / height)))
    return Line(words=tuple(found))
