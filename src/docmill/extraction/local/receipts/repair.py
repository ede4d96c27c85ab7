"""The text of a name or an address, put right: what the OCR lost or misread, and how people write it down.

Only names and addresses are repaired; amounts, dates and numbers are never touched. What was read stays in `raw`.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from rapidfuzz.distance import Levenshtein

from docmill.extraction.local.candidates import Candidate, Knowledge
from docmill.extraction.local.receipts.vocabulary import with_vocabulary
from docmill.extraction.local.spelling import Speller, learn_pairs, learn_words
from docmill.extraction.local.wording import plain

_QUOTES = re.compile(r"(?<![A-Za-z])['`\"]+|['`\"]+(?=\d)")
_BEFORE_BRACKET = re.compile(r"(?<=[\w.])\((?=\w)")
_AFTER_BRACKET = re.compile(r"\)(?=\w)")
_INITIALS = re.compile(r"((?:\b[A-Z]\.){2,})(?=[A-Z]{4,})")
_TITLES = re.compile(r"\b(mr|sdn)\.(?=[A-Z])", re.IGNORECASE)
_SDN_BHD = re.compile(r"(?<![A-Z(])S[A-Z]{1,2}\.?\s?BH[A-Z]?D\b", re.IGNORECASE)
_SDN = re.compile(r"(?<=[A-Za-z])(?=S[Dd][Nn]\b)")
_UNCLOSED = re.compile(r"\(([A-Za-z]{1,12}?)[I1lJ]\s*(?=SDN\b)(?!.*\))", re.IGNORECASE)
_S_B = re.compile(r"\b5/B\b")
_LAST_STOP = re.compile(r"(?<=\bd\.e)$", re.IGNORECASE)
_STOP_AT_BREAK = re.compile(r"(?<=[^\W_]{4})\s?\.\s*\n|(?<=\d)\s?\.\s*\n")
_STOP_AFTER_NUMBER = re.compile(r"(?<=\d)\. (?=[A-Za-z]|\d{5})|(?<=[^\W\d_]{4})\. (?=[A-Z])")
_LOT = re.compile(r"^[EIL1]\.?[O0U][TI17]\s+(?=[A-Z.]{0,5}\s?\d)", re.IGNORECASE)
_POSTCODE = re.compile(r"(?<!\d)(\d{4})[DOQ](?= [A-Z])", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]+")
_TIGHT_COMMA = re.compile(r"(?<=\d\d),(?=[A-Za-z]{2})")


def learn_spelling(texts: Iterable[tuple[str, str]], readings: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """From the labels of names and addresses, and from all that was read, each with its group."""
    known = list(texts)
    words = with_vocabulary(learn_words(known, 2))
    return {
        "words": words,
        "pairs": learn_pairs(known),
        "right": sorted(word for word in learn_words(readings, 2) if word not in words and len(word) > 2),
    }


def speller(knowledge: Knowledge) -> Speller:
    """The speller of a model; made once per model."""
    spelling = knowledge.get("spelling") or {"words": {}, "pairs": {}, "right": []}
    return _speller(id(spelling), _Held(spelling))


class _Held:
    """Keeps what is inside alive and compares equal to everything, so that a cache may go by identity alone."""

    def __init__(self, inside: Any) -> None:
        self.inside = inside

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=8)
def _speller(identity: int, held: _Held) -> Speller:
    return Speller(held.inside["words"], held.inside["pairs"], held.inside["right"])


def repaired_company(candidate: Candidate, knowledge: Knowledge) -> str:
    """The name of the seller as it was probably printed."""
    text = _tidied(" ".join(_lines(candidate)))
    text = _SDN_BHD.sub(lambda match: match[0] if match[0][:3].upper() == "SDN" else "SDN BHD", text)
    text = _UNCLOSED.sub(r"(\1) ", _SDN.sub(" ", text))
    text = _S_B.sub("S/B", text)
    return _spaced(speller(knowledge).mend(text, names=True, whole=_whole(candidate)))


def repaired_address(candidate: Candidate, knowledge: Knowledge, *, ocr: bool) -> str:
    """The address as one line: a stop that ended a line or followed a number was a comma, if an OCR read it."""
    whole = _whole(candidate)
    mended = [speller(knowledge).mend(_tidied(line), whole=whole) for line in _lines(candidate)]
    text = "\n".join(mended)
    if ocr:
        text = _STOP_AT_BREAK.sub(", ", text)
        text = _STOP_AFTER_NUMBER.sub(", ", text)
        text = _POSTCODE.sub(r"\g<1>0", _LOT.sub("LOT ", text))
    return _spaced(_LAST_STOP.sub(".", _TIGHT_COMMA.sub(", ", text)))


def change(before: str, after: str) -> float:
    """How much of a text was changed, 0 to 1."""
    return float(Levenshtein.normalized_distance(before.casefold(), after.casefold()))


def _lines(candidate: Candidate) -> Sequence[str]:
    return [text for span in candidate.spans if (text := plain(span.text).strip())]


def _whole(candidate: Candidate) -> frozenset[str]:
    """Its words in which the OCR saw no place for a space."""
    words = (word for span in candidate.spans for word in span.piece.words if word.whole)
    return frozenset(part for word in words for part in _LETTERS.findall(plain(word.text)))


def _tidied(text: str) -> str:
    text = _QUOTES.sub(" ", text)
    text = _AFTER_BRACKET.sub(") ", _BEFORE_BRACKET.sub(" (", text))
    return _TITLES.sub(r"\1. ", _INITIALS.sub(r"\1 ", text))


def _spaced(text: str) -> str:
    return " ".join(text.split())
