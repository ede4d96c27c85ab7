"""The words of an invoice as a person sees them: rows from top to bottom, and in each row the pieces that stand apart.

Lengths are in widths of the page, in both directions, so that a line is as high on a letter as on a photograph of it.
The lines of a reading are taken apart and put together anew: some readers deliver a whole row of a table as one line,
others every word.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from statistics import median
from typing import NamedTuple

from docmill.documents.reading import Box, Reading, TextSource, Word
from docmill.extraction.local.invoices.spaced import spelled
from docmill.extraction.local.invoices.wording import plain
from docmill.extraction.result import Evidence

COLUMN_GAP = 0.9
"""Heights of a line: words further apart than this belong to different columns."""
_APART = 0.47
"""Heights of the taller of two words: if their middles are further apart, they are of two rows."""
WORD_GAP = 0.6
"""Heights of a line: pieces of text closer than this are one."""


class Token(NamedTuple):
    """One word, in widths of the page. A tuple: a document has thousands."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    middle: float
    height: float
    box: Box
    """As the reading has it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """Words of one row that stand together."""

    tokens: tuple[Token, ...]
    page: int
    row: int
    """Number of its row, counted through all pages."""
    depth: float
    """How far down its page it stands, 0 to 1."""
    text: str = field(init=False)
    left: float = field(init=False)
    right: float = field(init=False)
    top: float = field(init=False)
    bottom: float = field(init=False)
    height: float = field(init=False)
    """Of its letters; a stray tall one does not count."""
    plain: str = field(init=False)
    """Lower case, no accents: for comparing with vocabulary."""
    worded: bool = field(init=False)
    """Whether it has any letter."""
    numbered: bool = field(init=False)
    """Whether it has any digit."""

    def __post_init__(self) -> None:
        # All of it is asked for many times, of every cell.
        tokens, known = self.tokens, self.__dict__
        text = known["text"] = " ".join([token.text for token in tokens])
        known["plain"] = plain(text)
        known["worded"], known["numbered"] = any(map(str.isalpha, text)), any(map(str.isdigit, text))
        if len(tokens) == 1:
            (one,) = tokens
            known["height"] = one.height
            known["left"], known["right"], known["top"], known["bottom"] = one.left, one.right, one.top, one.bottom
            return
        known["left"] = min([token.left for token in tokens])
        known["right"] = max([token.right for token in tokens])
        known["top"] = min([token.top for token in tokens])
        known["bottom"] = max([token.bottom for token in tokens])
        known["height"] = median([token.height for token in tokens])

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    def overlaps(self, other: "Cell", slack: float = 0.0) -> bool:
        """Whether one stands above the other, at least in part."""
        return self.left - slack < other.right and other.left < self.right + slack

    def slice(self, start: int, end: int) -> tuple[Token, ...]:
        """The tokens that hold characters `start` to `end` of its text."""
        found, at = [], 0
        for token in self.tokens:
            if at < end and at + len(token.text) > start:
                found.append(token)
            at += len(token.text) + 1
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """All rows of a document."""

    rows: tuple[tuple[Cell, ...], ...]
    """From top to bottom, page after page; the cells of each from left to right."""
    scanned: bool
    height: float
    """Of an ordinary line."""

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for row in self.rows for cell in row)

    @cached_property
    def text(self) -> str:
        """Row by row."""
        return "\n".join("  ".join(cell.text for cell in row) for row in self.rows)

    @cached_property
    def plain(self) -> str:
        return plain(self.text)

    @cached_property
    def _heights(self) -> list[tuple[int, float, float]]:
        """Of each row its page, and from where to where it goes: what stands around a cell is asked often."""
        return [(row[0].page, min([cell.top for cell in row]), max([cell.bottom for cell in row])) for row in self.rows]

    def above(self, cell: Cell, *, reach: float = 3.5, slack: float = 0.0) -> tuple[Cell, ...]:
        """Cells over this one on its page, the nearest first, within `reach` lines."""
        limit = cell.top - reach * max(cell.height, self.height)
        found: list[Cell] = []
        for number in range(cell.row - 1, -1, -1):
            page, _, bottom = self._heights[number]
            if page != cell.page or bottom < limit:
                break
            found += [other for other in self.rows[number] if other.overlaps(cell, slack) and other.bottom > limit]
        return tuple(found)

    def below(self, cell: Cell, *, reach: float = 3.5, slack: float = 0.0) -> tuple[Cell, ...]:
        """Cells under this one on its page, the nearest first, within `reach` lines."""
        limit = cell.bottom + reach * max(cell.height, self.height)
        found: list[Cell] = []
        for number in range(cell.row + 1, len(self.rows)):
            page, top, _ = self._heights[number]
            if page != cell.page or top > limit:
                break
            found += [other for other in self.rows[number] if other.overlaps(cell, slack) and other.top < limit]
        return tuple(found)

    def before(self, cell: Cell) -> tuple[Cell, ...]:
        """Cells of the same row to the left, the nearest first."""
        row = self.rows[cell.row]
        return tuple([other for other in reversed(row) if other is not cell and other.left < cell.left])

    def after(self, cell: Cell) -> tuple[Cell, ...]:
        """Cells of the same row to the right, the nearest first."""
        return tuple([other for other in self.rows[cell.row] if other is not cell and other.left > cell.left])


def sheet_of(reading: Reading) -> Sheet:
    """Rows and cells of every page."""
    rows: list[tuple[Cell, ...]] = []
    heights: list[float] = []
    for page in reading.pages:
        tall = page.height / page.width if page.width else 1.0
        lines = [[token for word in line.words if (token := _token(word, tall)) is not None] for line in page.lines]
        heights += [token.height for line in lines for token in line]
        for row in _rows([run for line in lines for run in _runs(line)]):
            number = len(rows)
            rows.append(
                tuple(
                    Cell(tokens=run, page=page.number, row=number, depth=(run[0].middle / tall) if tall else 0.0)
                    for run in _joined(row)
                )
            )
    return Sheet(
        rows=tuple(rows),
        scanned=any(page.source is TextSource.OCR for page in reading.pages),
        height=median(heights) if heights else 0.015,
    )


def evidence_of(tokens: Sequence[Token], page: int) -> tuple[Evidence, ...]:
    """Where these words stand: one box around them per row they fill."""
    if len(tokens) == 1:
        return (Evidence(page=page, box=tokens[0].box),)
    lines: list[list[Token]] = []
    for token in tokens:
        if lines and abs(token.middle - lines[-1][-1].middle) < token.height * 0.7:
            lines[-1].append(token)
        else:
            lines.append([token])
    return tuple(Evidence(page=page, box=line[0].box.around(*(token.box for token in line[1:]))) for line in lines)


def _token(word: Word, tall: float) -> Token | None:
    """None for what has no letters or no size."""
    box, text = word.box, word.text.strip()
    left, right, top, bottom = box.left, box.right, box.top * tall, box.bottom * tall
    height = bottom - top
    if not text or height <= 0 or right <= left:
        return None
    return Token(text, left, top, right, bottom, (top + bottom) / 2, height, box)


def _runs(line: Sequence[Token]) -> list[tuple[Token, ...]]:
    """A line, cut where a gap is as wide as one between columns."""
    runs: list[list[Token]] = []
    for token in line:
        if runs and token.left - runs[-1][-1].right <= COLUMN_GAP * min(token.height, runs[-1][-1].height):
            runs[-1].append(token)
        else:
            runs.append([token])
    return [spelled(run) for run in runs]


def _joined(row: Sequence[tuple[Token, ...]]) -> list[tuple[Token, ...]]:
    """The runs of a row; those that stand no further apart than words do are one."""
    runs: list[tuple[Token, ...]] = []
    for run in row:
        if runs and run[0].left - runs[-1][-1].right <= WORD_GAP * min(run[0].height, runs[-1][-1].height):
            runs[-1] = (*runs[-1], *run)
        else:
            runs.append(run)
    return runs


def _rows(runs: Sequence[tuple[Token, ...]]) -> list[list[tuple[Token, ...]]]:
    """Runs that stand side by side; each is compared with its neighbour, as pages may be askew."""
    rows: list[_Row] = []
    for run in sorted(runs, key=lambda run: (run[0].middle, run[0].left)):
        best: _Row | None = None
        closest = 0.0
        middle, height = run[0].middle, run[0].height
        for row in rows[-6:]:
            reach = _APART * (row.tallest if row.tallest > height else height)
            if not row.highest - reach <= middle <= row.lowest + reach:
                continue
            near = row.runs[0] if len(row.runs) == 1 else _nearest(row.runs, run)
            share = _shared_height(near[-1] if near[0].left < run[0].left else near[0], run[0])
            if share > max(0.5, closest):
                best, closest = row, share
        if best is None:
            rows.append(_Row(run))
        else:
            best.add(run)
    found = [row.runs for row in rows]
    for each in found:
        each.sort(key=lambda run: run[0].left)
    found.sort(key=lambda row: min([run[0].middle for run in row]))
    return found


class _Row:
    """Runs side by side, and between which heights their ends stand: most runs are far from most rows, and share none.

    Those heights are looked at for every run, so they are no properties.
    """

    __slots__ = ("highest", "lowest", "runs", "tallest")

    def __init__(self, run: tuple[Token, ...]) -> None:
        self.runs: list[tuple[Token, ...]] = []
        self.highest, self.lowest, self.tallest = inf, -inf, 0.0
        self.add(run)

    def add(self, run: tuple[Token, ...]) -> None:
        self.runs.append(run)
        for token in (run[0], run[-1]):
            self.highest = min(self.highest, token.middle)
            self.lowest = max(self.lowest, token.middle)
            self.tallest = max(self.tallest, token.height)


def _nearest(row: list[tuple[Token, ...]], run: tuple[Token, ...]) -> tuple[Token, ...]:
    left, right = run[0].left, run[-1].right
    return min(row, key=lambda other: max(left - other[-1].right, other[0].left - right))


def _shared_height(one: Token, other: Token) -> float:
    """How much of the lower of the two is beside the other, 0 to 1; nothing if their middles are apart."""
    if abs(one.middle - other.middle) > _APART * max(one.height, other.height):
        return 0.0
    shared = min(one.bottom, other.bottom) - max(one.top, other.top)
    return shared / max(min(one.height, other.height), 1e-9)
