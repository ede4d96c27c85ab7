"""Words compared without case and accents."""

import unicodedata
from functools import lru_cache


@lru_cache(maxsize=2048)
def plain(text: str) -> str:
    """Lower case without accents; `ß` as `ss`, typographic dashes and quotes as plain ones."""
    if text.isascii():
        return text.lower().replace("`", "'")
    text = text.casefold().translate(_PLAIN)
    if text.isascii():
        return text
    return "".join([char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char)])


@lru_cache(maxsize=2048)
def letters(text: str) -> str:
    """Only its letters and digits, to compare names that differ in spacing and punctuation."""
    return "".join(filter(str.isalnum, plain(text)))


_PLAIN = str.maketrans(
    {
        **dict.fromkeys("–—‐‑", "-"),
        **dict.fromkeys("’`´", "'"),
        "º": "°",
        "№": "n°",
        "\u00a0": " ",
        # Letters that are not one with an accent.
        "ł": "l",
        "ø": "o",
        "æ": "ae",
        "đ": "d",
        "þ": "th",
    }
)
