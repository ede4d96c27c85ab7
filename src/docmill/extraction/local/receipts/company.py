"""Who sells: a line or several at the head of the receipt, the legal name rather than the brand where both stand."""

import re
from collections.abc import Sequence
from itertools import pairwise

from docmill.extraction.local.candidates import Candidate, Knowledge
from docmill.extraction.local.layout import Layout, Span
from docmill.extraction.local.receipts.header import HeaderLine, aligned, around, describe, gap, header_lines
from docmill.extraction.local.wording import plain

_LONGEST = 4
"""Lines that a name may take."""
_STARTS = 13
"""Lines from the top among which a name may begin."""
_NEVER = ("gst", "web", "amount", "title")
_NOT_NAME = (*_NEVER, "phone", "registration", "street", "postcode", "code", "wordless", "date", "comma", "unit")
_NUMBER = re.compile(
    r"[\s,]*(?:\(\s*(?:co\.?|reg\.?|no\.?|company|roc)?[\s.:]*[\dA-Z]{0,3}\d{3,}[\d\s]*[-–\s.:]*[A-Z0-9]{0,3}\s*\)?"
    r"|(?:co\.?\s?|reg\.?\s?|no\.?\s?|gst\s?){1,3}[.:#]*\s?\d[\d-]{4,}.*|\b\d{5,9}\s?[-–]?\s?[A-Z]\b\)?)(?P<rest>.*)$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:#?\d{4,}\s+|(?:dimiliki(?:\s+oleh)?|own(?:ed)?\s+by|operated\s+by|managed\s+by|by)\s*[:.]?\s+|[*#\-=~:.'\"|]+\s*)",
    re.IGNORECASE,
)
_LEGAL = re.compile(r"\b(?:sdn|bhd|s/b|ltd|llc|gmbh|inc|plc)\b", re.IGNORECASE)
_HEADLESS = re.compile(r"[&(]|(?:co\.?\s*)?(?:\(\w{1,3}\)\s*)?(?:sdn|bhd|ltd|llc|gmbh)\b", re.IGNORECASE)
"""How no name begins: it began in the line before."""
_TAIL = re.compile(r"\s*\([\d\W]{0,4}$|[\s,:;*\-=~'\"|#]+$")
_CHINESE = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_SECOND = re.compile(rf"(?<=[A-Za-z).])\s*[{_CHINESE}][^A-Za-z]*$")
"""The same name once more, in Chinese signs: people write down the one that they can type."""
_ONLY_SIGNS = re.compile(rf"[^A-Za-z]*[{_CHINESE}][^A-Za-z]*")


def find_companies(layout: Layout, knowledge: Knowledge) -> Sequence[Candidate]:
    """Every line of the header and every few lines in a row; and lines further down that end like a legal name."""
    lines = layout.once(header_lines)
    found = []
    for first in range(min(len(lines), _STARTS)):
        for last in range(first, min(first + _LONGEST, len(lines))):
            if lines[last].has(*_NEVER):
                break
            candidate = _candidate(layout, lines, first, last, knowledge)
            if candidate is not None:
                found.append(candidate)
    for piece in layout.pieces[len(lines) :]:
        if _LEGAL.search(piece.text):
            around_it = [describe(other) for other in layout.pieces[piece.index - 1 : piece.index + 2]]
            if not around_it[1].has(*_NEVER) and (candidate := _candidate(layout, around_it, 1, 1, knowledge)):
                found.append(candidate)
    return found


def _candidate(
    layout: Layout, lines: Sequence[HeaderLine], first: int, last: int, knowledge: Knowledge
) -> Candidate | None:
    run = lines[first : last + 1]
    if len({bool(_ONLY_SIGNS.fullmatch(line.text)) for line in run}) > 1:
        return None
    spans = [trimmed(line.whole) for line in run]
    value = " ".join(plain(span.text).strip() for span in spans if span.text.strip())
    if sum(character.isalpha() for character in value) < 3 or _HEADLESS.match(value) or value.endswith("&"):
        return None
    before = lines[first - 1] if first else None
    after = lines[last + 1] if last + 1 < len(lines) else None
    if before is not None and before.text.rstrip().endswith("&"):
        return None  # The name begins before it.
    features = _features(layout, run, before, after, value)
    raw = " ".join(span.text for span in spans)
    return Candidate(value=" ".join(value.split()), raw=raw, spans=tuple(spans), features=features)


