"""Lengths of time and instants as people write them: `90`, `"1h30m"`, `2026-01-31T08:00:00Z`."""

import re
from datetime import UTC, date, datetime

LONGEST = 366 * 86_400.0
"""Longest length of time a template may name, in seconds."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s|m|h|d)\s*", re.ASCII)
_PLAIN = re.compile(r"\d{1,9}(?:\.\d{1,6})?", re.ASCII)


def seconds(text: str) -> float | None:
    """The length of time in seconds, units largest first or in any order; None if it is not one."""
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return float(text)
    total, position = 0.0, 0
    while position < len(text):
        found = _PART.match(text, position)
        if not found:
            return None
        total += float(found[1]) * _UNITS[found[2]]
        position = found.end()
    return total if position else None


def instant(value: object) -> datetime | None:
    """The aware instant an expression or ISO 8601 text names; without an offset it is UTC; None if it is not one."""
    if isinstance(value, str):
        if len(value) > 40 or not re.match(r"\s*\d{4}-?(\d\d|W)", value, re.ASCII):
            return None
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def written(length: float) -> str:
    """Seconds the short way people write them: `1h30m`, `10s`, `0.5s`."""
    parts: list[str] = []
    rest = length
    for unit in ("d", "h", "m"):
        count = int(rest // _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
            rest -= count * _UNITS[unit]
    if rest or not parts:
        parts.append(f"{round(rest, 3):g}s")
    return "".join(parts)
