"""Job ids as people write them: whole, in any spelling of a UUID, or the first digits of one. Pure."""

import re
import uuid

from docmill.model.errors import NotFound

SHORTEST = 6
"""Digits. Ids begin with the time, so the jobs of one busy minute share the first eight."""
_DIGITS = 32
_HEX = re.compile(r"[0-9a-f]+", re.ASCII)


def prefix_bounds(text: str) -> tuple[str, str] | None:
    """The first and the last id that begin so; None unless it is the beginning of an id, and long enough."""
    digits = text.lower().replace("-", "")
    if not SHORTEST <= len(digits) < _DIGITS or not _HEX.fullmatch(digits):
        return None
    return str(uuid.UUID(digits.ljust(_DIGITS, "0"))), str(uuid.UUID(digits.ljust(_DIGITS, "f")))


def is_too_short(text: str) -> bool:
    """Whether it is the beginning of an id, and shared by too many to say which."""
    digits = text.lower().replace("-", "")
    return 0 < len(digits) < SHORTEST and _HEX.fullmatch(digits) is not None


def unknown_job(text: str) -> NotFound:
    """The error for an id that no job of the organisation has."""
    return NotFound(f"There is no job {text}. `docmill jobs list` shows those there are.", job_id=text)
