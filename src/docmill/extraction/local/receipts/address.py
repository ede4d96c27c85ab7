"""Where the seller is: the lines of the header from the house number to the town or the state, as one text."""

import re
from collections.abc import Sequence
from itertools import pairwise

from docmill.extraction.local.candidates import Candidate, Knowledge
from docmill.extraction.local.layout import Layout, Span
from docmill.extraction.local.receipts.header import HeaderLine, aligned, around, gap, header_lines
from docmill.extraction.local.wording import plain
from docmill.extraction.values.dates import find_times

_LONGEST = 6
"""Lines that an address may take."""
_STARTS = 15
"""Lines from the top among which an address may begin."""
_LEAD = re.compile(
    r"^(?:[\W_]*(?:hq\s*)?(?:add?(?:ress)?|alamat)\s*[.:]+\s*|[*\-=~:.'\"|]+\s*|#+(?![A-Z]?\d)\s*)",
    re.IGNORECASE,
)
"""Not the number of a shop: `#01-23`."""
_TAIL = re.compile(
    r"[\s,;(*\-]*\b(?:te[l1]|fax|phone|h/?p|hotline|gst|sst|co\.?\s?reg|reg\.?\s?no|e-?mail|www|http)(?:[\s.:(]|\s?(?:no|id|reg)\b).*$",
    re.IGNORECASE,
)
_BAD = (
    "phone",
    "gst",
    "registration",
    "web",
    "title",
    "date",
    "amount",
    "bill_to",
    "hours",
    "company",
    "code",
    "wordless",
)
_GOOD = ("street", "quarter", "unit", "state", "postcode")


def find_addresses(layout: Layout, knowledge: Knowledge) -> Sequence[Candidate]:
    """Every run of lines of the header that has something of an address."""
    lines = layout.once(header_lines)
    found = []
    for first in range(min(len(lines), _STARTS)):
        for last in range(first, min(first + _LONGEST, len(lines))):
            run = lines[first : last + 1]
            if run[-1].has("title", "bill_to", "amount") or (run[-1].has("date") and find_times(run[-1].text)):
                break
            if last > first and run[-2].has("phone", "gst", "registration", "web"):
                break  # These stand behind an address, in the same line at most.
            if not any(line.has(*_GOOD) for line in run):
                continue
            spans = [trimmed(line.whole) for line in run]
            value = " ".join(" ".join(plain(span.text).strip() for span in spans if span.text.strip()).split())
            if len(value) < 8:
                continue
            before = lines[first - 1] if first else None
            after = lines[last + 1] if last + 1 < len(lines) else None
            features = _features(lines, run, before, after, value, spans)
            raw = " ".join(span.text for span in spans)
            found.append(Candidate(value=value, raw=raw, spans=tuple(spans), features=features))
    return found


def trimmed(span: Span) -> Span:
    """A line without a telephone number behind it and without `Address:` before it."""
    text = plain(span.text)
    if len(text) != len(span.text):
        text = span.text
    start, end = 0, len(text)
    if lead := _LEAD.match(text):
        start = lead.end()
    if (tail := _TAIL.search(text, start)) and tail.start() > start + 5:
        end = tail.start()
    return Span(piece=span.piece, start=start, end=end)


def _features(
    lines: Sequence[HeaderLine],
    run: Sequence[HeaderLine],
    before: HeaderLine | None,
    after: HeaderLine | None,
    value: str,
    spans: Sequence[Span],
) -> dict[str, float]:
    first, last = run[0], run[-1]
    number = len(run)
    good = [sum(line.has(name) for name in _GOOD) for line in run]
    gaps = [gap(one, other) for one, other in pairwise(run)]
    cut = spans[-1].end < len(spans[-1].piece.text)
    features: dict[str, float] = {
        "lines": number / 8,
        "one": float(number == 1),
        "two": float(number == 2),
        "place": min(first.piece.index, 20) / 20,
        "top": float(first.piece.index == 0),
        "late": float(first.piece.index > 12),
        "length": min(len(value), 150) / 150,
        "good": sum(min(count, 2) for count in good) / (2 * number),
        "good_all": sum(min(count, 2) for count in good) / 10,
        "poor": sum(count == 0 for count in good) / 4,
        "postcodes": min(2, len(re.findall(r"(?<![\d/-])\d{5}(?![\d/-])", value))) / 2,
        "gap_before": gap(before, first),
        "gap_after": gap(last, after),
        "gap_inside": max(gaps or [0.0]),
        "gap_more": gap(last, after) - (sum(gaps) / len(gaps) if gaps else 0.2),
        "aligned_after": aligned(last, after),
        "aligned_inside": sum(aligned(one, other) for one, other in pairwise(run)) / max(1, number - 1),
        "alike": float(max(line.piece.size for line in run) < 1.35 * min(line.piece.size for line in run)),
        "alike_before": _alike(before, first),
        "alike_after": _alike(last, after),
        "cut": float(cut),
        "commas": min(value.count(","), 8) / 8,
        "digit_first": float(value[:1].isdigit()),
        "ends_stop": float(value.endswith(".")),
        "ends_comma": float(value.endswith(",")),
    }
    for line in run:
        for sign in _BAD:
            if line.has(sign) and not (cut and line is last and sign in ("phone", "gst", "registration", "web")):
                features[f"in_{sign}"] = features.get(f"in_{sign}", 0.0) + 0.5
    for sign in _GOOD:
        features[f"any_{sign}"] = float(any(line.has(sign) for line in run))
    for sign in sorted(first.signs):
        features[f"first_{sign}"] = 1.0
    for sign in sorted(last.signs):
        features[f"last_{sign}"] = 1.0
    if len(run) > 1:
        features["earlier_stop"] = float(any(line.has("stop") for line in run[:-1]))
    start, end = first.piece.index, last.piece.index
    outside = [line for line in lines if not start <= line.piece.index <= end]
    features["missed"] = sum(line.has("street", "postcode") for line in outside) / 4
    around(features, "prev", before)
    around(features, "next", after)
    if first.words:
        features[f"start={first.words[0]}"] = 1.0
    if last.words:
        features[f"end={last.words[-1]}"] = 1.0
    for word in dict.fromkeys(first.words):
        features[f"first={word}"] = 0.5
    for word in dict.fromkeys(last.words):
        features[f"last={word}"] = 0.5
    return features


def _alike(one: HeaderLine | None, other: HeaderLine | None) -> float:
    if one is None or other is None:
        return 0.0
    return float(max(one.piece.size, other.piece.size) < 1.3 * min(one.piece.size, other.piece.size))
