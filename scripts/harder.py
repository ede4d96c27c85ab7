"""Readings made harder: words that no reader knows, characters misread, values gone from the page.

The labelled invoices hold ten mistakes, and nothing can be told from ten. These hold hundreds, of the kind that
unknown senders cause: a label that is in no list, a right value that is not among the candidates. Nothing is fitted to
them; the weights of signals are held against them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from corpus import Document

from docmill.documents.reading import Line, Page, Reading, Word
from docmill.extraction.grounding import ground
from docmill.extraction.pages import Pages
from docmill.extraction.result import Evidence
from docmill.extraction.schema import FieldSchema

_WORD = re.compile(r"[^\W\d_]{3,}")
_MISREAD = str.maketrans("0O1l5S8Bea6372gnir", "O0l15SB8coB81Z9r1n")
_TRIES = 12
"""How often a value may be printed and still be taken off the page."""


def in_unknown_words(document: Document, share: float, seed: int = 0) -> Document:
    """As if in a language that has this share of its words from nowhere; names that are labelled stay."""
    random = Random(f"words {seed} {document.labelled.file}")
    kept = " ".join(str(value) for value in document.labelled.fields.values()).casefold()
    known: dict[str, str | None] = {}

    def other(word: Word) -> Word | None:
        match = _WORD.search(word.text)
        if match is None or word.text.casefold().strip(".,:;") in kept:
            return word
        key = match.group().casefold()
        if key not in known:
            known[key] = _made_up(random, len(key)) if random.random() < share else None
        made = known[key]
        if made is None:
            return word
        made = made.upper() if match.group().isupper() else made.capitalize() if match.group()[0].isupper() else made
        return word._replace(text=word.text[: match.start()] + made + word.text[match.end() :])

    return _changed(document, other, f"unknown words {share}")


def misread(document: Document, slips: float = 0.05, losses: float = 0.02, seed: int = 0) -> Document:
    """As a bad OCR would have it: a character of this share of the words is another, and some are gone."""
    random = Random(f"slips {seed} {document.labelled.file}")

    def other(word: Word) -> Word | None:
        if random.random() < losses:
            return None
        if random.random() >= slips:
            return word
        at = random.randrange(len(word.text))
        return word._replace(text=word.text[:at] + word.text[at].translate(_MISREAD) + word.text[at + 1 :])

    return _changed(document, other, "misread")


def without_values(documents: Sequence[Document], schema: FieldSchema) -> list[Document]:
    """Each document without one of its values, wherever it is printed: whatever is found in its place is wrong."""
    made = []
    for document in documents:
        for name, value in document.labelled.fields.items():
            if value and name in schema.fields and document.labelled.sees(name):
                reading = _without(document.reading, value, schema, name)
                if reading is not None:
                    labelled = replace(
                        document.labelled,
                        file=f"{document.labelled.file}#without {name}",
                        fields={name: "not on the page any more"},
                        visible={name: True},
                        layout=None,
                    )
                    made.append(replace(document, reading=reading, labelled=labelled))
    return made


def _without(reading: Reading, value: str, schema: FieldSchema, name: str) -> Reading | None:
    """None if it is not there, or cannot be taken off."""
    places = ground(value, schema.fields[name].type, Pages(reading))
    if not places:
        return None
    for _ in range(_TRIES):
        reading = _words(reading, partial(_outside, places))
        places = ground(value, schema.fields[name].type, Pages(reading))
        if not places:
            return reading
    return None


def _outside(places: Sequence[Evidence], page: Page, word: Word) -> Word | None:
    """The word, unless its middle lies in one of these places."""
    x, y = (word.box.left + word.box.right) / 2, (word.box.top + word.box.bottom) / 2
    inside = any(
        place.page == page.number and place.box.left <= x <= place.box.right and place.box.top <= y <= place.box.bottom
        for place in places
    )
    return None if inside else word


def _made_up(random: Random, length: int) -> str:
    pairs = (random.choice("bdfgklmnprstvz") + random.choice("aeiou") for _ in range((length + 1) // 2))
    return "".join(pairs)[:length]


def _changed(document: Document, other: Callable[[Word], Word | None], how: str) -> Document:
    labelled = replace(document.labelled, file=f"{document.labelled.file}#{how}", layout=None)
    return replace(document, labelled=labelled, reading=_words(document.reading, lambda page, word: other(word)))


def _words(reading: Reading, other: Callable[[Page, Word], Word | None]) -> Reading:
    pages = []
    for page in reading.pages:
        lines = []
        for line in page.lines:
            words = tuple(made for word in line.words if (made := other(page, word)) is not None)
            if words:
                lines.append(Line(words=words))
        pages.append(replace(page, lines=tuple(lines)))
    return replace(reading, pages=tuple(pages))
