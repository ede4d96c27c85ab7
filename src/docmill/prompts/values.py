"""Values as a prompt words them: text as it is, everything else in one documented way.

Only plain data has words: mappings, lists, text, numbers, truth values, dates, UUIDs, members of enums. Whatever else a
loader returns (objects, bytes) is the empty string: to look inside, or to trust its `__str__`, would be to read
attributes, which a prompt must not be able to do.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from enum import Enum
from uuid import UUID

DEEPEST = 64
"""Levels of a nested value; what lies deeper is null. Data that contains itself ends here too."""
_EXACT = 2**53
"""Below it every whole number has its own float, so that 20.0 can be written 20 as other languages do."""


def lookup(value: object, path: Sequence[str]) -> object:
    """What the keys lead to, or None: keys of mappings and places in lists, never attributes."""
    for key in path:
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list | tuple) and key.isascii() and key.isdigit() and len(key) < 10:
            value = value[int(key)] if int(key) < len(value) else None
        else:
            return None
    return value


def words(value: object) -> Iterator[str]:
    """The value as text, in pieces: whoever joins them may stop when there are too many."""
    value = _bare(value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        yield from _json(value)
    else:
        yield _single(value) or ""


def _bare(value: object) -> object:
    """Members of enums are their values; text of a class of its own is text."""
    if isinstance(value, Enum):
        value = value.value
    return str.__str__(value) if isinstance(value, str) else value


def _single(value: object) -> str | None:
    """The words of a value that is neither text nor nested; None if it has none."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # Python itself refuses to write numbers of many thousand digits.
            return str(int(value)) if value.bit_length() < 10_000 else None
        case float():
            if not math.isfinite(value):
                return None
            return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(float(value))
        case Decimal():
            return str(value) if value.is_finite() else None
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
        case _:
            return None


def _json(value: object) -> Iterator[str]:
    """JSON on one line, with the same words for the same values.

    On a stack of its own: a recursive generator would hand every piece up through all the levels above it.
    """
    levels: list[tuple[Iterator[tuple[str, object]], str]] = [(iter([("", value)]), "")]
    while levels:
        entries, closing = levels[-1]
        lead, entry = next(entries, (None, None))
        if lead is None:
            levels.pop()
            yield closing
            continue
        entry = _bare(entry)
        if isinstance(entry, Mapping | list | tuple) and len(levels) <= DEEPEST:
            mapping = isinstance(entry, Mapping)
            yield lead + ("{" if mapping else "[")
            levels.append((_entries(entry), "}" if mapping else "]"))
        else:
            yield lead + _json_single(entry)


def _json_single(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, date | time | UUID):
        return f'"{_single(value)}"'
    return _single(value) or "null"


def _entries(value: Mapping[object, object] | Sequence[object]) -> Iterator[tuple[str, object]]:
    """What is inside, each with what is written before it."""
    comma = ""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            bare = _bare(key)
            name = bare if isinstance(bare, str) else _single(bare) or ""
            yield f"{comma}{json.dumps(name, ensure_ascii=False)}: ", entry
            comma = ", "
        return
    for entry in value:
        yield comma, entry
        comma = ", "
