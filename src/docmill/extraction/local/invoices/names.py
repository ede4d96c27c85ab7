"""Everything on an invoice that could be the name of a party, cut out of the cells it stands in."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from docmill.extraction.local.invoices.form_words import is_form
from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.party_words import (
    ABBREVIATED,
    ADDRESSED,
    BUYER,
    CARE_OF,
    COUNTRY,
    DEPARTMENT,
    FORMAL,
    HOLDER,
    LABELLED,
    LEGAL,
    LISTED,
    NUMBERS_BEHIND,
    PERSON,
    PREPOSITION,
    SELLER,
    SEPARATOR,
    SHIP,
    SMALL,
    TITLE,
    WITHIN,
    ends_in_form,
    has_form,
    in_address,
    in_town,
)
from docmill.extraction.local.invoices.running_names import names_in_text
from docmill.extraction.local.invoices.sheet import Cell, Token
from docmill.extraction.local.invoices.wording import letters, plain
from docmill.extraction.phrases import Phrases

_EDGES = " ,;:|•·●-–*\"'()"
"""What stands around a name and is no part of it."""
_MARK = re.compile(r"[•·●|*-]")
_LINK = re.compile(r"[@§]|https?:|www\.")
_UNLIKE = re.compile(r"\d{3,}|[@§%€$]")
_DIGIT = re.compile(r"\d")
_STATE = re.compile(r"[A-Z]{2,3}\s+[A-Z\d][A-Z\d -]{3,8}$")
"""Behind a town: a state and its postcode."""
_DRAWN = re.compile(r"^[^\w\"'„“«»‘’(]+|[^\w.!?)\"'“”«»’&+]+$")
"""Signs before and behind a name that somebody drew there."""
_BRACKET = re.compile(r"\s*\((?:[^()]*\d[^()]*\)?|[^()]*)$")
"""A bracket at the end that holds a number, or never closes."""
_TITLECASE = re.compile(r"(?:[A-Z]\.|[^\W\d_a-z][^\W\d_A-Z]+(?:-\w+)?)$")
_ALONE = re.compile(r"(?:eheleute|firma|fa\.?|an|aan|till|til)\W*$")
"""Before a name in a line of its own, and no part of it."""
_PARTIES = (BUYER, SELLER, SHIP, HOLDER)
_LABEL = Phrases("|".join(label.pattern for label in _PARTIES))
"""The labels of all parties: most lines hold none, and one look tells."""
_JOINING = (SMALL | {"&", "+", "und", "et"}) - {"the", "a", "al", "i", "am", "im", "zum", "zu", "for"}
_STREETS = frozenset({"la", "le", "les", "w", "z"})
_LOGO = 1.3
"""Heights of an ordinary line from which on two lines may be one name as a logo."""


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
    running: bool = False
    """Inside a sentence."""
    inner: bool = False
    """A later part of an address in one line: a town or a quarter, unless it has a legal form."""


def names_in(paper: Paper, items: Items) -> list[Name]:
    """Everything that could be a name."""
    last = max((cell.page for cell in paper.sheet.cells), default=1)
    found: list[Name] = []
    headings = items.headings | _over_amounts(paper)
    for cell in paper.sheet.cells:
        if (cell.page not in (1, last) and cell.page > 2) or cell.row in headings:
            continue
        if cell.row in items.rows and not _beside_items(paper, items, cell):
            continue
        parts = list(_parts(paper, cell))
        found += parts
        if len(cell.tokens) > 4:
            found += _within(cell)
            known = {part.text for part in parts}
            found += [name for name in _running(cell) if name.text not in known]
        if len(parts) == 1 and (both := _two_lines(paper, parts[0])) is not None:
            found.append(both)
    return [*found, *_wrapped(paper, found)]


def _wrapped(paper: Paper, found: Sequence[Name]) -> list[Name]:
    """Names that stand in one line elsewhere, and here in two."""
    known = {letters(name.text) for name in found if name.lines == 1}
    tails = {id(name.cell) for name in found if name.lines == 2}
    starts = {key[:4] for key in known}
    wrapped = []
    for name in found:
        if id(name.cell) in tails or letters(name.text)[:4] not in starts or name.prefix or len(name.tokens) > 6:
            continue
        for below in paper.sheet.below(name.cell, reach=0.9)[:1]:
            if letters(name.text + below.text) in known and not has_form(name.text):
                wrapped.append(_joined(name, below, f"{name.text} {below.text}"))
    return wrapped


def _joined(name: Name, other: Cell, text: str) -> Name:
    return replace(name, text=text, tokens=(*name.tokens, *other.tokens), lines=2, tail=other)


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
    cuts = LISTED if "," in text and in_town(text) and not SEPARATOR.search(text) else SEPARATOR
    for cut in cuts.finditer(text):
        pieces.append((at, cut.start()))
        at = cut.end()
    pieces.append((at, len(text)))
    row = paper.sheet.rows[cell.row]
    spread = len(row) >= 3 and any(_MARK.fullmatch(other.text) for other in row)
    listed = len(pieces) > 1 and in_town(text)
    town = listed and bool(_STATE.match(text, pieces[1][0]))
    for place, (start, end) in enumerate(pieces):
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
        if (number := NUMBERS_BEHIND.search(piece)) is not None:
            piece = piece[: number.start()]
            end = start + number.start()
        piece, formal = _bare(piece)
        if not _is_name(piece):
            continue
        tokens = cell.slice(start, end)
        if tokens:
            name = Name(
                text=" ".join(piece.split()),
                tokens=tokens,
                cell=cell,
                sender_line=(len(pieces) > 1 and any(in_address(text))) or spread,
                prefix=plain(prefix).strip() or formal,
                inner=listed and (place > 0 or town) and not has_form(piece),
            )
            yield name
            head, comma, rest = name.text.partition(", ")
            if comma and ends_in_form(head) and not LEGAL.match(rest):
                # A branch or a seat behind the legal form is not part of the name.
                yield replace(name, text=head, tokens=tokens[: len(head.split())])


def _bare(piece: str) -> tuple[str, str]:
    """A name without what stands around it, and the form of address that it was without, if any."""
    text = piece.strip(_EDGES)
    if text.count("(") > text.count(")") and f"{text})" in piece:
        text += ")"
    if not (text.isascii() and text[:1].isalnum()):
        text = _DRAWN.sub("", text)
    if "(" in text:
        text = _BRACKET.sub("", text)
    formal = FORMAL.match(text)
    if formal and (formal[0][:2] != "D." or not has_form(text)):
        return text[formal.end() :], plain(formal[0]).strip()
    return text, ""


def _beside_items(paper: Paper, items: Items, cell: Cell) -> bool:
    """Whether a cell beside the table of items stands under the label of a party, as in a margin."""
    for other in paper.sheet.above(cell, reach=2.5):
        if (
            abs(other.left - cell.left) < 0.006
            and other.row not in items.headings
            and is_label(other.plain.strip(" :"))
        ):
            return len(paper.sheet.rows[other.row]) > 1 or other.row in items.rows
    return False


def _running(cell: Cell) -> Iterator[Name]:
    """Companies inside running text."""
    for start, end, before in names_in_text(cell.text):
        text = cell.text[start:end].strip(_EDGES)
        if (start, end) != (0, len(cell.text)) and _is_name(text):
            yield Name(
                text=text,
                tokens=cell.slice(start, end),
                cell=cell,
                prefix=before if _tells(before) else "",
                running=True,
            )


def _tells(before: str) -> bool:
    """Whether words in a sentence say whose name comes next."""
    return before.endswith((" of", " by", " for", " to", ":", " der", " de", " von", " van", " av", " di", "©")) or (
        "©" in before and before.rstrip(" 0123456789-,").endswith("©")
    )


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
    if has_form(text):
        return not _LINK.search(text)
    return not (_UNLIKE.search(text) or TITLE.within(flat) or in_town(text))


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
    if not _is_name(second) or _DIGIT.search(second) or ":" in second or CARE_OF.match(plain(second)):
        return None
    if is_form(first) or is_form(plain(second)) or not _goes_on(paper, name, other, second):
        return None
    if _ALONE.match(first):
        return replace(name, text=second, tokens=other.tokens, lines=2, tail=other)
    return _joined(name, other, f"{name.text} {second}")


def _goes_on(paper: Paper, name: Name, other: Cell, second: str) -> bool:
    """Whether the next line belongs to a name."""
    if PERSON.match(plain(name.text)):
        return True
    if has_form(name.text) or _DIGIT.search(name.text):
        return False
    if ends_in_form(second):
        # A person above the company that he or she works for is another name, and so is a brand above its own.
        apart = _is_person(name.text) and len(second.split()) > 2
        return not (apart or letters(name.text) in letters(second))
    first_word, last_word = plain(second).split()[0], plain(name.text).split()[-1]
    if last_word in _JOINING or last_word.endswith("-") or (first_word in _JOINING and first_word not in _STREETS):
        return True
    large = name.cell.height > _LOGO * paper.sheet.height and other.top - name.cell.bottom < 0.5 * name.cell.height
    return large and name.cell.depth < 0.25 and len((*name.text.split(), *second.split())) <= 5


def _is_person(text: str) -> bool:
    """Whether a text looks like first and last name."""
    words = text.split()
    return 2 <= len(words) <= 3 and all(_TITLECASE.match(word) for word in words)


@lru_cache(maxsize=2048)
def is_label(flat: str) -> bool:
    """Whether a text is little more than the label of a party."""
    if not _LABEL.within(flat):
        return False
    for pattern in _PARTIES:
        if held := sum(len(found[0]) for found in pattern.finditer(flat)):
            rest = ADDRESSED.sub("", flat)
            if held >= 0.6 * min(len(flat.strip(" :")), max(held, len(rest.strip(" :")))):
                return True
    return False
