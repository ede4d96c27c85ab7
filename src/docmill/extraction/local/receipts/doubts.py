"""What speaks for and against a value that was chosen: signals for its confidence. Nothing here chooses.

How legible the page is counts beside what the ranker thinks: it says little about which value is meant, but on a page
that was hard to read every field is wrong more often, and a comma or a space is lost before a letter is.
"""

import math
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from docmill.documents.reading import Word
from docmill.extraction.local.candidates import Candidate, Knowledge, letters
from docmill.extraction.local.layout import Layout
from docmill.extraction.local.ranker import Choice
from docmill.extraction.local.receipts.amounts import Amounts
from docmill.extraction.local.receipts.repair import speller
from docmill.extraction.local.spelling import Speller
from docmill.extraction.local.wording import plain

_SHARPEST = 0.003
"""Between scores of 0.99 and 0.999 lies as much as between 0.9 and 0.99, but not beyond this."""
_LETTERS = re.compile(r"[^\W\d_]+")
_RUN_ON = re.compile(r"[A-Za-z]{3},?\d|\d[A-Za-z]{3}|[a-z.,;)][A-Z]|[,;][^\s\d]|[A-Za-z]{15}")
"""Where a space is missing, in most cases."""
_NUMBERED = re.compile(r"(?:lot\s)?no[.:]", re.IGNORECASE)
"""The beginning of an address."""


def doubts(name: str, choice: Choice, layout: Layout, value: str, knowledge: Knowledge) -> Mapping[str, float]:
    """By name; what does not apply to a field is left out."""
    candidate = choice.candidate
    if candidate is None:
        return {}
    found = _legible("page_legible", (word for piece in layout.pieces for word in piece.words))
    clear = _legible("legible", (word for span in candidate.spans for word in span.piece.words))
    match name:
        case "company":
            return found | clear | _apart(choice, candidate) | _of_company(candidate)
        case "address":
            return found | clear | _apart(choice, candidate) | _of_address(candidate, value, speller(knowledge))
        case "total":
            return found | clear | _of_total(candidate, layout)
        case _:
            return found | clear


def _legible(name: str, words: Iterable[Word]) -> dict[str, float]:
    """How sure the OCR was of these words; nothing if no OCR read them."""
    scores = [word.score for word in words if word.score is not None]
    return {name: -math.log(max(0.0, 1 - sum(scores) / len(scores)) + _SHARPEST)} if scores else {}


def _apart(choice: Choice, candidate: Candidate) -> dict[str, float]:
    """How probable it is that it begins or ends elsewhere (`boundary`), and that it is something else (`elsewhere`)."""
    own = letters(candidate.value)
    others = [(letters(other), chance) for other, chance in choice.alternatives if other]
    near = sum(chance for other, chance in others if other in own or own in other)
    return {"boundary": near, "elsewhere": sum(chance for _, chance in others) - near}


def _of_company(candidate: Candidate) -> dict[str, float]:
    features = candidate.features
    return {
        "before": float(min(5, candidate.spans[0].piece.index)),
        "open": features.get("ends_open", 0.0) + features.get("unclosed", 0.0),
        "goes_on": features.get("goes_on", 0.0) + features.get("begun_before", 0.0),
    }


def _of_address(candidate: Candidate, value: str, known: Speller) -> dict[str, float]:
    scored = any(word.score is not None for span in candidate.spans for word in span.piece.words)
    ends = [plain(span.text).rstrip()[-1:] for span in candidate.spans[:-1]]
    return {
        "open_joins": float(sum(end not in (",", ".") for end in ends)),
        # Not the last one, which says nothing: people write it down as often as not.
        "stops": float(min(5, value.rstrip(".").count("."))),
        "run_on": float(min(4, len(_RUN_ON.findall(plain(candidate.raw))))),
        "torn_words": float(min(3, _torn(value, known))),
        # `NO.8` and `NO. 8` are told apart by a gap that an OCR sees or does not.
        "numbered": float(scored and _NUMBERED.match(value) is not None),
    }


def _torn(value: str, known: Speller) -> int:
    """Neighbours that would be a known word if no space stood between them."""
    return sum(
        known.words.get((one + other).upper(), 0) > 1 and not (known.known(one) and known.known(other))
        for one, other in pairwise(_LETTERS.findall(value))
    )


def _of_total(candidate: Candidate, layout: Layout) -> dict[str, float]:
    features = candidate.features
    return {
        "settled": features.get("settled", 0.0),
        "unsettled": features.get("unsettled", 0.0),
        "cents": features.get("cents", 0.0),
        "rank": features.get("rank", 0.0),
        "amounts": math.log1p(len(layout.once(Amounts).found)),
    }
