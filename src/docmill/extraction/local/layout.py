"""How the words of a document stand to each other: rows, neighbours, sizes of type. Pure; made from a `Reading`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import TypeVar, cast

from docmill.documents.reading import Box, Line, Page, Reading, Word

Made = TypeVar("Made")

_SAME_ROW = 0.5
"""Share of the smaller height by which two lines must overlap to stand in one row."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A line of text as it was found, with its place among the others."""

    index: int
    """In the order of reading: page by page, row by row, from left to right."""
    page: int
    """The number of its page, from 1."""
    row: int
    """Which row of the document; counts through all pages."""
    column: int
    """Which piece of its row, from the left, from 0."""
    text: str
    box: Box
    level: float
    """Where it runs on the page, 0 to 1, as if the page were not skewed."""
    size: float
    """Height of its type against the median of the page: 1 is ordinary."""
    words: tuple[Word, ...]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where in the text each word begins."""
        places, at = [], 0
        for word in self.words:
            places.append(at)
            at += len(word.text) + 1
        return tuple(places)

    @cached_property
    def score(self) -> float:
        """How sure the OCR is of the characters, on average; 1 for embedded text."""
        scores = [1.0 if word.score is None else word.score for word in self.words]
        return sum(scores) / len(scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of the text of a piece: where a candidate stands."""

    piece: Piece
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.piece.text[self.start : self.end]

    @property
    def box(self) -> Box:
        """The part of the line that it covers; letters of a word are taken to be equally wide."""
        parts = []
        for at, word in zip(self.piece.starts, self.piece.words, strict=True):
            first, last = max(self.start, at), min(self.end, at + len(word.text))
            if first < last:
                letter = word.box.width / max(1, len(word.text))
                left = word.box.left + letter * (first - at)
                parts.append(Box(left, word.box.top, left + letter * (last - first), word.box.bottom))
        return parts[0].around(*parts[1:]) if parts else self.piece.box


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A whole document as rows of pieces."""

    pieces: tuple[Piece, ...]
    rows: tuple[tuple[Piece, ...], ...] = field(default=())

    def once(self, make: "Callable[[Layout], Made]") -> "Made":
        """What `make` says of this layout, worked out the first time only: several fields ask the same."""
        kept: dict[object, object] = self.__dict__.setdefault("_kept", {})
        if make not in kept:
            kept[make] = make(self)
        return cast("Made", kept[make])

    def row(self, piece: Piece) -> tuple[Piece, ...]:
        """All pieces beside it, itself included, from left to right."""
        return self.rows[piece.row]

    def left(self, piece: Piece) -> Piece | None:
        """The piece before it in its row."""
        return self.rows[piece.row][piece.column - 1] if piece.column else None

    def right(self, piece: Piece) -> Piece | None:
        """The piece after it in its row."""
        row = self.rows[piece.row]
        return row[piece.column + 1] if piece.column + 1 < len(row) else None

    def above(self, piece: Piece, box: Box | None = None, reach: int = 3) -> Piece | None:
        """The nearest piece above that shares some of its width (or of the box), at most some rows away."""
        return self._near(piece, box or piece.box, range(piece.row - 1, max(-1, piece.row - 1 - reach), -1))

    def below(self, piece: Piece, box: Box | None = None, reach: int = 3) -> Piece | None:
        """The nearest piece below that shares some of its width (or of the box), at most some rows away."""
        return self._near(piece, box or piece.box, range(piece.row + 1, min(len(self.rows), piece.row + 1 + reach)))

    def _near(self, piece: Piece, box: Box, rows: range) -> Piece | None:
        for number in rows:
            for other in self.rows[number]:
                if other.page == piece.page and _shared(other.box.left, other.box.right, box.left, box.right) > 0:
                    return other
        return None

    def before(self, span: Span) -> str:
        """What stands to the left of it: the rest of its own piece, and the pieces before it in the row."""
        own = span.piece.text[: span.start]
        others = [piece.text for piece in self.rows[span.piece.row][: span.piece.column]]
        return " ".join([*others, own]).strip()

    def after(self, span: Span) -> str:
        """What stands to the right of it: the rest of its own piece, and the pieces after it in the row."""
        own = span.piece.text[span.end :]
        others = [piece.text for piece in self.rows[span.piece.row][span.piece.column + 1 :]]
        return " ".join([own, *others]).strip()

    def row_text(self, row: int) -> str:
        """A row as one text; empty when there is no such row."""
        return " ".join(piece.text for piece in self.rows[row]) if 0 <= row < len(self.rows) else ""

    def depth(self, piece: Piece) -> float:
        """How far down the document it stands, counted in rows: 0 is the first, 1 the last."""
        return piece.row / max(1, len(self.rows) - 1)


def lay_out(reading: Reading) -> Layout:
    """Order what was read into rows and pieces."""
    rows: list[tuple[Piece, ...]] = []
    count = 0
    for page in reading.pages:
        lines = [line for line in page.lines if line.words and line.text.strip()]
        if not lines:
            continue
        slope = _slope(lines)
        usual = median(line.box.height for line in lines) or 1.0
        for group in _rows(lines, slope):
            pieces = []
            for column, line in enumerate(group):
                pieces.append(_piece(line, page, count, len(rows), column, slope, usual))
                count += 1
            rows.append(tuple(pieces))
    return Layout(pieces=tuple(piece for row in rows for piece in row), rows=tuple(rows))


def _piece(line: Line, page: Page, index: int, row: int, column: int, slope: float, usual: float) -> Piece:
    box = line.box
    return Piece(
        index=index,
        page=page.number,
        row=row,
        column=column,
        text=line.text,
        box=box,
        level=_level(box, slope),
        size=box.height / usual,
        words=line.words,
    )


def _slope(lines: Sequence[Line]) -> float:
    """By how much the lines of a page sink from left to right: a photograph is seldom straight.

    Longer lines say it more precisely; the median is not moved by a stamp or a logo.
    """
    slopes = []
    for line in lines:
        first, last = line.words[0].box, line.words[-1].box
        run = (last.left + last.right - first.left - first.right) / 2
        if len(line.words) > 1 and run > 0.1:
            slopes.append((last.middle - first.middle) / run)
    return median(slopes) if len(slopes) >= 3 else 0.0


def _level(box: Box, slope: float) -> float:
    return box.middle - slope * ((box.left + box.right) / 2 - 0.5)


def _rows(lines: Sequence[Line], slope: float) -> list[list[Line]]:
    """Lines of one height, from top to bottom; each row from left to right.

    A line joins the row whose lines it overlaps in height, but only if it stands beside all of them.
    """
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: _level(line.box, slope)):
        home = next((row for row in rows[-3:] if _fits(line.box, row, slope)), None)
        if home is None:
            rows.append([line])
        else:
            home.append(line)
    for row in rows:
        row.sort(key=lambda line: line.box.left)
    return rows


def _fits(box: Box, row: Sequence[Line], slope: float) -> bool:
    level, half = _level(box, slope), box.height / 2
    for other in row:
        theirs, their_half = _level(other.box, slope), other.box.height / 2
        overlap = _shared(level - half, level + half, theirs - their_half, theirs + their_half)
        if overlap < _SAME_ROW * 2 * min(half, their_half):
            return False
        beside = _shared(box.left, box.right, other.box.left, other.box.right)
        if beside > 0.3 * min(box.width, other.box.width):
            return False
    return True


def _shared(low: float, high: float, other_low: float, other_high: float) -> float:
    return min(high, other_high) - max(low, other_low)
