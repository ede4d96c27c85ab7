"""What JSON can say and no database keeps, found anywhere in a body before anything is done with it. Pure."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import orjson
from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

DEEPEST = 100
"""Levels of lists and objects within one another: what is stored is put into others, and read again."""
_MOST_TOLD = 20
_MOST_SEEN = 100_000
"""Values that are looked at one by one: whoever sends millions is told less exactly, and keeps nobody waiting."""
_DEEPEST_TOLD = 10
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_DEEPEST_OF_ORJSON = 254

_MESSAGES = {
    "text_with_nul": "Text with a NUL character cannot be stored",
    "text_not_whole": "Text with half a character (a lone surrogate) cannot be stored",
    "number_not_finite": "This is no finite number",
    "number_too_large": "This number has more than 64 bits",
    "nested_too_deep": "Lists and objects are nested too deep here",
    "not_storable": "Something in this body cannot be stored",
}
REMEDIES: Mapping[str, str] = {
    "text_with_nul": "Leave the NUL character out.",
    "text_not_whole": "Write both halves of the character, or leave it out.",
    "number_not_finite": "Write a finite number, or null.",
    "number_too_large": "Write a smaller number, or write it as text.",
    "nested_too_deep": f"Nest them at most {DEEPEST} deep.",
    "not_storable": "Look for NUL and half characters, for numbers that are not finite or of more than 64 bits, and "
    f"for nesting deeper than {DEEPEST}.",
}
"""By what is wrong."""

Place = tuple[int | str, ...]


def check_storable(body: object) -> None:
    """ValidationError names the places that cannot be stored as they are, and what is wrong there."""
    if _fine(body):
        return
    found = [
        InitErrorDetails(
            type=PydanticCustomError(kind, _MESSAGES[kind]),
            loc=place[:_DEEPEST_TOLD],
            input=None,
        )
        for place, kind in islice(_faults(body), _MOST_TOLD)
    ]
    if found:
        raise ValidationError.from_exception_data("body", found)


def _fine(body: object) -> bool:
    """Whether nothing is wrong, at the speed of C: bodies are checked while others wait, and nearly all are fine."""
    deeper = body
    for _ in range(_DEEPEST_OF_ORJSON - DEEPEST):
        deeper = [deeper]
    try:
        text = orjson.dumps(deeper)
        if b"null" in text:
            # So it writes what is no number.
            json.dumps(body, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return b"\\u0000" not in text


def _faults(body: object) -> Iterator[tuple[Place, str]]:
    # Not by recursion: how deep it goes is the sender's choice.
    place: list[int | str] = []
    levels: list[Iterator[tuple[Any, Any]]] = [iter([("", body)])]
    seen = 0
    while levels:
        key, value = next(levels[-1], ("", levels))
        if value is levels:
            levels.pop()
            del place[-1:]
            continue
        seen += 1
        if seen > _MOST_SEEN:
            yield (), "not_storable"
            return
        here: Place = (*place, _shown(key)) if len(levels) > 1 else ()
        kind = _fault(key) or _fault(value)
        if kind is not None:
            yield here, kind
        elif isinstance(value, dict | list):
            if len(levels) > DEEPEST:
                yield here, "nested_too_deep"
                continue
            inner: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
            place[:] = here
            levels.append(iter(inner))


def _fault(value: object) -> str | None:
    match value:
        case str():
            if "\0" in value:
                return "text_with_nul"
            return None if value.isascii() or _whole(value) else "text_not_whole"
        case float():
            return None if math.isfinite(value) else "number_not_finite"
        case int():
            return None if _SMALLEST <= value <= _LARGEST else "number_too_large"
        case _:
            return None


def _whole(text: str) -> bool:
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)


def _shown(key: int | str) -> int | str:
    """A name that can be told, whatever it holds."""
    if isinstance(key, int):
        return key
    return key[:80].encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
