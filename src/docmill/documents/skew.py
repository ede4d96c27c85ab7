"""Pages that lie a little askew: by how much, and the same page as if it lay straight.

A reading keeps the boxes of words where they are on the page, since that is where people look for them. Whoever puts
words in rows does it on `straightened` pages, and brings the boxes that it found back with `Tilt`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from math import cos, radians, sin
from typing import NamedTuple

from docmill.documents.reading import Box, Line, Page, Reading

_LEAST = 0.25
"""Degrees below which a page is straight: on its width that is a third of a line, and estimates are no finer."""
_MOST = 15.0
"""Degrees beyond which it was meant so, or is no page."""
_PIECES = 3
_SPREAD = 4.0
"""Degrees by which the middle half of the text differs at most; beyond, a page has no one slope."""
_FLAT = 0.25
"""Share of a box that is left of it at least: pieces differ from the slope of their page."""


class Tilt(NamedTuple):
    """How boxes move when a page is laid straight, and back: turned about its middle, in widths of the page."""

    cosine: float
    sine: float
    tall: float
    """Height of the page over its width."""

    @classmethod
    def of(cls, page: Page) -> "Tilt":
        """The tilt of a page."""
        angle = radians(page.skew)
        return cls(cos(angle), sin(angle), page.height / page.width if page.width else 1.0)

    def straight(self, box: Box) -> Box:
        """The box as if the page lay straight: smaller, since it was drawn around a word that lay askew."""
        middle_x, middle_y = (box.left + box.right) / 2 - 0.5, (box.middle - 0.5) * self.tall
        x = self.cosine * middle_x + self.sine * middle_y
        y = self.cosine * middle_y - self.sine * middle_x
        wide, high, lean = box.width, box.height * self.tall, abs(self.sine)
        part = self.cosine**2 - lean**2
        width = max((wide * self.cosine - high * lean) / part, _FLAT * wide)
        height = max((high * self.cosine - wide * lean) / part, _FLAT * high)
        return self._box(x, y, width, height)

    def on_page(self, box: Box) -> Box:
        """The box around the same place of the page as it lies."""
        middle_x, middle_y = (box.left + box.right) / 2 - 0.5, (box.middle - 0.5) * self.tall
        x = self.cosine * middle_x - self.sine * middle_y
        y = self.cosine * middle_y + self.sine * middle_x
        wide, high, lean = box.width, box.height * self.tall, abs(self.sine)
        moved = self._box(x, y, wide * self.cosine + high * lean, high * self.cosine + wide * lean)
        return Box(*(min(max(value, 0.0), 1.0) for value in moved))

    def _box(self, x: float, y: float, width: float, height: float) -> Box:
        return Box(
            0.5 + x - width / 2,
            0.5 + (y - height / 2) / self.tall,
            0.5 + x + width / 2,
            0.5 + (y + height / 2) / self.tall,
        )


def skew_of(pieces: Iterable[tuple[float, float]]) -> float:
    """Degrees by which lines sink to the right, from slope (degrees) and length of each piece of text; 0 if straight.

    The median by length: long pieces tell it precisely, and a stamp or a logo does not move it.
    """
    known = sorted((slope, length) for slope, length in pieces if length > 0)
    if len(known) < _PIECES:
        return 0.0
    low, middle, high = (_up_to(known, share) for share in (0.25, 0.5, 0.75))
    return round(middle, 2) if high - low <= _SPREAD and _LEAST <= abs(middle) <= _MOST else 0.0


def _up_to(known: Sequence[tuple[float, float]], share: float) -> float:
    """The slope up to which this share of the text goes, by length."""
    so_far = list(accumulate(length for _, length in known))
    return known[bisect_left(so_far, share * so_far[-1])][0]


def straightened(reading: Reading) -> Reading:
    """The reading with the boxes of pages that lie askew as if they lay straight; itself if none does."""
    if not any(page.skew for page in reading.pages):
        return reading
    return replace(reading, pages=tuple(_straight(page) if page.skew else page for page in reading.pages))


def _straight(page: Page) -> Page:
    tilt = Tilt.of(page)
    lines = tuple(
        Line(words=tuple(word._replace(box=tilt.straight(word.box)) for word in line.words)) for line in page.lines
    )
    return replace(page, lines=lines, skew=0.0)
