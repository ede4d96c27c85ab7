"""Words as features: what a line says, in spite of how the OCR spelt it."""

import re
import unicodedata
from functools import lru_cache

_FULL_WIDTH = str.maketrans("（）：，．；＃＆／－＊！＄％＋＝｜～［］", "():,.;#&/-*!$%+=|~[]")
_LOOKALIKE = str.maketrans("0158", "olsb")
_MIXED = re.compile(r"[A-Za-z0158]*[A-Za-z]{2,}[A-Za-z0158]*")


@lru_cache(maxsize=8192)
def plain(text: str) -> str:
    """Without accents and full-width punctuation: both are slips of an OCR that also reads French and Chinese."""
    text = text.translate(_FULL_WIDTH)
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part))


@lru_cache(maxsize=8192)
def tokens(text: str) -> tuple[str, ...]:
    """Words in lower case, digits in a word taken for the letters they look like; a number is `#` and its length."""
    found = []
    for part in re.findall(r"[A-Za-z0-9']+", plain(text)):
        word = part.lower().strip("'")
        if not word:
            continue
        if word.isdigit():
            found.append(f"#{min(len(word), 9)}")
        elif _MIXED.fullmatch(word) and not word.isalpha():
            found.append(word.translate(_LOOKALIKE))
        else:
            found.append(word)
    return tuple(found)
