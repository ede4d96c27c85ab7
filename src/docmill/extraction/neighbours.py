"""What stands beside what: labels and the candidates to their right and below.

Everything is looked up by height, so that a page full of labels and numbers costs no more than its size.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from docmill.documents.reading import Box
from docmill.extraction.labels import Label
from docmill.extraction.pages import Pages
from docmill.extraction.spotting import Spot
from docmill.extraction.values.kinds import FieldType

T = TypeVar("T")
LEAD = " :.;|=-–—>#*°№"
"""What stands between a label and its value."""
WORDS = re.compile(r"[^\W\d_]{2,}")
MOST = 200
"""Things at one height that are looked at."""
_CLOSE = 50
"""Labels about one candidate that are looked at."""
_ENOUGH = 3
"""Labels between a label and a candidate that part them for good."""


class ByHeight(Generic[T]):
    """Things on pages, found by the height they stand at."""

    def __init__(self, things: Iterable[tuple[int, float, T]]) -> None:
        kept = sorted(things, key=lambda thing: thing[:2])
        self._places = [thing[:2] for thing in kept]
        self._things = [thing[2] for thing in kept]

    def near(self, page: int, low: float, high: float, most: int = MOST) -> list[T]:
        """Those between two heights of a page, from top to bottom; of too many those in the middle."""
        first, last = bisect_left(self._places, (page, low)), bisect_right(self._places, (page, high))
        if last - first > most:
            first += (last - first - most) // 2
        return self._things[first : min(last, first + most)]


class Rows:
    """The geometry of labels and candidates: what stands to the right of what, and what below."""

    def __init__(self, pages: Pages, labels: list[Label], roles: Mapping[str, str]) -> None:
        self.pages = pages
        self._labels = ByHeight((label.place.page, label.place.box.middle, label) for label in labels)
        self._lines = ByHeight((line.page, line.box.middle, index) for index, line in enumerate(pages.lines))
        self._in_line: dict[int, list[Label]] = defaultdict(list)
        for label in labels:
            self._in_line[label.line].append(label)
        self._behind: dict[tuple[int, int], list[float]] = {}
        self._named: ByHeight[tuple[Box, str]] | None = None
        self._roles = roles
        self._parties: dict[tuple[int, Box], str | None] = {}

    def in_line(self, line: int) -> list[Label]:
        """The labels of one line."""
        return self._in_line[line]

    def lines_near(self, page: int, low: float, high: float) -> list[int]:
        """Lines whose middle is between two heights of a page."""
        return self._lines.near(page, low, high)

    def party(self, spot: Spot) -> str | None:
        """Whose block a candidate stands in: the role (`seller`, `buyer`) named last above it, in its column."""
        key = (spot.place.page, spot.box)
        if key not in self._parties:
            self._parties[key] = self._party(*key)
        return self._parties[key]

    def _party(self, page: int, box: Box) -> str | None:
        if self._named is None:
            self._named = ByHeight(self._named_labels())
        best: tuple[float, str] | None = None
        for place, role in self._named.near(page, box.top - 0.3, box.bottom, _CLOSE):
            if place.top > box.bottom or box.top - place.bottom > 0.25:
                continue
            if place.left - 0.05 <= box.left <= place.left + 0.45:
                distance = box.top - place.top + 0.3 * max(0.0, box.left - place.left)
                if best is None or distance < best[0]:
                    best = distance, role
        return best[1] if best else None

    def _named_labels(self) -> Iterator[tuple[int, float, tuple[Box, str]]]:
        """The labels that name a party, alone in front of their lines."""
        for labels in self._in_line.values():
            for label in labels:
                names = (*label.beside, *label.fields)
                role = next((self._roles[name] for name in names if name in self._roles), None)
                if role is not None and label.alone:
                    yield label.place.page, label.place.box.middle, (label.place.box, role)

    def nearness(self, label: Label, spot: Spot) -> float:
        """How close a candidate stands to a label, 1 at best; 0 if it does not belong to it."""
        return max(self._right(label, spot), self._below(label, spot))

    def _right(self, label: Label, spot: Spot) -> float:
        one, other = label.place.box, spot.box
        if label.line == spot.line:
            if spot.start < label.end:
                return 0.0
            between = self.pages.lines[label.line].text[label.end : spot.start]
            words = len(WORDS.findall(between))
            return max(0.0, 1.0 - 0.12 * words - 0.45 * self._labels_between(label, spot))
        height = max(one.height, 0.004)
        if abs(one.middle - other.middle) > 0.6 * height or other.left < one.right - 0.01:
            return 0.0
        gap = other.left - one.right
        behind = len(WORDS.findall(self.pages.lines[label.line].text[label.end :]))
        return max(0.0, 0.95 - 0.35 * gap - 0.45 * self._labels_between(label, spot) - 0.25 * behind)

    def _below(self, label: Label, spot: Spot) -> float:
        one, other = label.place.box, spot.box
        height = max(one.height, 0.006)
        drop = (other.top - one.bottom) / height
        if not -0.4 <= drop <= 3.5:
            return 0.0
        overlap = min(one.right, other.right) - max(one.left, other.left)
        aligned = abs(one.left - other.left) < 0.015 or abs(one.right - other.right) < 0.015
        if overlap <= 0 and not aligned:
            return 0.0
        behind = self.pages.lines[label.line].text[label.end :].strip(LEAD)
        # A label with something else behind it in its own line has its value there.
        busy = 0.25 if behind and not self._is_labelled(label.line, label.end) else 0.0
        # Sums stand below the heads of columns too, but those are sums of lines.
        best = 0.6 if spot.kind is FieldType.AMOUNT else 0.82
        return max(0.0, best - 0.1 * max(drop, 0.0) - busy - 0.4 * self._labels_above(label, spot))

    def _is_labelled(self, line: int, start: int) -> bool:
        """Whether another label stands behind in the same line: the heads of columns."""
        return any(label.start >= start for label in self._in_line[line])

    def _labels_between(self, label: Label, spot: Spot) -> int:
        """Labels in the same row between the two; those inside the candidate itself do not count."""
        return bisect_right(self._row_behind(label), spot.box.left + 0.002)

    def _row_behind(self, label: Label) -> list[float]:
        """Where the labels end that begin behind this one in its row, from left to right."""
        known = self._behind.get((label.line, label.start))
        if known is None:
            one = label.place.box
            reach = 0.6 * max(one.height, 0.004)
            near = self._labels.near(label.place.page, one.middle - reach, one.middle + reach)
            boxes = [third.place.box for third in near if third is not label]
            known = self._behind[label.line, label.start] = sorted(
                box.right for box in boxes if box.left >= one.right - 0.002
            )
        return known

    def _labels_above(self, label: Label, spot: Spot) -> int:
        """Labels in the same column between the two, or in the row of the candidate before it; some are enough."""
        one, other = label.place.box, spot.box
        count = 0
        for third in self._labels.near(label.place.page, one.top, other.bottom, _CLOSE):
            box = third.place.box
            if third is label:
                continue
            between = box.top >= one.bottom - 0.3 * one.height and box.bottom <= other.top + 0.3 * other.height
            column = between and min(box.right, other.right) > max(box.left, other.left)
            row = abs(box.middle - other.middle) < 0.5 * other.height and 0 <= other.left - box.right < 0.12
            count += column or row
            if count >= _ENOUGH:
                break
        return count
