"""Pages typed on a grid, as readings: a text file stands for a document, every character in its place.

A file begins with what it says (`field: value`), then a line `---`, then the page. Two spaces or more part columns.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from docmill.documents.reading import Box, Format, Line, Page, Reading, TextSource, Word

FOLDER = Path(__file__).parent / "invoices"
_TALL = 842 / 595
_LETTER, _PITCH, _HEIGHT = 0.0088, 0.0205, 0.0145
"""In widths of the page: of a character, between two lines, of the type."""
_MARGIN = 0.06


@dataclass(frozen=True, kw_only=True)
class Typed:
    """A page and what it says."""

    name: str
    says: dict[str, str]
    reading: Reading


def typed_page(text: str, number: int = 1, source: TextSource = TextSource.EMBEDDED) -> Page:
    """One page of what is typed."""
    lines = []
    for row, line in enumerate(text.split("\n")):
        top = (_MARGIN + row * _PITCH) / _TALL
        for piece in re.finditer(r"\S+(?: \S+)*", line):
            words = []
            for word in re.finditer(r"\S+", piece[0]):
                left = _MARGIN + (piece.start() + word.start()) * _LETTER
                box = Box(left, top, left + len(word[0]) * _LETTER - 0.001, top + _HEIGHT / _TALL)
                words.append(Word(text=word[0], box=box))
            lines.append(Line(words=tuple(words)))
    return Page(number=number, width=595.0, height=842.0, source=source, lines=tuple(lines))


def typed_reading(*texts: str) -> Reading:
    """A document of these pages."""
    pages = tuple(typed_page(text.strip("\n"), number) for number, text in enumerate(texts, start=1))
    return Reading(sha256="0" * 64, format=Format.PDF, pages=pages)


def typed(path: Path) -> Typed:
    """What a file holds; a form feed begins another page."""
    head, _, text = path.read_text(encoding="utf-8").partition("\n---\n")
    says = dict(line.split(": ", 1) for line in head.splitlines())
    return Typed(name=path.stem, says=says, reading=typed_reading(*text.split("\f")))


def all_typed() -> list[Typed]:
    """Every file of the folder."""
    return [typed(path) for path in sorted(FOLDER.glob("*.txt"))]
