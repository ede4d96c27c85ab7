"""What stands where on the pages, by value: an index that is built once per document, each part when it is first asked.

Amounts and dates are found by what they are worth, however they are written; text by its letters and digits, whatever
stands between them. Sections of books have no places, so nothing is found in them.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any

from docmill.documents.reading import Box, Line, Page, Reading, TextSource, Word
from docmill.extraction import extent
from docmill.extraction.result import Evidence
from docmill.extraction.values import Hints
from docmill.extraction.values.amounts import AmountFound, find_amounts, guess_decimal
from docmill.extraction.values.dates import DateFound, find_dates, find_times, order_shown
from docmill.extraction.values.texts import bare


@dataclass(frozen=True, slots=True)
class Place:
    """Something that stands on a page."""

    page: int
    box: Box
    text: str
    """As it is written."""

    @property
    def evidence(self) -> Evidence:
        return Evidence(page=self.page, box=self.box)


class PageLine:
    """A line with the places of its words in its text."""

    __slots__ = ("_line", "_starts", "bare", "box", "has_digit", "page", "scanned", "text")

    def __init__(self, page: Page, line: Line) -> None:
        self.page = page.number
        self.scanned = page.source is TextSource.OCR
        self.text = line.text
        self.bare = bare(line.text)
        """As `texts.bare` folds it, place by place."""
        self.has_digit = _DIGIT.search(line.text) is not None
        self.box = line.box
        self._line = line
        starts, at = [], 0
        for word in line.words:
            starts.append(at)
            at += len(word.text) + 1
        self._starts = starts

    @property
    def words(self) -> tuple[Word, ...]:
        return self._line.words

    def place(self, start: int, end: int) -> Place:
        """Where the characters from `start` to `end` stand; inside a word its box is divided by length."""
        text = self.text[start:end]
        start += len(text) - len(text.lstrip())
        end -= len(text) - len(text.rstrip())
        first_word = max(0, bisect_right(self._starts, start) - 1)
        whole = self._line.words[first_word]
        if self._starts[first_word] == start and len(whole.text) == end - start > 0:
            return Place(self.page, whole.box, text.strip())
        boxes = []
        for index in range(first_word, len(self._starts)):
            word, at = self._line.words[index], self._starts[index]
            if at >= end:
                break
            size = max(1, len(word.text))
            if start < at + size:
                first, last = max(start - at, 0) / size, min(end - at, size) / size
                left, width = word.box.left, word.box.width
                boxes.append(Box(left + width * first, word.box.top, left + width * last, word.box.bottom))
        if not boxes:
            return Place(self.page, self.box, text.strip())
        return Place(self.page, boxes[0].around(*boxes[1:]), text.strip())


_DIGIT = re.compile(r"\d")
_GROUPED = re.compile(r"\d \d")
_MOST_LETTERS = 20_000
"""Of one run: a page made of nothing else is searched piece by piece."""


@dataclass(frozen=True, slots=True)
class _Letters:
    """The letters and digits of a page, and where each stands."""

    text: str
    lines: tuple[int, ...]
    """For each character the line it stands in …"""
    places: tuple[int, ...]
    """… and its place in the text of that line."""
    starts: frozenset[int]
    """Characters that begin a word …"""
    ends: frozenset[int]
    """… and those behind the last of a word."""


class Pages:
    """The index over one document."""

    def __init__(self, reading: Reading) -> None:
        seen = extent.whole(reading)
        self.reading = seen.reading
        self.notes: list[str] = list(seen.notes)
        """What was left out because there was too much of it."""
        self.kept: dict[object, Any] = {}
        """What others worked out about this document and will want again."""
        self.lines = [PageLine(page, line) for page, line in self.reading.lines() if line.words]

    def note(self, text: str) -> None:
        """Say once that something was left out."""
        if text not in self.notes:
            self.notes.append(text)

    @cached_property
    def edges(self) -> "Pages":
        """The pages that fields are looked for on: the first and the last of a long document, else all."""
        seen = extent.edges(self.reading)
        if seen.reading is self.reading:
            return self
        for text in seen.notes:
            self.note(text)
        return Pages(seen.reading)

    @cached_property
    def bare(self) -> str:
        """All lines, folded: what is not in it is in none of them."""
        return "\n".join([line.bare for line in self.lines])

    @cached_property
    def by_page(self) -> dict[int, list[PageLine]]:
        """The lines of each page, by its number."""
        found: dict[int, list[PageLine]] = defaultdict(list)
        for line in self.lines:
            found[line.page].append(line)
        return dict(found)

    @cached_property
    def hints(self) -> Hints:
        """How the document writes numbers and dates."""
        order = order_shown(day for index in range(len(self.lines)) for day in self.days_in(index))
        return Hints(decimal=guess_decimal(line.text for line in self.lines if line.has_digit), order=order)

    def days_in(self, index: int) -> list[DateFound]:
        """Every date of a line; looked for once."""
        found = self._days.get(index)
        if found is None:
            line = self.lines[index]
            found = self._days[index] = find_dates(line.text) if line.has_digit else []
        return found

    @cached_property
    def _days(self) -> dict[int, list[DateFound]]:
        return {}

    @property
    def readable(self) -> bool:
        """Whether anything is written on a page."""
        return bool(self.lines)

    def numbers_in(self, index: int) -> list[AmountFound]:
        """Every number of a line; looked for once, since amounts, numbers and counts are all found so."""
        found = self._numbers.get(index)
        if found is None:
            line = self.lines[index]
            found = find_amounts(line.text, decimal=self.hints.decimal, misread=line.scanned) if line.has_digit else []
            self._numbers[index] = found
        return found

    def cells_in(self, index: int) -> list[AmountFound]:
        """The same without spaces in numbers: two cells side by side may look like one number."""
        line = self.lines[index]
        if not line.scanned and not _GROUPED.search(line.text):
            return self.numbers_in(index)
        return find_amounts(line.text, decimal=self.hints.decimal, misread=line.scanned, spaces=False)

    @cached_property
    def _numbers(self) -> dict[int, list[AmountFound]]:
        return {}

    @cached_property
    def _amounts(self) -> dict[Decimal, list[tuple[int, int, int]]]:
        """Line, start and end by value; what can be read in two ways stands under both."""
        found: dict[Decimal, list[tuple[int, int, int]]] = defaultdict(list)
        for index, line in enumerate(self.lines):
            seen: set[tuple[Decimal, int]] = set()
            for one, value in self._worth(index, line):
                if (value, one.end) not in seen:
                    seen.add((value, one.end))
                    found[value].append((index, one.start, one.end))
        return dict(found)

    def _worth(self, index: int, line: PageLine) -> Iterator[tuple[AmountFound, Decimal]]:
        for one in self.numbers_in(index):
            yield one, one.value
            if one.ambiguous:
                yield one, one.value / 1000
        if line.scanned or _GROUPED.search(line.text):
            for one in self.cells_in(index):
                yield one, one.value

    def amount(self, value: Decimal, most: int) -> tuple[Place, ...]:
        """The first places where an amount of this value stands."""
        found = self._amounts.get(value, ())[:most]
        return tuple(self.lines[index].place(start, end) for index, start, end in found)

    @cached_property
    def dates(self) -> dict[date, list[Place]]:
        """By day; what can be read in two ways stands under both."""
        found: dict[date, list[Place]] = defaultdict(list)
        for index, line in enumerate(self.lines):
            for one in self.days_in(index):
                place = line.place(one.start, one.end)
                for day in one.candidates:
                    found[day].append(place)
        return found

    @cached_property
    def times(self) -> dict[str, list[Place]]:
        """By `HH:MM:SS`."""
        found: dict[str, list[Place]] = defaultdict(list)
        for line in self.lines:
            for start, end, clock in find_times(line.text) if line.has_digit else ():
                found[clock].append(line.place(start, end))
        return found

    @cached_property
    def letters(self) -> list[_Letters]:
        """The letters and digits, page by page."""
        runs: list[list[int]] = []
        page, size = None, 0
        for index, line in enumerate(self.lines):
            if line.page != page or size > _MOST_LETTERS:
                runs.append([])
                page, size = line.page, 0
            runs[-1].append(index)
            size += len(line.text)
        return [self._letters(indexes) for indexes in runs]

    def _letters(self, indexes: list[int]) -> _Letters:
        signs: list[str] = []
        lines: list[int] = []
        places: list[int] = []
        starts: set[int] = set()
        ends: set[int] = set()
        for index in indexes:
            inside = False
            for at, sign in enumerate(self.lines[index].bare):
                if sign.isalnum():
                    if not inside:
                        starts.add(len(signs))
                    signs.append(sign)
                    lines.append(index)
                    places.append(at)
                elif inside:
                    ends.add(len(signs))
                inside = sign.isalnum()
            ends.add(len(signs))
        return _Letters("".join(signs), tuple(lines), tuple(places), frozenset(starts), frozenset(ends))

    def goes_on(self, letters: _Letters, end: int) -> bool:
        """Whether a number that ends here has decimals behind it: `1234` is not in `1.234,50`."""
        if end >= len(letters.text) or letters.lines[end] != letters.lines[end - 1]:
            return False
        text, at = self.lines[letters.lines[end]].text, letters.places[end - 1] + 1
        return text[at - 1].isdigit() and text[at : at + 1] in (".", ",") and text[at + 1 : at + 2].isdigit()

    def spot(self, letters: _Letters, start: int, end: int) -> tuple[Place, ...]:
        """The places of a run of letters, line by line."""
        found = []
        at = start
        while at < end:
            index = letters.lines[at]
            last = at
            while last + 1 < end and letters.lines[last + 1] == index:
                last += 1
            found.append(self.lines[index].place(letters.places[at], letters.places[last] + 1))
            at = last + 1
        return tuple(found)
