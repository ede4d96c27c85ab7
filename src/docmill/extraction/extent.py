"""How much of a document is looked at for its fields, so that a huge or hostile one costs no more than a large one.

Three limits, each with a note when it leaves something out. The whole: up to `MOST_WORDS`, and of a longer document its
edges before its middle. The edges: fields of which a document has one (numbers, dates, parties, sums) stand on its
first and last pages, so only those are searched for them; rows of tables and places of known values are looked for on
all pages. The line: what stands in one run of hundreds of words is cut into lines, because what is looked for in a
line is compared with what else is in it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import is_

from docmill.documents.reading import Line, Page, Reading, Word

MOST_WORDS = 100_000
MOST_LETTERS = 1_000_000
"""Of one document."""
FIRST_PAGES, LAST_PAGES = 40, 20
"""Pages on which fields are looked for; documents of no more pages are searched whole."""
EDGE_WORDS = 16_000
"""Of the edges: sixty pages of invoices have fewer."""
PAGE_WORDS = 2_500
"""Of one of their pages; a page of a newspaper has some 1,500."""
ROW_WORDS = 120
"""Of one of their pages at one height: a row has some dozens, and everything in a row is compared with its labels."""
_ROWS = 250
"""Heights of a page that are told apart."""
LINE_WORDS, LINE_LETTERS = 100, 400
"""From here on a line is cut; a line of print has some 15 words and 100 letters."""
WORD_LETTERS = 200
"""Of a word that are kept."""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """A document as far as it is looked at."""

    reading: Reading
    notes: tuple[str, ...] = ()
    """What was left out, in sentences for a person."""


def whole(reading: Reading) -> Extent:
    """The document up to the limits: itself if it keeps them."""
    return _fitted(reading, MOST_WORDS, MOST_LETTERS)


def edges(reading: Reading) -> Extent:
    """The first and the last pages, on which the fields of a document stand; the document itself if it is short."""
    pages, notes = reading.pages, []
    if len(pages) > FIRST_PAGES + LAST_PAGES:
        notes = [f"Fields were looked for on the first {FIRST_PAGES} and the last {LAST_PAGES} of {len(pages)} pages."]
        pages = (*pages[:FIRST_PAGES], *pages[-LAST_PAGES:])
    thinned = tuple(_thinned(page) for page in pages)
    for page, thin in zip(pages, thinned, strict=True):
        if thin is not page:
            notes.append(f"Page {page.number} is fuller than print can be: fields were looked for in a part of it.")
    same = len(thinned) == len(reading.pages) and all(map(is_, thinned, reading.pages))
    fitted = _fitted(reading if same else replace(reading, pages=thinned), EDGE_WORDS, 10 * EDGE_WORDS)
    return Extent(reading=fitted.reading, notes=(*notes, *fitted.notes))


def _thinned(page: Page) -> Page:
    """The page without what no page of print has room for; itself if it is one."""
    count = page.size.words
    if count <= ROW_WORDS:
        return page
    rows: Counter[int] = Counter()
    if _fits((page,), PAGE_WORDS, MOST_LETTERS):
        for line in page.lines:
            rows[int(line.box.middle * _ROWS)] += len(line.words)
        if max(rows.values()) <= ROW_WORDS:
            return page
        rows.clear()
    kept, words = [], 0
    for line in _cut(page):
        row = int(line.box.middle * _ROWS)
        rows[row] += len(line.words)
        if words + len(line.words) <= PAGE_WORDS and rows[row] <= ROW_WORDS:
            kept.append(line)
            words += len(line.words)
    return page if words == count else replace(page, lines=tuple(kept))


def _fitted(reading: Reading, words: int, letters: int) -> Extent:
    """As many pages as the limits hold, those at the edges first; of the page that reaches them its first lines."""
    if _fits(reading.pages, words, letters):
        return Extent(reading=reading)
    kept: dict[int, Page] = {}
    lost = changed = False
    for index in _outside_in(len(reading.pages)):
        page = reading.pages[index]
        lines: list[Line] = []
        for line in _cut(page):
            words -= len(line.words)
            letters -= len(line.text)
            if words < 0 or letters < 0:
                lost = True
                break
            lines.append(line)
        same = len(lines) == len(page.lines) and all(map(is_, lines, page.lines))
        changed = changed or not same
        kept[index] = page if same else replace(page, lines=tuple(lines))
        if lost:
            break
    if not changed and not lost:
        return Extent(reading=reading)
    pages = tuple(kept[index] for index in sorted(kept))
    note = (
        f"The document has more words than are looked at: {sum(len(page.words) for page in pages):,} of them, on "
        f"{len(pages)} of {len(reading.pages)} pages, were searched."
    )
    return Extent(reading=replace(reading, pages=pages), notes=(note,) if lost else ())


def _fits(pages: Iterable[Page], words: int, letters: int) -> bool:
    """Whether they keep all limits as they are, as those of nearly every document do."""
    for page in pages:
        size = page.size
        if size.empty_lines or size.line_words > LINE_WORDS or size.line_letters > LINE_LETTERS:
            return False
        words -= size.words
        letters -= size.letters
    return words >= 0 and letters >= 0


def _outside_in(count: int) -> Iterator[int]:
    """Places of pages: the first ones, the last ones, then those between."""
    first, last = min(FIRST_PAGES, count), max(min(FIRST_PAGES, count), count - LAST_PAGES)
    yield from range(first)
    yield from range(last, count)
    yield from range(first, last)


def _cut(page: Page) -> Iterator[Line]:
    """The lines of a page that have words; those that are too long in pieces, words that are too long shortened."""
    for line in page.lines:
        if not line.words:
            continue
        if len(line.words) <= LINE_WORDS and len(line.text) <= LINE_LETTERS:
            yield line
            continue
        part: list[Word] = []
        size = 0
        for word in line.words:
            fit = word if len(word.text) <= WORD_LETTERS else word._replace(text=word.text[:WORD_LETTERS])
            if part and (len(part) == LINE_WORDS or size + len(fit.text) > LINE_LETTERS):
                yield Line(words=tuple(part))
                part, size = [], 0
            part.append(fit)
            size += len(fit.text) + 1
        yield Line(words=tuple(part))
