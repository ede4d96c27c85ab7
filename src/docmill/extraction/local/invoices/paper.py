"""An invoice laid out once, with everything that all fields ask for: numbers, dates, and the labels beside them."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from operator import attrgetter
from typing import NamedTuple

from docmill.documents.reading import Reading
from docmill.extraction.local.candidates import Candidate
from docmill.extraction.local.invoices.sheet import Cell, Sheet, Token, evidence_of, sheet_of
from docmill.extraction.local.invoices.spans import DateSpan, Habits, Number, dates_in, habits_of, numbers_in
from docmill.extraction.local.invoices.vocabulary import Reader
from docmill.extraction.local.invoices.wording import plain
from docmill.extraction.result import Evidence

_CLAUSE = re.compile(r"[,;]\s")
_SENTENCE = re.compile(r"[,.;]\s")
_RATED = re.compile(r"[^\W\d].*%\s?\([^()]*\)$")
"""The label of a tax with the rate and what is taxed: `IVA 22% (28,00)`."""
MOST = 30
"""Numbers and dates of one cell that are looked at: what has more is no invoice's line."""


@dataclass(frozen=True, kw_only=True)
class Option(Candidate):
    """A candidate that knows its words."""

    tokens: tuple[Token, ...] = ()
    page: int = 1

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return evidence_of(self.tokens, self.page)


