"""What kind of document it is: named types, told by the words and the look of its pages. Pure.

A small model, fitted on labelled documents, weighs what speaks for an invoice, for a receipt or for neither: titles in
some twenty languages, words that stand on one of them only, the shape of the paper, how much is prose and how much
amounts. Titles then give it its precise name. The type code of an e-invoice decides without being weighed.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from itertools import accumulate
from statistics import median
from typing import Any, Self

from docmill.documents.reading import Line, Page, Reading
from docmill.extraction.extent import edges
from docmill.extraction.phrases import by_letter
from docmill.extraction.values.texts import bare
from docmill.extraction.vocabulary import GROUPS, TITLES

VERSION = 1


class DocumentType(StrEnum):
    """Kinds of documents that have a name here."""

    INVOICE = "invoice"
    CREDIT_NOTE = "credit_note"
    RECEIPT = "receipt"
    ORDER = "order"
    DELIVERY_NOTE = "delivery_note"
    QUOTE = "quote"
    REMINDER = "reminder"
    STATEMENT = "statement"
    LETTER = "letter"
    OTHER = "other"


WEIGHED = (DocumentType.INVOICE, DocumentType.RECEIPT, DocumentType.OTHER)
"""What the model tells apart; titles tell the rest."""
_SCHEMAS = {DocumentType.RECEIPT: "receipt", DocumentType.INVOICE: "invoice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """What a document was taken for."""

    type: DocumentType
    confidence: float
    schema: str
    """The field schema that suits it: where it is neither, that of the likelier of invoice and receipt."""
    titled: bool = True
    """Whether it calls itself an invoice, a receipt or a credit note; otherwise its words were weighed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifier:
    """A fitted model: log odds of the weighed types, as sums over features."""

    features: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: Mapping[DocumentType, tuple[float, ...]]
    """The last one is the bias."""

    def probabilities(self, features: Mapping[str, float]) -> dict[DocumentType, float]:
        """Of the weighed types; they sum to one."""
        columns = zip(self.features, self.mean, self.scale, strict=True)
        inputs = [max(-4.0, min(4.0, (features.get(name, 0.0) - mean) / scale)) for name, mean, scale in columns]
        odds = {
            kind: sum(weight * x for weight, x in zip(weights, [*inputs, 1.0], strict=True))
            for kind, weights in self.weights.items()
        }
        top = max(odds.values())
        powers = {kind: math.exp(value - top) for kind, value in odds.items()}
        return {kind: power / sum(powers.values()) for kind, power in powers.items()}

    def as_json(self) -> dict[str, Any]:
        """As it ships with the package."""
        return {
            "version": VERSION,
            "features": list(self.features),
            "mean": [round(value, 6) for value in self.mean],
            "scale": [round(value, 6) for value in self.scale],
            "weights": {kind.value: [round(value, 5) for value in held] for kind, held in self.weights.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        if data.get("version") != VERSION:
            raise ValueError(f"a classifier of version {data.get('version')!r}; this release reads {VERSION}")
        return cls(
            features=tuple(data["features"]),
            mean=tuple(data["mean"]),
            scale=tuple(data["scale"]),
            weights={DocumentType(kind): tuple(held) for kind, held in data["weights"].items()},
        )


@cache
def shipped() -> Classifier:
    """The one that comes with the package."""
    file = resources.files("docmill.extraction.local").joinpath("models", "classification.json")
    return Classifier.from_json(json.loads(file.read_text(encoding="utf-8")))


def classify(reading: Reading, classifier: Classifier) -> Classified:
    """What the document is. An e-invoice is an invoice; whether it gives money back, its type code says.

    What carries an order as XML (Order-X) is one, whatever its pages look like.
    """
    if reading.invoice is not None:
        return Classified(type=DocumentType.INVOICE, confidence=1.0, schema="invoice")
    if reading.declared is not None:
        return Classified(type=DocumentType(reading.declared), confidence=1.0, schema="invoice", titled=False)
    found = features(reading)
    chances = classifier.probabilities(found)
    schema = "receipt" if chances[DocumentType.RECEIPT] > chances[DocumentType.INVOICE] else "invoice"
    kind, sure = _named(found, chances)
    if kind is DocumentType.RECEIPT and _whole_page(found):
        kind, sure, schema = DocumentType.INVOICE, max(_WHOLE, chances[DocumentType.INVOICE]), "invoice"
    titled = max(found.get(f"title_{each.value}", 0.0) for each in _PAID) >= _UNTITLED
    return Classified(type=kind, confidence=sure, schema=_SCHEMAS.get(kind, schema), titled=titled)


PRECISE = (
    DocumentType.DELIVERY_NOTE,
    DocumentType.REMINDER,
    DocumentType.STATEMENT,
    DocumentType.QUOTE,
    DocumentType.ORDER,
)
"""Types that only their titles tell. Nothing is owed by them: they announce an invoice, go with one, or repeat it."""
_PAID = (DocumentType.INVOICE, DocumentType.RECEIPT, DocumentType.CREDIT_NOTE)
"""Types whose schemas ship."""
_UNTITLED = 0.5
"""From here on a title is one: it stands near the top, alone in its line or in large type."""
_TITLED = 0.8
"""From here on nothing but perhaps a number stands beside the title."""
_LARGE = 1.1
"""A title that stands alone near the top, and in larger type than most."""


def _named(found: Mapping[str, float], chances: Mapping[DocumentType, float]) -> tuple[DocumentType, float]:
    """The type by its title where it has one that settles it, else the likeliest."""
    title = {kind: found.get(f"title_{kind.value}", 0.0) for kind in DocumentType}
    likeliest = max(WEIGHED, key=lambda kind: chances[kind])
    paid = max(title[DocumentType.INVOICE], title[DocumentType.RECEIPT])
    if title[DocumentType.CREDIT_NOTE] >= max(_UNTITLED, paid):
        return DocumentType.CREDIT_NOTE, max(0.7, 1 - chances[DocumentType.OTHER])
    precise = max(PRECISE, key=lambda kind: title[kind])
    # An invoice names the order and the delivery it is for: what calls itself so anywhere is overruled by large type.
    needed = _LARGE if paid or likeliest is DocumentType.RECEIPT else _UNTITLED
    if title[precise] >= max(needed, paid):
        return precise, 0.6 + 0.35 * max(0.0, min(1.0, title[precise] - paid))
    if likeliest is DocumentType.OTHER and title[DocumentType.INVOICE] >= _TITLED and found["group_total"]:
        return DocumentType.INVOICE, 0.7
    if likeliest is DocumentType.OTHER and _shaped(found):
        return DocumentType.INVOICE, _WHOLE
    if likeliest is DocumentType.OTHER and found["group_letter"] >= 1:
        return DocumentType.LETTER, chances[likeliest]
    return likeliest, chances[likeliest]


_WHOLE = 0.6
"""How sure it is that a paper is an invoice by its shape, where its words speak for something else."""
_ON_INVOICES = ("tax", "bank", "due", "parties", "table")
_MOST_AMOUNTS = 0.1
"""Of the lines of an invoice, at least so many have an amount."""
_FINE = 0.03
"""Height of the letters, in widths of what is printed: on a slip they are half as large again, and more."""


def _shaped(found: Mapping[str, float]) -> bool:
    """Whether a paper without a title that is known has what invoices have: amounts, a total, and most of the rest.

    Whether it has a number, a seller and the like, too, is asked when it was read.
    """
    if found["amounts"] < _MOST_AMOUNTS or not found["group_total"] or found["group_promise"]:
        return False
    numbered = 2 * (found["group_numbered"] > 0)
    return numbered + sum(found[f"group_{name}"] > 0 for name in _ON_INVOICES) >= 3


def _whole_page(found: Mapping[str, float]) -> bool:
    """Whether what reads like a receipt fills a page in fine print, and names an invoice or somebody who is to pay.

    Hotels, doctors and shops print on a page what was paid by card, with times and tills; it is an invoice still.
    """
    if found.get("fine", 1.0) > _FINE or found["title_receipt"] > max(_UNTITLED, found["title_invoice"]):
        return False
    return found["title_invoice"] >= _MENTIONED or found["group_parties"] + found["group_due"] + found["group_bank"] > 1


_MENTIONED = 0.25
"""A title that is one of several words of its line, or further down."""


def features(reading: Reading) -> dict[str, float]:
    """What speaks for one type or another; mostly 0 to 1, or a logarithm."""
    first = reading if len(reading.pages) <= _LOOKED_AT else replace(reading, pages=reading.pages[:_LOOKED_AT])
    pages = edges(first).reading.pages
    lines = [(page, line, bare(line.text)) for page in pages for line in page.lines if line.words]
    texts = [text for _, _, text in lines] or bare(reading.text[:20_000]).splitlines()
    text = "\n".join(texts)
    found = _title_scores(lines)
    for name, pattern in _groups().items():
        found[f"group_{name}"] = math.log1p(len(set(pattern.findall(text))))
    words = [len(line.split()) for line in texts]
    count = max(1, len(texts))
    found["amounts"] = sum([_AMOUNT.search(line) is not None for line in texts]) / count
    found["prose"] = sum(n >= 8 and not _DIGIT.search(line) for n, line in zip(words, texts, strict=True)) / count
    found["times"] = float(bool(_TIME.search(text)))
    found["words"] = math.log1p(sum(words))
    found["width"] = math.log1p(sum(map(len, texts)) / count)
    found["tall"] = max(0.5, min(4.0, pages[0].height / max(1.0, pages[0].width))) if pages else 1.4
    found["pages"] = math.log1p(len(reading.pages))
    found["fine"] = _fineness([(page, line) for page, line, _ in lines])
    return found


def _fineness(lines: Sequence[tuple[Page, Line]]) -> float:
    """The height of an ordinary line of the first page, in widths of what is printed there."""
    boxes = [(line.box, page.height / max(1.0, page.width)) for page, line in lines if page.number == 1]
    if not boxes:
        return 1.0
    wide = max(box.right for box, _ in boxes) - min(box.left for box, _ in boxes)
    return median(box.height * tall for box, tall in boxes) / max(wide, 0.05)


_AMOUNT = re.compile(r"(?<![\d.,])\d{1,3}(?:[ .,']?\d{3})*[.,]\d{2}(?![\d.,])")
_DIGIT = re.compile(r"\d")
_TIME = re.compile(r"(?<!\d)(?:[01]?\d|2[0-3]):[0-5]\d(?!\d)")
_LOOKED_AT = 3
"""Pages by which a document is told."""
_TITLE_WORDS = 5
_TITLE_PART = 0.45
"""Of the first page: further down a word such as `Rechnung` is part of a sentence."""


def _title_scores(lines: Sequence[tuple[Page, Line, str]]) -> dict[str, float]:
    """How much a line looks like the title of each type: 1 alone near the top, less in company, more in large type."""
    if not lines:
        return {f"title_{kind}": 0.0 for kind in _titles()}
    usual = sorted([line.box.height for _, line, _ in lines])[len(lines) // 2] or 1.0
    # No pattern has a line break in it, so all lines are searched at once.
    whole = "\n".join([text for _, _, text in lines])
    starts = [0, *accumulate(len(text) + 1 for _, _, text in lines)]
    found: dict[str, float] = {}
    matches = {kind: list(pattern.finditer(whole)) for kind, pattern in _titles().items()}
    # A `pro forma invoice` is none: what stands within the longer title of another type says nothing of its own.
    covered = [match.span() for kind in PRECISE for match in matches[kind]]
    for kind, matched in matches.items():
        best, last = 0.0, -1
        for match in matched:
            if kind == DocumentType.INVOICE and any(a <= match.start() and match.end() <= b for a, b in covered):
                continue
            index = bisect_right(starts, match.start()) - 1
            if index != last:  # Of a line, the first one counts.
                last = index
                best = max(best, _title_score(lines[index], match[0], match.start() - starts[index], usual))
        found[f"title_{kind}"] = best
    return found


def _title_score(placed: tuple[Page, Line, str], found: str, start: int, usual: float) -> float:
    page, line, text = placed
    if ordinal := _ORDINAL.match(text):  # `2. mahnung` is a title that stands alone.
        text, start = text[ordinal.end() :], max(0, start - ordinal.end())
    others = len(text.split()) - len(found.split())
    score = 1.0 if others <= 0 else 0.8 if others <= 2 else 0.5 if others <= _TITLE_WORDS else 0.2
    if page.number > 1 or line.box.top > _TITLE_PART:
        score *= 0.4
    if (start > 2 and text[start - 1] not in "/&+") or text.endswith(":"):
        score *= 0.6  # `your order 4711` and `order no. customer:` are references to another document.
    return score * min(1.5, max(1.0, line.box.height / usual))


_ORDINAL = re.compile(r"\d{1,2}(?:\.|st|nd|rd|th|er|e|ª|º|a|o)? +(?=[^\W\d_])")


@cache
def _titles() -> dict[str, re.Pattern[str]]:
    return {kind: _any_of(phrases) for kind, phrases in TITLES.items()}


@cache
def _groups() -> dict[str, re.Pattern[str]]:
    return {name: _any_of(phrases) for name, phrases in GROUPS.items()}


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    """One pattern for all; the longest first, so that `credit note` is not found as `note`."""
    whole = [phrase for phrase in phrases if not phrase.startswith("-")]
    ordered = sorted((bare(phrase) for phrase in whole), key=lambda phrase: (-len(phrase), phrase))
    # OCR drops spaces between words, so they may be missing.
    one_of = "|".join(re.escape(phrase).replace(r"\ ", " ?") for phrase in ordered)
    endings = "|".join(bare(phrase[1:]) for phrase in phrases if phrase.startswith("-"))
    if not endings:
        return by_letter(rf"(?<![^\W\d_])(?:{one_of})(?![^\W\d_])")
    return re.compile(rf"(?<![^\W\d_])(?:{one_of}|[^\W\d_]{{3,24}}(?:{endings}))(?![^\W\d_])")
