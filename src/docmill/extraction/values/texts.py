"""Text in one form: for keeping, for comparing, and folded character by character so that places stay the same."""

import re
import unicodedata
from functools import lru_cache

_SPACES = re.compile(r"\s+")
_NOT_LOOSE = re.compile(r"[\W_]+")


def clean(text: str) -> str:
    """As it is kept: composed characters, trimmed, single spaces."""
    return _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip()


def fold(text: str) -> str:
    """As it is compared exactly: case and white space folded."""
    return clean(text).casefold()


def loose(text: str) -> str:
    """As it is compared loosely: letters and digits only, case folded."""
    return _NOT_LOOSE.sub("", unicodedata.normalize("NFKC", text).casefold())


def _bare(character: str) -> str:
    """The letter without its marks, in lower case; the character itself where that would be none or several."""
    lowered = unicodedata.normalize("NFD", character)[0].lower()
    return lowered if len(lowered) == 1 else character


class _Table(dict[int, str]):
    """A translation that is worked out for each character when it is first seen."""

    def __missing__(self, point: int) -> str:
        bare = _SPECIAL.get(chr(point)) or _bare(chr(point))
        if chr(point).isspace():
            bare = " "
        self[point] = bare
        return bare


_SPECIAL = {"ł": "l", "Ł": "l", "ø": "o", "Ø": "o", "đ": "d", "Đ": "d", "ı": "i", "’": "'", "‘": "'", "`": "'"}
_SPECIAL |= dict.fromkeys("‐‑‒–—−", "-")
_TABLE = _Table()


def bare(text: str) -> str:
    """Lower case without accents, dashes and spaces of one kind; as long as the text, so that places stay the same."""
    return _bare_line(text) if len(text) <= _LINE else text.translate(_TABLE)


_LINE = 200
"""Letters of a text that is worth keeping: the same lines are asked for by several readers, labels again and again."""


@lru_cache(maxsize=4096)
def _bare_line(text: str) -> str:
    return text.translate(_TABLE)


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a short text, bare and without punctuation around them."""
    return tuple(word for word in re.split(r"[^\w]+", bare(text)) if word)
