"""Several papers in one file: a stack in the feeder of a scanner, two receipts on one photo. Pure.

Whoever reads such a file as one takes the seller from one paper and the total from another, each as sure as can be. So
every page (of a photograph every part that stands beside another) that could open a paper is read alone, and held
against the papers before it: a paper of its own calls itself something that is paid and says something else of itself,
not in one thing, which could be misread, but in two. Pages that repeat the head of an invoice, terms, delivery notes
and slips of banks say nothing else, or are nothing that is paid.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import NamedTuple

from docmill.documents.reading import Box, Line, Page, Reading, TextSource
from docmill.extraction.result import Check, Extraction, FieldValue
from docmill.extraction.values.texts import loose

CHECK = "several_documents"
MOST_READ = 12
"""Pages that are read alone: a stack is told by its first papers, and a long document costs no more than twelve."""
FEWEST_LINES = 6
"""Of a part of a photograph: a slip with fewer is hardly a receipt, and often the column of its amounts."""
_GUTTER = 0.03
"""Of the width: between two receipts that lie side by side."""
_LIKELY = 0.5
"""Below this a value is as likely misread, and tells no two papers apart."""
_ALIKE = 0.7
"""How much of two names is the same if OCR read one of them otherwise."""
_TELLING = 4
"""Letters and digits of a number that does not stand on a page by chance."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    "number": ("invoice_number",),
    "seller": ("seller_name", "company"),
    "day": ("issue_date", "date"),
    "total": ("total",),
}
"""What tells papers apart, and the fields of the shipped schemas that say it."""
Opens = Callable[[Reading], bool]
"""Whether a page looks like the first of a paper by which something is owed or was paid: a quick look."""
Alone = Callable[[Reading], Extraction | None]
"""What a page says by itself, checked and calibrated; None if it is no such paper after all."""


class Part(NamedTuple):
    """A page, or a part of a photograph, as if it were all there is."""

    page: int
    """Of the file, from 1."""
    reading: Reading

    @property
    def text(self) -> str:
        return self.reading.pages[0].text


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """What a page says of the paper that it opens."""

    page: int
    kind: str
    text: str
    says: Mapping[str, str]
    """By the keys of `_NAMES`, what is known of it."""


def several_documents(reading: Reading, number: str | None, *, opens: Opens, alone: Alone) -> Check | None:
    """The failed check that names the pages on which papers begin; None if the file holds one.

    `number` is that of the invoice the file was read as: of the pages that print it, only the first opens a paper, so
    an invoice of many pages costs a look at each and no more.
    """
    if reading.invoice is not None:
        return None
    parts = _parts(reading)
    repeating = [part for part in parts if _prints(part.text, number)]
    first = [part for part in parts if part not in repeating[1:] and opens(part.reading)]
    papers: list[Paper] = []
    for part in first[:MOST_READ] if len(first) > 1 else ():
        if any(_prints(part.text, paper.says.get("number")) for paper in papers):
            continue
        if (found := alone(part.reading)) is None:
            continue
        paper = _paper(part, found)
        if all(_another(paper, before) for before in papers):
            papers.append(paper)
    return _told(papers, more=len(first) > MOST_READ) if len(papers) > 1 else None


def marked(extraction: Extraction) -> Extraction:
    """The extraction with the check in all its values, whoever read them: any may come from any of the papers."""
    told = next((check for check in extraction.checks if check.name == CHECK), None)
    if told is None:
        return extraction
    names = tuple(extraction.fields)
    fields = _marked(extraction.fields)
    rows = {table: [_marked(row) for row in rows] for table, rows in extraction.rows.items()}
    checks = tuple(replace(check, fields=names) if check is told else check for check in extraction.checks)
    return replace(extraction, fields=fields, rows=rows, checks=checks)


def _marked(values: Mapping[str, FieldValue]) -> dict[str, FieldValue]:
    return {
        name: found if CHECK in found.failed else found.judged(found.passed, (*found.failed, CHECK))
        for name, found in values.items()
    }


