"""Grounding: where on the pages a value stands. A value that is nowhere cannot be trusted much, whoever says it."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import assert_never

from docmill.documents.reading import Reading
from docmill.extraction.pages import Pages, Place
from docmill.extraction.result import Evidence
from docmill.extraction.values.currencies import find_currencies
from docmill.extraction.values.kinds import FieldType
from docmill.extraction.values.texts import bare

MOST = 12
"""Places that are told at most."""
_SHORT = 3
"""Letters up to which a text must stand as a word of its own."""
_FUZZY = 6
"""Letters from which on a text may be found with a few of them misread."""
_MOST_TRIES = 5000
"""Places that are looked at for one value."""
_ALIKE = 88.0
_MOST_ALIKE = 200
"""Letters of a text that are compared so."""
_LINE_ALIKE = 90.0
_COVERED = 0.6
"""Share of a long text that must be found, when its lines stand apart (in a column beside others)."""


def ground(value: str, kind: FieldType, reading: Reading | Pages) -> tuple[Evidence, ...]:
    """Every place where a canonical value stands; empty if it is nowhere.

    A text over several lines gives one place per line. Pass `Pages` to ask for many values of one document.
    """
    pages = reading if isinstance(reading, Pages) else Pages(reading)
    found = places(value, kind, pages)
    return tuple(place.evidence for place in found[:MOST])


def places(value: str, kind: FieldType, pages: Pages) -> tuple[Place, ...]:
    """As `ground`, with what is written there."""
    if not value.strip():
        return ()
    match kind:
        case FieldType.AMOUNT | FieldType.NUMBER | FieldType.COUNT | FieldType.PERCENT:
            return _number(value, kind, pages)
        case FieldType.DATE:
            return tuple(pages.dates.get(_day(value), ())) if _day(value) else ()
        case FieldType.TIME:
            return tuple(pages.times.get(value if value.count(":") == 2 else value + ":00", ()))
        case FieldType.CURRENCY:
            return tuple(_currency(value, pages)) or _text(value, pages, fuzzy=False)
        case FieldType.TEXT | FieldType.ENUM:
            return _text(value, pages, fuzzy=True)
        case FieldType.IDENTIFIER | FieldType.TAX_ID | FieldType.IBAN | FieldType.BIC | FieldType.BOOLEAN:
            # A code with a wrong character is another code: nothing is forgiven.
            return _text(value, pages, fuzzy=False)
        case _:
            assert_never(kind)


def _day(value: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError:
        return date.min


def _number(value: str, kind: FieldType, pages: Pages) -> tuple[Place, ...]:
    try:
        worth = Decimal(value)
    except ArithmeticError:
        return ()
    if not worth.is_finite():
        return ()
    found = pages.amount(worth, MOST)
    if not found and kind is FieldType.AMOUNT:
        # A credit note may print what it gives back without a sign.
        found = pages.amount(-worth, MOST)
    if not found and kind is FieldType.PERCENT:
        return _text(value, pages, fuzzy=False)
    return found


def _currency(code: str, pages: Pages) -> Iterator[Place]:
    count = 0
    for line in pages.lines:
        for found in find_currencies(line.text):
            if found.code == code:
                yield line.place(found.start, found.end)
                count += 1
        if count >= MOST:
            return


def _letters_of(text: str) -> str:
    return "".join(sign for sign in bare(text) if sign.isalnum())


def _text(value: str, pages: Pages, *, fuzzy: bool) -> tuple[Place, ...]:
    wanted = _letters_of(value)
    if not wanted:
        return ()
    found = _exact(wanted, pages)
    if found or not fuzzy or len(wanted) < _FUZZY:
        return found
    # What is not there as it is written is compared with everything, so only where fields stand.
    return _apart(wanted, value, pages.edges) or _alike(wanted[:_MOST_ALIKE], pages.edges)


def _exact(wanted: str, pages: Pages) -> tuple[Place, ...]:
    whole: list[Place] = []
    inside: list[Place] = []
    tries = _MOST_TRIES
    for letters in pages.letters:
        at = letters.text.find(wanted)
        while at >= 0 and len(whole) < MOST and tries:
            tries -= 1
            end = at + len(wanted)
            if pages.goes_on(letters, end):
                pass
            elif at in letters.starts and end in letters.ends:
                whole += pages.spot(letters, at, end)
            elif len(wanted) > _SHORT and len(inside) < MOST and not _cuts_number(letters.text, at, end):
                inside += pages.spot(letters, at, end)
            at = letters.text.find(wanted, at + 1)
    return tuple(whole or inside)


def _cuts_number(text: str, start: int, end: int) -> bool:
    """Whether the run begins or ends in the midst of a longer number: `123` is not in `41234`."""
    before = start > 0 and text[start - 1].isdigit() and text[start].isdigit()
    return before or (end < len(text) and text[end].isdigit() and text[end - 1].isdigit())


def _apart(wanted: str, value: str, pages: Pages) -> tuple[Place, ...]:
    """A text whose lines have others between them, as in two columns: enough whole lines or parts of it are found."""
    from rapidfuzz import fuzz

    found: list[Place] = []
    covered = 0
    pieces = [piece for piece in (_letters_of(part) for part in value.replace("\n", ",").split(",")) if len(piece) > 3]
    if len(pieces) > 1:
        for piece in pieces:
            if hits := _exact(piece, pages):
                covered += len(piece)
                found += hits[:2]
        if covered >= _COVERED * len(wanted):
            return tuple(found)
    covered, found = 0, []
    for line in pages.lines:
        text = "".join(sign for sign in line.bare if sign.isalnum())
        if 5 <= len(text) <= len(wanted) and fuzz.partial_ratio(text, wanted) >= _LINE_ALIKE:
            covered += len(text)
            found.append(line.place(0, len(line.text)))
    return tuple(found) if covered >= _COVERED * len(wanted) and covered <= 2 * len(wanted) else ()


def _alike(wanted: str, pages: Pages) -> tuple[Place, ...]:
    """The most similar run of letters, if it is similar enough."""
    from rapidfuzz import fuzz

    best: tuple[float, tuple[Place, ...]] = (0.0, ())
    for letters in pages.letters:
        if len(letters.text) < len(wanted):
            continue
        near = fuzz.partial_ratio_alignment(wanted, letters.text, score_cutoff=_ALIKE)
        if near and near.score > best[0]:
            best = near.score, pages.spot(letters, near.dest_start, near.dest_end)
    return best[1]