def trimmed(span: Span) -> Span:
    """A line without the number of registration behind the name, and without what leads up to it."""
    text = plain(span.text)
    if len(text) != len(span.text):  # An accent that came apart: places would be off.
        text = span.text
    start, end = 0, len(text)
    if lead := _LEAD.match(text):
        start = lead.end()
    if (number := _NUMBER.search(text, start)) and sum(map(str.isalpha, text[start : number.start()])) >= 3:
        end = number.start()
    for behind in (_SECOND, _TAIL):
        if tail := behind.search(text, start, end):
            end = tail.start()
    return Span(piece=span.piece, start=start, end=max(start, end))


def _features(
    layout: Layout,
    run: Sequence[HeaderLine],
    before: HeaderLine | None,
    after: HeaderLine | None,
    value: str,
) -> dict[str, float]:
    first, last = run[0], run[-1]
    letters = sum(character.isalpha() for character in value)
    features: dict[str, float] = {
        "lines": len(run) / 3,
        "two": float(len(run) == 2),
        "three": float(len(run) >= 3),
        "place": min(first.piece.index, 20) / 20,
        "top": float(first.piece.index == 0),
        "second": float(first.piece.index == 1),
        "third": float(first.piece.index == 2),
        "late": float(first.piece.index > 12),
        "size": min(2.5, max(line.piece.size for line in run)) / 2.5,
        "size_last": min(2.5, last.piece.size) / 2.5,
        "alike": float(max(line.piece.size for line in run) < 1.35 * min(line.piece.size for line in run)),
        "length": min(len(value), 60) / 60,
        "short": float(len(value) < 6),
        "letters": letters / max(1, len(value)),
        "score": sum(line.piece.score for line in run) / len(run),
        "gap_before": gap(before, first),
        "gap_after": gap(last, after),
        "gap_inside": max([gap(one, other) for one, other in pairwise(run)] or [0.0]),
        "begun_before": _begun(before, first),
        "goes_on": _begun(last, after),
        "beside": float(any(one.piece.row == other.piece.row for one, other in pairwise(run))),
        "aligned_after": aligned(last, after),
        "aligned_inside": float(all(aligned(one, other) for one, other in pairwise(run))),
        "ends_company": float(
            bool(re.search(r"(?:bhd|s/b|\bsb|ltd|llc|inc|gmbh|enterprise|trading)\.?$", value.lower()))
        ),
        "ends_open": float(bool(re.search(r"(?:&|,|\bsdn|\band|\bthe|\(\w*)$", value.lower()))),
        "unclosed": float(value.count("(") != value.count(")")),
    }
    for line in run:
        for sign in sorted(line.signs):
            features[f"in_{sign}"] = 1.0
    for sign in sorted(last.signs):
        features[f"last_{sign}"] = 1.0
    if len(run) > 1:
        for sign in sorted(first.signs):
            features[f"first_{sign}"] = 1.0
    around(features, "prev", before)
    around(features, "next", after)
    words = [word for line in run for word in line.words]
    for word in dict.fromkeys(words):
        features[f"in={word}"] = 1.0
    if words:
        features[f"start={words[0]}"] = 1.0
        features[f"end={words[-1]}"] = 1.0
    return features


def _begun(first: HeaderLine | None, second: HeaderLine | None) -> float:
    """1 when two lines look like one name: of words, of one size, close together, in the same place."""
    if first is None or second is None or first.has(*_NOT_NAME) or second.has(*_NOT_NAME):
        return 0.0
    alike = max(first.piece.size, second.piece.size) < 1.3 * min(first.piece.size, second.piece.size)
    return float(alike and gap(first, second) < 0.6 and bool(aligned(first, second)))
