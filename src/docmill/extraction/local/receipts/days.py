"""The date of a receipt: every date on it, with its label and its neighbours."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date

from docmill.extraction.confidence import DOUBTED_BY_READER
from docmill.extraction.local.candidates import Candidate, Knowledge
from docmill.extraction.local.layout import Layout, Span
from docmill.extraction.local.receipts.country import Country, country_of
from docmill.extraction.local.wording import tokens
from docmill.extraction.values.dates import DateOrder, find_dates, find_times, guess_order, parse_date

_TORN = (
    (re.compile(r"(20\d\d)[-/.](0\d|1[0-2])[-/.]([0-2]\d|3[01])(?=\d{1,2}:)"), "ymd"),
    (re.compile(r"([0-2]\d|3[01])[-/.](0\d|1[0-2])[-/.](20[0-3]\d)"), "dmy"),
    (re.compile(r"(?<!\d)([0-2]\d|3[01])(0\d|1[0-2])/(20[0-3]\d)(?!\d)"), "dmy"),
    (re.compile(r"(?<!\d)([0-2]\d|3[01])[-/. ](0\d|1[0-2])[-/. ]([0-3]\d)(?!\d)"), "dmy"),
    (re.compile(r"(?<![\w/.-])([0-2]\d|3[01])(0\d|1[0-2])(20[0-3]\d)(?![\w/.-])"), "dmy"),
)
"""Tried one after the other where nothing else finds a date."""
_HOUSE = re.compile(
    r"\W*(?:(?:no|lot|unit|suite|blo[ck]k?)\b[\s.:]*)?\d{1,3}-\d{1,2}-\d{1,2}\s?,\s?"
    r"(?!(?:mon|tue|wed|thu|fri|sat|sun)\w*\b|[ap]m\b)[^\W\d]",
    re.IGNORECASE,
)
"""The number of a house at the beginning of an address: `1-1-09, Queensbay Mall`."""


def find_days(layout: Layout, knowledge: Knowledge) -> Sequence[Candidate]:
    """Every date as a candidate."""
    places = []
    country = layout.once(country_of)
    order = order_of(layout)
    for piece in layout.pieces:
        if _HOUSE.match(piece.text):
            continue
        sure = [(day.start, day.end, day.candidates) for day in find_dates(piece.text, order=order)]
        for start, end, values in sure or _torn(piece.text):
            places.append((Span(piece=piece, start=start, end=end), values, not sure))
    counts = Counter(values[0] for _, values, _ in places)
    years = Counter(values[0].year for _, values, _ in places)
    found = []
    for number, (span, values, torn) in enumerate(places):
        for which, value in enumerate(values):
            before, after = layout.before(span), layout.after(span)
            features: dict[str, float] = {
                "depth": layout.depth(span.piece),
                "first": float(number == 0),
                "only": float(len(places) == 1),
                "repeats": min(counts[value], 4) / 4,
                "choice": float(which > 0),
                "torn": float(torn),
                "bounded": float(_bounded(span)),
                "time": float(bool(find_times(after))),
                "time_before": float(bool(find_times(before))),
                "time_below": float(bool(find_times(layout.row_text(span.piece.row + 1)))),
                "usual_year": years[value.year] / max(1, len(places)),
                "plausible": float(2000 <= value.year <= 2035),
                "numbers_only": float(not tokens(before) and not tokens(after)),
            }
            words = dict.fromkeys(tokens(before))
            features["dated"] = float(any("date" in word or word in ("tarikh", "dt") for word in words))
            for word in words:
                features[f"left={word}"] = 1.0
            for word in dict.fromkeys(tokens(after)):
                features[f"after={word}"] = 0.5
            for word in dict.fromkeys(tokens(layout.row_text(span.piece.row - 1))):
                features[f"prev={word}"] = 0.5
            signals = {DOUBTED_BY_READER: 1.0} if len(values) > 1 and country is Country.UNKNOWN else {}
            found.append(
                Candidate(value=value.isoformat(), raw=span.text, spans=(span,), features=features, signals=signals)
            )
    return found


def order_of(layout: Layout) -> DateOrder:
    """As the days that leave no doubt show it; else the month first in America only."""
    shown = guess_order(piece.text for piece in layout.pieces)
    return shown or (DateOrder.MDY if layout.once(country_of) is Country.AMERICA else DateOrder.DMY)


def label_day(label: str) -> str | None:
    """What the label of a date means: the day first, where both are possible."""
    day = parse_date(label, order=DateOrder.DMY)
    return day.isoformat() if day else None


def _torn(text: str) -> list[tuple[int, int, tuple[date, ...]]]:
    """Dates that run into what stands beside them, or lost one of their signs."""
    found: list[tuple[int, int, tuple[date, ...]]] = []
    for pattern, order in _TORN:
        for match in pattern.finditer(text):
            parts = dict(zip(order, match.groups(), strict=True))
            year = int(parts["y"]) + (2000 if len(parts["y"]) == 2 else 0)
            try:
                value = date(year, int(parts["m"]), int(parts["d"]))
            except ValueError:
                continue
            found.append((match.start(), match.end(), (value,)))
        if found:
            return found
    return found


def _bounded(span: Span) -> bool:
    """Whether nothing but space or a time touches it."""
    text = span.piece.text
    before, after = text[: span.start][-1:], text[span.end :][:1]
    return not before.isalnum() and before not in ("/", "-") and not after.isalnum() and after not in ("/", "-")
