"""Identifiers: time-ordered for what is created, derived for what must come out the same twice.

Ids travel as canonical UUID text: cheap to hash and to print, native `uuid` on PostgreSQL, text on SQLite.
"""

import hashlib
import os
import re
import time
import uuid

DEFAULT_ORG = "00000000-0000-7000-8000-000000000001"
"""The organisation of a single-tenant installation."""

SHARED_ORG = "00000000-0000-7000-8000-000000000000"
"""Owns what every organisation may use, such as shared prompts. Nobody belongs to it."""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _canonical(value: int) -> str:
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _stamp(value: int, version: int) -> str:
    value &= ~(0xF << 76) & ~(0x3 << 62)
    return _canonical(value | version << 76 | 0x2 << 62)


def is_id(text: str) -> bool:
    """Whether this is an id as we write them: canonical UUID text, lower case."""
    return _ID.fullmatch(text) is not None


def canonical_id(text: str) -> str | None:
    """The id as it is stored, however it was written; None for what cannot be one."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None


def new_id() -> str:
    """A UUIDv7: sorts by creation time to a quarter of a microsecond; indexes grow at one end and batches keep order.

    The twelve bits after the version hold the fraction of the millisecond, as RFC 9562 allows.
    """
    millis, nanos = divmod(time.time_ns(), 1_000_000)
    fraction = (nanos << 12) // 1_000_000
    return _stamp(millis << 80 | fraction << 64 | int.from_bytes(os.urandom(8), "big"), 7)


def following_id(parent: str, *parts: str | int) -> str:
    """A derived id that sorts where its parent does, so that lists by id stay lists by time."""
    derived = derived_id(parent, *parts)
    return parent[:13] + derived[13:]


def derived_id(*parts: str | int) -> str:
    """An id that is the same for the same parts (UUIDv8), so a rerun writes the same rows again.

    For a row derived from a document give what makes it that row: the document, its position in it, its content. Then
    the same content gets the same id again, and changed content a new one, so that whoever uses the old row keeps it.
    Never an id or a time of the attempt: the next attempt has another.
    """
    text = "\x1f".join(str(part) for part in parts)
    return _stamp(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big"), 8)
