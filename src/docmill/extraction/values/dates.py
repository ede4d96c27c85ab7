"""Dates as people write them, in many languages and orders, and as we keep them.

A numeric date may be read in two ways (`05/03/2018`); `find_dates` gives both, the likelier first, and the order of the
other dates of the document decides, see `guess_order`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from docmill.extraction.values.months import MONTHS
from docmill.extraction.values.texts import bare

FIRST_YEAR, LAST_YEAR = 1970, 2099
_PIVOT = 70
"""Years of two digits from here on belong to the last century."""

_YEAR = r"(?:(?:19|20)\d{2}|'?(?!(?:19|20)(?=\d?[^\W\d_])[^\W_]{1,2}(?![^\W_]))\d{2})"
"""Of two digits only if it cannot be the beginning of one of four that was misread: `20l7`."""
_END = r"(?:(?!\d)|(?=\d{1,2}:\d{2}))"
"""Nothing more of a number, or a time glued to the date."""
_START = r"(?<![\d.,/])(?<!\d-)"
_PATTERN = re.compile(
    rf"""{_START}(?:
      (?P<y1>(?:19|20)\d{{2}})\s?(?P<s1>[-/.年년])\s?(?P<m1>\d{{1,2}})\s?[-/.月월]\s?(?P<d1>\d{{1,2}})(?!\d)[日일]?
    | (?P<a>\d{{1,2}})\s?(?P<s>[-/.])\s?(?P<b>\d{{1,2}})\s?(?P=s)\s?(?P<y2>{_YEAR}){_END}
    | (?P<a3>\d{{1,2}})\s(?P<b3>\d{{1,2}})\s(?P<y5>(?:19|20)\d{{2}})(?!\d)
    | (?P<d3>\d{{1,2}})(?:\s?(?:st|nd|rd|th|er|e|o|a)\b|[ºª°])?[\s.,/-]{{0,3}}(?:(?:of|de|d'|di|den)\s)?
      (?P<n3>[^\W\d_]{{3,12}})[\s.,'/-]{{0,3}}(?:(?:of|de|del|do)\s)?(?P<y3>{_YEAR}){_END}
    | (?P<y4>(?:19|20)\d{{2}})[\s.,/-]{{1,2}}(?:m\.\s)?(?P<n4>[^\W\d_]{{3,12}})[\s.,/-]{{1,2}}(?P<d4>\d{{1,2}})(?!\d)
    | (?P<y6>(?:19|20)\d{{2}})(?P<m6>0[1-9]|1[0-2])(?P<d6>0[1-9]|[12]\d|3[01])(?!\d)
    )|(?<![^\W_])(?P<n7>[^\W\d_]{{3,12}})\.?[\s-]{{0,2}}(?P<d7>\d{{1,2}})(?:st|nd|rd|th)?[\s.,'/-]{{1,3}}(?P<y7>{_YEAR})
      {_END}""",
    re.VERBOSE,
)
_MONTH_BEFORE = re.compile(r"([^\W\d_]{3,12})\.?\s$")
_HAS_DATE = re.compile(r"\d.*\d")
_TIME = re.compile(
    r"(?<![\d.,:])([01]?\d|2[0-4])\s?[:h]\s?([0-5]\d)(?:\s?:\s?([0-5]\d))?\s?([ap]\.?m\b\.?)?(?![\d:])", re.IGNORECASE
)
_GLUED = re.compile(r"(?<=\d)((?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?)(?!\d)")


class DateOrder(StrEnum):
    """Which of the three numbers stands first."""

    DMY = "DMY"
    MDY = "MDY"
    YMD = "YMD"


@dataclass(frozen=True, slots=True)
class DateFound:
    """A date in a text."""

    start: int
    end: int
    candidates: tuple[date, ...]
    """What it may mean, likeliest first; one when there is no doubt."""
    orders: tuple[DateOrder, ...]
    """The order of each candidate."""

    @property
    def value(self) -> date:
        return self.candidates[0]

    @property
    def ambiguous(self) -> bool:
        return len(self.candidates) > 1

    def among(self, order: DateOrder | None) -> date:
        """The candidate of this order, or the likeliest."""
        return self.candidates[self.orders.index(order)] if order in self.orders else self.candidates[0]


def find_dates(text: str, *, order: DateOrder | None = None) -> list[DateFound]:
    """Every date in a text, in order of place; a known `order` puts its candidate first."""
    return [_ordered(one, order) for one in _written(text)]


class _Written(NamedTuple):
    """A date as it is written, with what it may mean, before anybody has said which order is likelier."""

    start: int
    end: int
    options: tuple[tuple[DateOrder, date], ...]
    named: bool
    """Whether the month has its name."""


@lru_cache(maxsize=1024)
def _written(text: str) -> tuple[_Written, ...]:
    """Kept, because several readers ask for the dates of one line, to guess the order of all and to know each."""
    if not _HAS_DATE.search(text):
        return ()
    found, place, folded = [], 0, bare(text)
    while match := _PATTERN.search(folded, place):
        one = _judge(match)
        if one is None:
            place = _behind_first_number(folded, match)
        else:
            found.append(one)
            place = one.end
    return tuple(found)


def _ordered(one: _Written, order: DateOrder | None) -> DateFound:
    kept = sorted(one.options, key=lambda option: option[0] is not order)
    unique = dict.fromkeys(made for _, made in kept)
    orders = tuple(next(which for which, made in kept if made == day) for day in unique)
    # A named month says nothing about the order of numbers elsewhere.
    return DateFound(one.start, one.end, tuple(unique), () if one.named else orders)


def parse_date(text: str, *, order: DateOrder | None = None) -> date | None:
    """The date that a text is, perhaps with a weekday before and a time behind it; None if it is none or several."""
    found = find_dates(text, order=order)
    return found[0].value if len(found) == 1 else None


def is_day(text: str) -> bool:
    """Whether an ISO date is a day of the calendar."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def guess_order(texts: Iterable[str]) -> DateOrder | None:
    """The order that the dates of these texts show beyond doubt; None if they do not or disagree."""
    return order_shown(found for text in texts for found in find_dates(text))


def order_shown(dates: Iterable[DateFound]) -> DateOrder | None:
    """As `guess_order`, of dates that were found already."""
    votes = dict.fromkeys(DateOrder, 0)
    for found in dates:
        if not found.ambiguous and found.orders:
            votes[found.orders[0]] += 1
    # ISO dates stand beside dates of either order, so they say nothing about those.
    sure = [order for order in (DateOrder.DMY, DateOrder.MDY) if votes[order]]
    return sure[0] if len(sure) == 1 else None


def find_times(text: str) -> list[tuple[int, int, str]]:
    """Every time of day as (start, end, `HH:MM:SS`)."""
    found = []
    for match in _TIME.finditer(text):
        hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
        if match[4]:
            hour = hour % 12 + (12 if match[4][0] in "pP" else 0)
        if hour < 24:
            found.append((*match.span(), f"{hour:02}:{minute:02}:{second:02}"))
    if not found and (glued := _GLUED.search(text)):
        found.append((*glued.span(1), (glued[1] + ":00")[:8]))
    return found


def _behind_first_number(text: str, match: "re.Match[str]") -> int:
    """Where to search on after what only looked like a date: behind its first word or number."""
    start = match.start()
    edge = re.compile(r"\d+|[^\W\d_]+").match(text, start)
    return edge.end() if edge else start + 1


def _judge(match: "re.Match[str]") -> _Written | None:
    options: list[tuple[DateOrder, date | None]]
    if match["a"]:
        options = _numeric(match["a"], match["b"], match["y2"], match["s"])
    elif match["a3"]:
        options = _numeric(match["a3"], match["b3"], match["y5"], " ")
    elif match["y1"]:
        options = [(DateOrder.YMD, _made(match["y1"], int(match["m1"]), match["d1"]))]
    elif match["y6"]:
        options = [(DateOrder.YMD, _made(match["y6"], int(match["m6"]), match["d6"]))]
    elif match["n3"]:
        if len(match["y3"]) == 2 and _in_span(match):
            return None
        options = [(DateOrder.DMY, _made(match["y3"], MONTHS.get(match["n3"]), match["d3"]))]
    elif match["n4"]:
        options = [(DateOrder.YMD, _made(match["y4"], MONTHS.get(match["n4"]), match["d4"]))]
    else:
        options = [(DateOrder.MDY, _made(match["y7"], MONTHS.get(match["n7"]), match["d7"]))]
    named = bool(match["n3"] or match["n4"] or match["n7"])
    kept = tuple((which, made) for which, made in options if made)
    return _Written(match.start(), match.end(), kept, named) if kept else None


def _in_span(match: "re.Match[str]") -> bool:
    """Whether it only looks like a day, a month and a year: `1 - Oct 31` in `Oct 1 - Oct 31`."""
    before = _MONTH_BEFORE.search(match.string, max(0, match.start() - 16), match.start())
    return before is not None and before[1] in MONTHS


def _numeric(first: str, second: str, year: str, sign: str) -> list[tuple[DateOrder, date | None]]:
    options = [(DateOrder.DMY, _made(year, int(second), first))]
    if sign != ".":
        options.append((DateOrder.MDY, _made(year, int(first), second)))
    if len(year) == 2 and len(first) == 2 and (sign == "-" or not any(made for _, made in options)):
        options.append((DateOrder.YMD, _made(first, int(second), year)))
    return options


def _made(year: str, month: int | None, day: str) -> date | None:
    number = int(year.lstrip("'"))
    if len(year.lstrip("'")) == 2:
        number += 2000 if number < _PIVOT else 1900
    if not (FIRST_YEAR <= number <= LAST_YEAR and month and 1 <= month <= 12 and 1 <= int(day) <= 31):
        return None
    try:
        return date(number, month, int(day))
    except ValueError:
        return None