class Label(NamedTuple):
    """Text that may say what a value beside it means. A tuple: every number of a long table has some."""

    text: str
    """Plain."""
    weight: float
    """How closely it belongs to the value, 0 to 1."""
    over: bool = False
    """Whether it stands above; counts less if one beside the value means something."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The sheet with its numbers and dates."""

    sheet: Sheet
    habits: Habits
    dates: tuple[DateSpan, ...]
    numbers: tuple[Number, ...]

    @cached_property
    def numbers_of(self) -> Mapping[int, Sequence[Number]]:
        """By identity of the cell."""
        found: dict[int, list[Number]] = defaultdict(list)
        for number in self.numbers:
            found[id(number.cell)].append(number)
        return found

    @cached_property
    def dates_of(self) -> Mapping[int, Sequence[DateSpan]]:
        """By identity of the cell."""
        found: dict[int, list[DateSpan]] = defaultdict(list)
        for span in self.dates:
            found[id(span.cell)].append(span)
        return found

    @cached_property
    def _values(self) -> dict[int, bool]:
        return {}

    def is_value(self, cell: Cell) -> bool:
        """Whether a cell holds little else than a number or a date."""
        known = self._values.get(id(cell))
        if known is None:
            spans: list[Number | DateSpan] = [*self.numbers_of.get(id(cell), ()), *self.dates_of.get(id(cell), ())]
            held = sum([span.end - span.start for span in spans])
            known = held >= 0.6 * len(cell.text) and not ("%" in cell.text and _RATED.match(cell.text))
            self._values[id(cell)] = known
        return known

    def is_money(self, cell: Cell) -> bool:
        """Whether a cell holds an amount and little else."""
        return any(number.money for number in self.numbers_of.get(id(cell), ())) and self.is_value(cell)

    @cached_property
    def _known(self) -> dict[tuple[int, int, bool], list[Label]]:
        return {}

    def labels(self, cell: Cell, start: int, end: int, *, dated: bool = False) -> list[Label]:
        """The labels of a value; several fields ask for the same."""
        key = (id(cell), start, dated)
        if key not in self._known:
            self._known[key] = self._labels(cell, start, end, dated)
        return self._known[key]

    def _labels(self, cell: Cell, start: int, end: int, dated: bool) -> list[Label]:
        """What stands before a value in its cell, left of it in its row, above it, and after it.

        The label of an amount begins after the number before it; that of a date may hold numbers.
        """
        found = []
        others: list[Number | DateSpan] = [*self.dates_of.get(id(cell), ())]
        if not dated:
            others += self.numbers_of.get(id(cell), ())
        first = max((other.end for other in others if other.end <= start), default=0)
        own = cell.text[first:start].strip(" \t|")
        if dated and first:
            own = _CLAUSE.split(own)[-1]
        if any(map(str.isalpha, own)) or "#" in own or "°" in own:
            found.append(Label(text=plain(own), weight=1.0))
        elif first and any(map(str.isalpha, cell.text[:first])):
            found.append(Label(text=plain(cell.text[:start]), weight=0.6))
        passed = 0
        row = self.sheet.rows[cell.row]
        shared = False
        if not found:
            after = next((other for other in row if other.left > cell.left), None)
            shared = after is not None and self.is_money(after)
        for other in reversed(row):
            if other.left >= cell.left:
                continue
            if self.is_value(other):
                passed += 1
            elif other.worded:
                if not found or found[0].weight < 1.0 or len(found[0].text) < 4:
                    shared = shared or passed > 0
                    found.append(Label(text=other.plain, weight=0.5 if passed else 0.6 if shared else 0.95))
                    if not passed and (wide := self._wrapped(other)):
                        found.append(Label(text=wide, weight=0.7))
                    if not passed and dated and (wide := self._goes_on(other)):
                        found.append(Label(text=wide, weight=0.7))
                break
        if dated or not found:
            rest = cell.text[end:].strip()
            if dated:
                rest = _SENTENCE.split(rest, maxsplit=1)[0].strip(" ,.;")
            if any(map(str.isalpha, rest)):
                found.append(Label(text=plain(rest[:40]), weight=0.6))
        found += self._over(cell, start, end, shared)
        return found

    def _wrapped(self, cell: Cell) -> str | None:
        """A label of two lines, the second of which stands beside the value."""
        over = [other for other in self.sheet.above(cell, reach=0.6) if abs(other.left - cell.left) < cell.height]
        if over and len(self.sheet.rows[over[0].row]) == 1 and not self.is_value(over[0]):
            return f"{over[0].plain} {cell.plain}"
        return None

    def _goes_on(self, cell: Cell) -> str | None:
        """A label of two lines, the first of which stands beside the value."""
        below = [other for other in self.sheet.below(cell, reach=0.6) if abs(other.left - cell.left) < cell.height]
        if cell.text.endswith(":") or not below or not below[0].worded or self.sheet.after(below[0]):
            return None
        return None if below[0].numbered else f"{cell.plain} {below[0].plain}"

    @cached_property
    def _spread(self) -> list[tuple[int, list[tuple[float, float, Cell]]]]:
        """Of each row its page, and from where to where its cells go: in a long table they are looked up often."""
        return [(row[0].page, [(cell.left, cell.right, cell) for cell in row]) for row in self.sheet.rows]

    @cached_property
    def _boxed(self) -> dict[int, tuple[Cell, ...]]:
        """Rows of amounts under a row of as many labels, each in its box: they need not stand above one another."""
        found = {}
        for over, row in pairwise(self.sheet.rows):
            if len(row) < 3 or len(over) != len(row) or over[0].page != row[0].page:
                continue
            if not all(map(self.is_money, row)) or any(map(self.is_value, over)):
                continue
            edges = [0.0, *(cell.right for cell in row[:-1])]
            between = zip(edges, over, row, strict=True)
            near = row[0].top - over[0].bottom < 1.6 * row[0].height
            if near and all(edge < head.right and head.left < cell.right for edge, head, cell in between):
                found[row[0].row] = over
        return found

    def _over(self, cell: Cell, start: int, end: int, shared: bool) -> list[Label]:
        """The heading of the column, or the line above: through other values of the column, if need be."""
        if cell.row in self._boxed:
            head = self._boxed[cell.row][self.sheet.rows[cell.row].index(cell)]
            return [Label(text=head.plain, weight=0.85, over=not shared)]
        tokens = cell.slice(start, end)
        left, right = tokens[0].left, tokens[-1].right
        values = self._values
        through = 0
        for page, spread in reversed(self._spread[max(0, cell.row - 40) : cell.row]):
            if page != cell.page:
                break
            for one in spread:
                if one[0] < right and left < one[1]:
                    break
            else:
                continue
            head = one[2]
            known = values.get(id(head))
            if self.is_value(head) if known is None else known:
                through += 1
                continue
            if not head.worded:
                continue
            gap = (cell.top - head.bottom) / max(cell.height, 1e-9)
            if gap > 3.0 and not through:
                break
            near = 0.85 if gap < 1.6 else 0.7
            return [Label(text=head.plain, weight=near * (0.75 if through else 1.0), over=not shared)]
        return []


_OVER = attrgetter("over")


def meanings(reader: Reader, labels: Sequence[Label]) -> dict[str, float]:
    """What a value means by its labels: for each meaning the surest of them."""
    found: dict[str, float] = {}
    for label in sorted(labels, key=_OVER) if len(labels) > 1 else labels:
        weight = label.weight * (0.35 if label.over and found else 1.0)
        for meaning, sure in reader(label.text).items():
            found[meaning] = max(found.get(meaning, 0.0), sure * weight)
    return found


def paper_of(reading: Reading) -> Paper:
    """Lay out a reading and find its numbers and dates."""
    sheet = sheet_of(reading)
    habits = habits_of(sheet)
    dates: list[DateSpan] = []
    numbers: list[Number] = []
    for cell in sheet.cells:
        if cell.numbered:
            spans = dates_in(cell, habits)[:MOST]
            dates += spans
            numbers += islice(numbers_in(cell, habits, spans), MOST)
    return Paper(sheet=sheet, habits=habits, dates=tuple(dates), numbers=tuple(numbers))
