"""Everything on an invoice that could be the name of a party, cut out of the cells it stands in."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.party_words import (
    ABBREVIATED,
    ADDRESSED,
    BUYER,
    COUNTRY,
    DEPARTMENT,
    HOLDER,
    LABELLED,
    LEGAL,
    LEGAL_END,
    LEGAL_START,
    LISTED,
    PERSON,
    POSTCODE,
    PREPOSITION,
    SELLER,
    SEPARATOR,
    SHIP,
    STREET,
    TITLE,
    WITHIN,
)
from docmill.extraction.local.invoices.sheet import Cell, Token
from docmill.extraction.local.invoices.wording import plain

_EDGES = " ,;:|•·●-–*\"'()"
"""What stands around a name and is no part of it."""
_MARK = re.compile(r"[•·●|*-]")
_LINK = re.compile(r"[@§]|https?:|www\.")
_UNLIKE = re.compile(r"\d{3,}|[@§%€$]")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, kw_only=True, eq=False)
class Name:
    """A text that could be a name, and where."""

    text: str
    tokens: tuple[Token, ...]
    cell: Cell
    sender_line: bool = False
    """One of several parts of a line, such as the sender above the address in a window."""
    prefix: str = ""
    """A label that stood before it in the same text."""
    lines: int = 1
    tail: Cell | None = None
    """Its second line."""


def names_in(paper: Paper, items: Items) -> list[Name]:
    """Everything that could be a name."""
    last = max((cell.page for cell in paper.sheet.cells), default=1)
    found: list[Name] = []
    headings = items.headings | _over_amounts(paper)
    for cell in paper.sheet.cells:
        if (cell.page not in (1, last) and cell.page > 2) or cell.row in items.rows or cell.row in headings:
            continue
        parts = list(_parts(paper, cell))
        found += parts
        if len(cell.tokens) > 4:
            found += _within(cell)
        if len(parts) == 1 and (both := _two_lines(paper, parts[0])) is not None:
            found.append(both)
    return found


def _over_amounts(paper: Paper) -> set[int]:
    """Rows of words right above a row of amounts: the heading of a table, whatever its words."""
    return {
        row[0].row
        for row, below in pairwise(paper.sheet.rows)
        if len(row) >= 3 and sum(paper.is_money(cell) for cell in below) >= 2 and not any(map(paper.is_value, row))
    }


def _parts(paper: Paper, cell: Cell) -> Iterator[Name]:
    text = cell.text
    pieces: list[tuple[int, int]] = []
    at = 0
    cuts = LISTED if "," in text and POSTCODE.search(text) and not SEPARATOR.search(text) else SEPARATOR
    for cut in cuts.finditer(text):
        pieces.append((at, cut.start()))
        at = cut.end()
    pieces.append((at, len(text)))
    row = paper.sheet.rows[cell.row]
    spread = len(row) >= 3 and any(_MARK.fullmatch(other.text) for other in row)
    for start, end in pieces:
        piece = text[start:end]
        prefix = ""
        label = LABELLED.match(piece)
        if label:
            prefix, start = label[0], start + label.end()
            piece = text[start:end]
        if ":" in piece and not label:
            head, _, tail = piece.rpartition(":")
            if tail.strip() and len(plain(head)) < 40:
                prefix, start = head, end - len(tail.lstrip())
                piece = tail
        piece = piece.strip(_EDGES)
        if not _is_name(piece):
            continue
        tokens = cell.slice(start, end)
        if tokens:
            name = Name(
                text=" ".join(piece.split()),
                tokens=tokens,
                cell=cell,
                sender_line=(len(pieces) > 1 and bool(POSTCODE.search(text) or STREET.within(text))) or spread,
                prefix=plain(prefix).strip(),
            )
            yield name
            head, comma, rest = name.text.partition(", ")
            if comma and LEGAL_END.within(head) and not LEGAL_START.within(rest):
                # A branch or a seat behind the legal form is not part of the name.
                yield replace(name, text=head, tokens=tokens[: len(head.split())])


def _within(cell: Cell) -> Iterator[Name]:
    """Names inside a sentence."""
    for found in WITHIN.finditer(cell.text):
        start, end = found.span("name")
        if ABBREVIATED.search(found["name"]) and cell.text[end : end + 1] == ".":
            end += 1
        text = cell.text[start:end]
        if _is_name(text):
            yield Name(text=text, tokens=cell.slice(start, end), cell=cell, prefix=plain(found["label"]))


def _is_name(text: str) -> bool:
    if not 3 <= len(text) <= 70 or sum(map(str.isalpha, text)) < max(3, 0.5 * len(text)):
        return False
    flat = plain(text)
    if COUNTRY.match(flat) or len(text.split()) > 9:
        return False
    if LEGAL.within(text):
        return not _LINK.search(text)
    return not (_UNLIKE.search(text) or TITLE.within(flat) or POSTCODE.search(text))


def _two_lines(paper: Paper, name: Name) -> Name | None:
    """A name that goes on in the next line: a form of address before a person, or a legal form at the end."""
    below = [cell for cell in paper.sheet.below(name.cell, reach=0.9) if abs(cell.left - name.cell.left) < 0.02]
    if not below or abs(below[0].height - name.cell.height) > 0.25 * name.cell.height:
        return None
    other = below[0]
    first, second = plain(name.text), other.text.strip(_EDGES)
    labelled = name.prefix or name.cell.text.rstrip().endswith(":")
    if labelled or is_label(first) or PREPOSITION.match(first) or DEPARTMENT.within(first):
        return None
    if not _is_name(second) or _DIGIT.search(second) or ":" in second:
        return None
    if PERSON.match(first) or (
        LEGAL_END.within(second) and not LEGAL.within(name.text) and not _DIGIT.search(name.text)
    ):
        return Name(
            text=f"{name.text} {second}",
            tokens=(*name.tokens, *other.tokens),
            cell=name.cell,
            prefix=name.prefix,
            lines=2,
            tail=other,
        )
    return None


@lru_cache(maxsize=2048)
def is_label(flat: str) -> bool:
    """Whether a text is little more than the label of a party."""
    for phrases in (BUYER, SELLER, SHIP, HOLDER):
        if held := phrases.letters(flat):
            rest = ADDRESSED.sub("", flat)
            if held >= 0.6 * min(len(flat.strip(" :")), max(held, len(rest.strip(" :")))):
                return True
    return False