def _parts(reading: Reading) -> list[Part]:
    """Pages with something on them, those of photographs in as many parts as stand side by side."""
    alone = len(reading.pages) == 1
    if alone and reading.pages[0].source is not TextSource.OCR:
        return []
    parts = []
    for page in reading.pages if not alone else ():
        if page.lines:
            parts.append(Part(page.number, replace(reading, pages=(replace(page, number=1),))))
    for lines in _beside(reading.pages[0]) if alone else ():
        parts.append(Part(1, replace(reading, pages=(_cropped(reading.pages[0], lines),))))
    return parts


def _beside(page: Page) -> Sequence[Sequence[Line]]:
    """The lines of a page in groups that stand side by side, with nothing across the space between them."""
    groups: list[list[Line]] = []
    right = 0.0
    for line in sorted((line for line in page.lines if line.words), key=lambda line: line.box.left):
        if not groups or line.box.left - right >= _GUTTER:
            groups.append([])
        groups[-1].append(line)
        right = max(right, line.box.right)
    groups = [group for group in groups if len(group) >= FEWEST_LINES]
    return [sorted(group, key=lambda line: line.box.top) for group in groups] if len(groups) > 1 else ()


def _cropped(page: Page, lines: Sequence[Line]) -> Page:
    """A part of a page as a page: readers know papers by where on them something stands."""
    around = lines[0].box.around(*(line.box for line in lines[1:]))
    left, top = max(0.0, around.left - _GUTTER), max(0.0, around.top - _GUTTER)
    width, height = around.right + _GUTTER - left, around.bottom + _GUTTER - top

    def placed(box: Box) -> Box:
        return Box(
            (box.left - left) / width, (box.top - top) / height, (box.right - left) / width, (box.bottom - top) / height
        )

    moved = tuple(Line(words=tuple(word._replace(box=placed(word.box)) for word in line.words)) for line in lines)
    return replace(page, number=1, width=page.width * width, height=page.height * height, lines=moved)


def _paper(part: Part, found: Extraction) -> Paper:
    says = {}
    for key, names in _NAMES.items():
        for name in names:
            if name in found.fields and found.fields[name].confidence >= _LIKELY:
                says[key] = found.fields[name].value
    if "total" in says and not found.fields["total"].signals.get("label"):
        # An amount for want of a total: of a list of calls behind an invoice, the price of one.
        del says["total"]
    return Paper(page=part.page, kind=found.document_type, text=part.text, says=says)


def _prints(text: str, number: str | None) -> bool:
    if number is None or len(loose(number)) < _TELLING:
        return False
    return re.search(rf"(?<!\w){re.escape(number)}(?!\w)", text, re.IGNORECASE) is not None


def _another(paper: Paper, before: Paper) -> bool:
    """Whether two papers are not one: both say what they are, and they differ in two things or more."""
    if _prints(before.text, paper.says.get("number")):
        return False
    known = [key for key in _NAMES if key in paper.says and key in before.says]
    differing = {key for key in known if not _same(key, paper.says[key], before.says[key])}
    if "number" in known and "number" not in differing:
        return False
    # Of one seller on one day there are two papers only if they are numbered: a slip of the terminal has another sum.
    return len(differing) > 1 and bool(differing & {"number", "total"})


def _same(key: str, one: str, other: str) -> bool:
    if key != "seller":
        return one == other if key != "number" else loose(one) == loose(other)
    mine, theirs = loose(one), loose(other)
    return mine in theirs or theirs in mine or SequenceMatcher(None, mine, theirs).ratio() >= _ALIKE


def _told(papers: Sequence[Paper], *, more: bool) -> Check:
    kinds = {paper.kind for paper in papers}
    kind = f"{kinds.pop().replace('_', ' ')}s" if len(kinds) == 1 else "papers"
    pages = list(dict.fromkeys(str(paper.page) for paper in papers))
    where = f"side by side on page {pages[0]}" if len(pages) == 1 else f"pages {', '.join(pages[:-1])} and {pages[-1]}"
    count = f"{len(papers)} {kind} or more" if more else f"{len(papers)} {kind}"
    return Check(
        name=CHECK, passed=False, message=f"This file seems to hold {count} ({where}): split it and process each."
    )
