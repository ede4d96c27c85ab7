"""Names and addresses as they were meant: words that the OCR misread or ran together, put right with a list of words.

The list is learned from labelled documents (words, never whole names), so it knows what is common among sellers and
nothing of a particular one. A word that is known is never touched, nor is anything with more digits than letters.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from functools import cached_property, lru_cache

_CHUNK = re.compile(r"\S+")
_WORD = re.compile(r"[^\W\d_]+")
_TORN = re.compile(r"(?<![^\W_])([^\W\d_]+) ([^\W\d_]+)(?![^\W_])")
_EDGE = re.compile(r"^([^\w]*)(.*?)([^\w]*)$", re.DOTALL)
_INITIALS = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]?")
_LETTERS = {"1": "I", "0": "O", "5": "S", "8": "B", "|": "I", "!": "I"}
_ALIKE = (
    "0O 0D 0Q OQ OD OC OG OU 1I 1L 1T IL IT IJ LJ 5S 8B 6G 2Z 4A UV UN VY MN NH MH HN WV CG CO EF EB PF PR RK FT "
    "XK TY DO KB RB :L _L .L ;L 'L !I |I |L /I RF GC GO SB S8 JU JT NR"
)
_CHEAP = {frozenset(pair) for pair in _ALIKE.split() if len(set(pair)) == 2}
_COMMON = 4
"""Groups that must use a word before another is taken for it."""
_VERY_COMMON = 12
_SURE_LETTERS = 12
"""Letters of known words that make a run of letters several words."""
_MIXED = 1.1
"""How far from a word something with digits or signs in it may be."""
_PURE = 0.45
"""How far from a word something of letters only may be: one letter that looks like another."""
_LONG = 8
"""Letters from which a word is so long that a miss is seldom another word."""
_NOISE = ".:_'`;,-·°*~^!|"
_PAIRS = {"II": "H", "RN": "M", "NN": "M", "LI": "U", "CI": "G", "VV": "W", "IJ": "U", "1I": "H"}


class Speller:
    """Puts words right with a list of known words and how common they are."""

    def __init__(
        self, words: Mapping[str, int], pairs: Mapping[str, int] | None = None, right: Iterable[str] = ()
    ) -> None:
        self.words = {word.upper(): count for word, count in words.items()}
        self.right = frozenset(word.upper() for word in right)
        """Further words that are right as they are, but that nothing else is taken for."""
        self.total = sum(self.words.values()) or 1
        self.after: dict[str, list[str]] = {}
        """What often follows a word: `KUALA` is followed by `LUMPUR`."""
        for pair in pairs or {}:
            first, second = pair.split(" ")
            self.after.setdefault(first, []).append(second)

    @cached_property
    def _by_length(self) -> dict[int, list[str]]:
        grouped: dict[int, list[str]] = {}
        for word in sorted(self.words, key=lambda word: (-self.words[word], word)):
            grouped.setdefault(len(word), []).append(word)
        return grouped

    def mend(self, text: str, *, names: bool = False, whole: Set[str] = frozenset()) -> str:
        """A text with its words put right and the spaces that were lost between them.

        `names`: it may be a name, whose words are joined on purpose more often than in an address.
        `whole`: words in which no space was lost.
        """

        def mended(match: "re.Match[str]") -> str:
            return self._chunk(match[0], names, not whole.isdisjoint(_WORD.findall(match[0])))

        joined = text if names else _TORN.sub(self._joined, text)
        return self._by_neighbour(_CHUNK.sub(mended, joined))

    def _joined(self, match: "re.Match[str]") -> str:
        """Two pieces of letters that only together are a word: `JAL AN`, `Wism a`."""
        first, second = match[1], match[2]
        whole = (first + second).upper()
        # Not `known`: pieces of a word that is often torn are themselves often read.
        if self.words.get(whole, 0) < _COMMON or (first.upper() in self.words and second.upper() in self.words):
            return match[0]
        return first + second

    def _by_neighbour(self, text: str) -> str:
        """A rare word that looks like the one that usually follows its neighbour is that one: `SHAH ALAN`."""

        parts = re.split(r"([^\W\d_]+)", text)
        for place in range(3, len(parts), 2):
            first, gap, second = parts[place - 2 : place + 1]
            usual = self.after.get(first.upper(), ())
            if gap.strip(" ,") or len(second) < 3 or second.upper() in usual or self.words.get(second.upper(), 0) > 2:
                continue
            near = [(cost, word) for word in usual if (cost := _distance(second.upper(), word, _PURE)) is not None]
            if near:
                parts[place] = _cased(min(near)[1], second)
        return "".join(parts)

    @lru_cache(maxsize=4096)  # noqa: B019 - a speller lives as long as its model
    def _chunk(self, chunk: str, names: bool, whole: bool) -> str:
        edge = _EDGE.match(chunk)
        assert edge is not None
        before, core, after = edge.groups()
        if before and core and (joined := before[-1] + core).upper() not in self.words and before[-1] in "|!":
            core, before = joined, before[:-1]
        return before + self._core(core, names, whole) + after

    def _core(self, core: str, names: bool, whole: bool) -> str:
        if len(core) < 2 or self.known(core) or _INITIALS.fullmatch(core):
            return core
        parts = [part for part in re.split(r"([,&()/@.\-]+)", core) if part]
        if len(parts) > 1:
            one = self._word(core) if core.isprintable() and not set(core) & set("/()&,@") else None
            return one or "".join(part if part[0] in ",&()/@.-" else self._core(part, names, whole) for part in parts)
        if whole and core.isalpha():
            return self._word(core) or core
        return self._word(core) or self._split(core, names) or _letters_only(core)

    def known(self, word: str) -> bool:
        """Whether it is in the list, however it is capitalised."""
        return word.upper() in self.words or word.upper() in self.right

    def _word(self, core: str) -> str | None:
        """The known word that it is most likely a misreading of."""
        letters = sum(character.isalpha() for character in core)
        digits = sum(character.isdigit() for character in core)
        if letters < 2 or digits > letters or len(core) > 20:
            return None
        upper = core.upper()
        pure = core.isalpha()
        best: tuple[float, str] | None = None
        for length in range(max(3, len(core) - 2), len(core) + 2):
            least = _COMMON if length < _LONG else _COMMON // 2
            for word in self._by_length.get(length, ()):
                count = self.words[word]
                if count < least:
                    break
                if (length < 5 and pure) or (length == 3 and count < 3 * _COMMON):
                    continue
                limit = _MIXED if not pure else _PURE
                if pure and length >= _LONG and count >= 2 * _COMMON and not _inflected(upper, word):
                    limit = 1.0
                cost = _distance(upper, word, limit)
                if cost is not None and (best is None or cost + 0.15 / count < best[0]):
                    best = (cost + 0.15 / count, word)
        return _cased(best[1], core) if best else None

    def _split(self, core: str, names: bool) -> str | None:
        """Spaces between words that were run together."""
        camel = re.sub(r"(?<=[a-z]{2})(?=[A-Z][a-zA-Z0-9])", " ", core)
        halves = camel.split(" ")
        if len(halves) > 1 and (not names or any(self.words.get(part.upper(), 0) >= _COMMON for part in halves)):
            return " ".join(self._core(part, names, False) for part in halves)
        if found := re.fullmatch(r"(\d{5})([A-Za-z]{2,}.*)", core):
            return f"{found[1]} {self._core(found[2], names, False)}"
        if found := re.fullmatch(r"(?i:(j[al1]{1,3}n))([A-Z]{1,4}\d.*)", core):
            return f"{self._core(found[1], names, False)} {found[2]}"
        if found := re.fullmatch(r"([A-Za-z]{3,})(\d[\w/-]*)", core):
            if self.words.get(found[1].upper(), 0) >= 3:
                return f"{found[1]} {found[2]}"
            return None
        if len(core) < 6 or not core.isalpha():
            return None
        parts = self._cheapest(core.upper())
        if len(parts) < 2 or not self._plausible(parts, names):
            return None
        out, at = [], 0
        for part in parts:
            out.append(core[at : at + len(part)])
            at += len(part)
        return " ".join(out)

    def _plausible(self, parts: list[str], names: bool) -> bool:
        """Whether enough of it is known to believe that it was several words."""
        counts = [self.words.get(part, 0) for part in parts]
        rare = [part for part, count in zip(parts, counts, strict=True) if not count and part not in self.right]
        if len(rare) > 1 or any(len(part) < 4 and (len(part) < 2 or set(part) & set("AEIOU")) for part in rare):
            return False  # What is left over must be a word or an abbreviation, not an ending.
        sure = sum(len(part) for part in parts) - sum(map(len, rare))
        return max(counts) >= _VERY_COMMON or sure >= _SURE_LETTERS or (not names and not rare)

    def _cheapest(self, upper: str) -> list[str]:
        """The likeliest way to cut it into words, at most one of them unknown."""
        size = len(upper)
        best: list[tuple[float, int]] = [(0.0, 0)] + [(math.inf, 0)] * size
        for end in range(1, size + 1):
            for start in range(max(0, end - 16), end):
                part = upper[start:end]
                price = self._price(part)
                if best[start][0] + price < best[end][0]:
                    best[end] = (best[start][0] + price, start)
        parts, at = [], size
        while at:
            parts.append(upper[best[at][1] : at])
            at = best[at][1]
        return parts[::-1]

    def _price(self, part: str) -> float:
        count = self.words.get(part, 0)
        if count and (len(part) >= 4 or (count >= 5 and len(part) >= 2)):
            return 2.0 - math.log(count / self.total) * 0.5
        return 9.0 + 2.0 * len(part) if len(part) > 2 else 14.0 + 3.0 * len(part)


def learn_words(texts: Iterable[tuple[str, str]], least: int = 1) -> dict[str, int]:
    """How many groups use each word of these (group, text) pairs; words of letters only, at least two of them."""
    groups: dict[str, set[str]] = {}
    for group, text in texts:
        for word in re.findall(r"[^\W\d_]{2,}", text.upper()):
            groups.setdefault(word, set()).add(group)
    counts = Counter({word: len(having) for word, having in groups.items()})
    return {word: count for word, count in sorted(counts.items()) if count >= least}


def _distance(read: str, meant: str, limit: float) -> float | None:
    """How far a misreading is from a word; pairs that look alike are near. None when it is beyond the limit."""
    if abs(len(read) - len(meant)) > 2:
        return None
    previous = [float(length) for length in range(len(meant) + 1)]
    before: list[float] = []
    for row, seen in enumerate(read, start=1):
        drop = 0.35 if seen in _NOISE else 1.0
        current = [previous[0] + drop]
        for column, wanted in enumerate(meant, start=1):
            if seen == wanted:
                swap = 0.0
            else:
                swap = 0.4 if frozenset((seen, wanted)) in _CHEAP else 0.5 if not seen.isalnum() else 1.0
            cost = min(previous[column - 1] + swap, previous[column] + drop, current[-1] + 1.0)
            if row > 1 and before and _PAIRS.get(read[row - 2 : row]) == wanted:
                cost = min(cost, before[column - 1] + 0.4)
            current.append(cost)
        if min(current) > limit and min(previous) > limit:
            return None
        before, previous = previous, current
    return previous[-1] if previous[-1] <= limit else None


def _inflected(one: str, other: str) -> bool:
    """Whether two words differ in their ending only, as forms of a word do."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    tails = one[same:] + other[same:]
    return len(tails) <= 3 and not set(tails).isdisjoint("SYIDR")


def _letters_only(core: str) -> str:
    """A digit in the middle of letters is the letter that it looks like."""
    letters = sum(character.isalpha() for character in core)
    strange = [character for character in core if not character.isalpha()]
    if letters >= 3 and len(strange) == 1 and strange[0] in _LETTERS and not core[-1].isdigit():
        return core.replace(strange[0], _cased(_LETTERS[strange[0]], core))
    return re.sub(r"(?<=\d)[oO](?![a-zA-Z])", "0", core)


def _cased(word: str, like: str) -> str:
    letters = [character for character in like if character.isalpha()]
    if all(character.isupper() for character in letters):
        return word
    if letters and letters[0].isupper():
        return word.capitalize()
    return word.lower()


def learn_pairs(texts: Iterable[tuple[str, str]], least: int = 2) -> dict[str, int]:
    """How many groups write one word behind another, as `FIRST SECOND`."""
    groups: dict[str, set[str]] = {}
    for group, text in texts:
        for found in re.finditer(r"(?=\b([^\W\d_]{2,})[ ,]+([^\W\d_]{3,})\b)", text.upper()):
            groups.setdefault(f"{found[1]} {found[2]}", set()).add(group)
    return {pair: len(having) for pair, having in sorted(groups.items()) if len(having) >= least}
