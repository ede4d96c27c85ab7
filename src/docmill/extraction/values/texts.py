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


_WESTERN = {
    ord(digit): str(number)
    for digits in ("０１２３４５６７８９", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "०१२३४५६७८९")
    for number, digit in enumerate(digits)
}
_WESTERN |= {ord(wide): sign for wide, sign in zip("．，－／：（）　٫٬￥", ".,-/:() .,¥", strict=True)}


def western(text: str) -> str:
    """Digits of other scripts and wide ones as `0` to `9`, and the signs between them; places stay the same."""
    return text if text.isascii() else text.translate(_WESTERN)


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


_SPECIAL = {
    "ł": "l",
    "Ł": "l",
    "ø": "o",
    "Ø": "o",
    "đ": "d",
    "Đ": "d",
    "ı": "i",
    "ς": "σ",
    "’": "'",
    "‘": "'",
    "`": "'",
}
_SPECIAL |= dict.fromkeys("‐‑‒–—−", "-")
# Taken apart, these syllables would be their first consonants.
_SPECIAL |= {syllable: syllable for syllable in "년월일"}
_TABLE = _Table(_WESTERN)


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
