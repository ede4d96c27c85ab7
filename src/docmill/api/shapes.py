"""What requests are made of: strict, nothing unknown, nothing that a database refuses; and pages of lists."""

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Generic, TypeVar

from fastapi import Path, Query
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from docmill.model.errors import InvalidInput, NotFound
from docmill.model.ids import canonical_id, is_id

T = TypeVar("T")
MOST_LISTED = 200


class Wire(BaseModel):
    """A body that is sent to us. Unknown names are refused, and so is a number for a text."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character, which cannot be stored")
    return text


def _only_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("is a moment as ISO 8601 writes it, such as 2026-11-01T12:00:00Z")
    return value


Text = Annotated[str, AfterValidator(_storable)]
"""Text that every database stores."""
Moment = Annotated[AwareDatetime, BeforeValidator(_only_text), Field(strict=False)]
Id = Annotated[str, Path(max_length=36, min_length=36, description="A UUID.")]
"""Of something in a path; what looks like none is simply not there."""
Name = Annotated[str, Path(min_length=1, max_length=200)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]
Limit = Annotated[int, Query(ge=1, le=MOST_LISTED, description="At most this many.")]
Cursor = Annotated[
    str | None, Query(max_length=200, description="`next_cursor` of the page before; opaque, and good for its list.")
]
Word = Annotated[str | None, Query(max_length=200)]


class Page(BaseModel, Generic[T]):
    """A part of a list."""

    items: list[T]
    next_cursor: str | None = Field(description="Ask with it for what follows; null: this is the end.")


def only_id(text: str, what: str) -> str:
    """An id from a path. Services also know things by names that people type, which may be as long as an id."""
    if canonical_id(text) is None:
        raise NotFound(f"There is no {what} {text}.", id=text)
    return text


def read_cursor(noun: str, cursor: str | None) -> str | None:
    """The id behind which the list goes on; InvalidInput for what is no cursor of this list."""
    if cursor is None:
        return None
    try:
        found = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode("ascii")
    except (UnicodeError, binascii.Error, ValueError):
        found = ""
    named, _, last = found.partition(":")
    if named != noun or not is_id(last):
        raise bad_cursor()
    return last


def bad_cursor() -> InvalidInput:
    """What to say of a cursor that leads nowhere."""
    return InvalidInput(
        "The cursor is not one of this list. Begin without one, and go on with `next_cursor` of each page.",
        field="query.cursor",
    )


def write_cursor(noun: str, last: str) -> str:
    """A cursor for what comes behind this id."""
    return base64.urlsafe_b64encode(f"{noun}:{last}".encode()).rstrip(b"=").decode()


def page_of(
    noun: str,
    cursor: str | None,
    limit: int,
    read: Callable[[str | None, int], Sequence[T]],
    id_of: Callable[[T], str],
) -> tuple[list[T], str | None]:
    """A page: one more is asked for than shown, which tells whether anything follows."""
    after = read_cursor(noun, cursor)
    try:
        found = list(read(after, limit + 1))
    except NotFound:
        # What the cursor stands on has gone, or was never this organisation's.
        if after is None:
            raise
        raise bad_cursor() from None
    shown = found[:limit]
    more = len(found) > limit
    return shown, write_cursor(noun, id_of(shown[-1])) if more else None


def utc(value: datetime | None) -> str | None:
    """A moment as JSON says it."""
    return None if value is None else value.isoformat()
