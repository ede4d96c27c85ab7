"""Whether a text holds one of many phrases: the question that vocabularies are asked most, for nearly every line.

Phrases are written as regular expressions, alternatives of one pattern. `re` tries one after another at each place of a
text, unless all of them begin with a letter: then it skips the places where none of these letters stands. So they are
sorted by their first letters here: groups in front are taken apart, and what must stand before a letter (`\\b`, or
nothing of a kind) is asked behind it. What is found is the same.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

_FIRST = re.compile(
    r"(?P<before>(?:\\b|\(\?<[!=](?:[^()\\]|\\.)*\))*)(?P<letter>[^\W_]|[^\w\s\\.^$*+?{}\[\]|()]|\\[^\w\s])(?![?*+{])"
)
"""A letter, or a sign that means itself, that a phrase cannot do without; and what must stand before it."""
_ASSERTED = re.compile(r"(?:\\b|\(\?<[!=](?:[^()\\]|\\.)*\))+")
_BEFORE = re.compile(r"\\b|(?P<kind>\(\?<[!=])(?P<what>(?:[^()\\]|\\.)*)\)")
_SIGN = re.compile(r"\\.|\[(?:[^\]\\]|\\.)*\]|[(|)]")
"""A sign that parts a pattern; or what is passed over whole, since such signs mean themselves there: an escape, or a
class. A `]` that is the first of its class would be one of its members; no vocabulary writes that."""
_LONG = 60
"""Letters of a pattern behind a group that are much to be written for each letter that the group begins with."""
_CASES = str.maketrans("İıſ", "iis")
"""Letters that have a plain one as their other case for `re.IGNORECASE`, but not for `str.lower`."""


class Phrases:
    """Phrases to look for; with `any_case`, which takes patterns in small letters, whatever their case.

    Of a phrase with much behind the group that it begins with, only that group is looked for at first: cheaper to make,
    and enough to pass over most texts that hold none. With `heads` that is all: what begins like a phrase is found too.
    """

    def __init__(self, pattern: str, *, any_case: bool = False, heads: bool = False) -> None:
        found = _by_letter(pattern, heads=True)
        self.pattern = pattern
        self._any_case = any_case
        self._doubted = bool(found.cut) and not heads
        self._opening = re.compile("|".join(found.opening)) if found.opening else None
        self._searched = tuple(re.compile(some) for some in (found.inside, "|".join(found.others)) if some)

    def within(self, text: str) -> bool:
        """Whether the text holds any of them."""
        if self._any_case:
            text = (text if text.isascii() else text.translate(_CASES)).lower()
        if self._opening is not None and self._opening.match(text):
            return self._surely(text)
        # Mostly one, so no generator is made for it.
        for searched in self._searched:
            if searched.search(text):
                return self._surely(text)
        return False

    def _surely(self, text: str) -> bool:
        """Whether a text that holds the beginning of one holds a whole one."""
        return not self._doubted or self._written.search(text) is not None

    def letters(self, text: str) -> int:
        """How many letters of the text they fill."""
        return sum([len(found[0]) for found in self._written.finditer(text)]) if self.within(text) else 0

    @cached_property
    def _written(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.IGNORECASE if self._any_case else 0)


def by_letter(pattern: str) -> re.Pattern[str]:
    """A pattern whose alternatives all begin with a letter, sorted by it: it finds the same at the same places."""
    found = _by_letter(pattern, heads=False)
    if found.opening or found.others:
        raise ValueError(f"not all alternatives begin with a letter: {[*found.opening, *found.others]}")
    return re.compile(found.inside)


@dataclass(frozen=True, slots=True)
class _Sorted:
    """The phrases of a pattern: by the letter they begin with, what follows it; those that begin the text; others; and
    what was cut off behind the beginnings of some."""

    rests: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    opening: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    @property
    def inside(self) -> str:
        """One pattern for all that begin with a letter."""
        return "|".join(f"{letter}{_either(some)}" for letter, some in self.rests.items())

    def add(self, phrase: str) -> None:
        first = _FIRST.match(phrase)
        if phrase.startswith("^"):
            self.opening.append(phrase)
        elif first and _may_follow(first["before"], first["letter"]):
            letter = first["letter"]
            self.rests[letter].append(_behind(first["before"], letter) + phrase[first.end() :])
        else:
            self.others.append(phrase)

    def add_all(self, before: str, phrases: "_Sorted", rest: str) -> None:
        """Each of the phrases with the same before and behind it; what is behind is written once for each letter."""
        for letter, some in phrases.rests.items():
            if _may_follow(before, letter):
                self.rests[letter].append(_behind(before, letter) + _either(some) + rest)
            else:
                self.others.append(before + letter + _either(some) + rest)
        for one in (*phrases.opening, *phrases.others):
            self.add(before + one + rest)


def _by_letter(pattern: str, *, heads: bool) -> _Sorted:
    """The phrases of a pattern, with `heads` without what is long behind a group that they begin with."""
    found = _Sorted()
    for phrase in _alternatives(pattern):
        _sort(phrase, found, heads)
    return found


def _sort(phrase: str, found: _Sorted, heads: bool) -> None:
    """A phrase with each alternative of a group that it begins with, and without that group if it may be left out."""
    first = _ASSERTED.match(phrase)
    before = first[0] if first else ""
    body = phrase.removeprefix(before)
    end = _group_end(body) if body.startswith("(?:") else 0
    inside, rest = body[3 : max(3, end - 1)], body[end:]
    if not end or rest[:1] in ("*", "+", "{") or rest[:2] in ("??", "?+"):
        found.add(phrase)
        return
    may_lack = rest[:1] == "?"
    rest = rest[may_lack:]
    begun, long = _by_letter(inside, heads=heads), heads and len(rest) > _LONG
    found.cut.extend([*begun.cut, rest] if long else begun.cut)
    found.add_all(before, begun, "" if long else rest)
    if may_lack:
        _sort(before + rest, found, heads)


def _either(phrases: Sequence[str]) -> str:
    return f"(?:{'|'.join(phrases)})" if len(phrases) > 1 else phrases[0]


def _may_follow(before: str, letter: str) -> bool:
    """Whether what must stand before a letter can be asked behind it: where a word begins, only before letters."""
    return letter.isalnum() or r"\b" not in before


def _behind(before: str, letter: str) -> str:
    """What must stand before a letter, as it is asked behind it."""
    found = []
    for one in _BEFORE.finditer(before):
        kind, what = (one["kind"], one["what"]) if one["kind"] else ("(?<!", r"\w")
        found.append(f"{kind}{what}{letter})")
    return "".join(found)


def _alternatives(pattern: str) -> list[str]:
    """A pattern, cut where its alternatives meet; those inside of groups stay together."""
    found, start, depth = [], 0, 0
    for sign, at in _signs(pattern):
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            found.append(pattern[start:at])
            start = at + 1
    return [*found, pattern[start:]]


def _group_end(pattern: str) -> int:
    """The place behind the group that a pattern begins with."""
    depth = 0
    for sign, at in _signs(pattern):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return at + 1
    raise ValueError(f"a group has no end: {pattern}")


def _signs(pattern: str) -> Iterator[tuple[str, int]]:
    """The signs of a pattern that part it, with their places: not those that are escaped or stand in a class."""
    return ((found[0], found.start()) for found in _SIGN.finditer(pattern) if len(found[0]) == 1)
