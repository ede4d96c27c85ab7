"""What requests are made of: strict, nothing unknown, nothing that a database refuses; and pages of lists."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Path, Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from docmill.api.storable import check_storable
from docmill.model.errors import InvalidInput, NotFound
from docmill.model.ids import canonical_id, is_id

T = TypeVar("T")
MOST_LISTED = 200


class Wire(BaseModel):
    """A body that is sent to us. Unknown names are refused, a number for a text, and what no database stores."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _storable(cls, body: Any) -> Any:
        check_storable(body)
        return body


def written_out(value: object) -> object:
    """A moment as it is sent: a bare number would be taken for seconds since 1970, and be a typing mistake."""
    if value is not None and not (isinstance(value, str) and "-" in value[1:]):
        raise PydanticCustomError("datetime_type", "A moment is text, as ISO 8601 writes it")
    return value


Text = str
"""Text in a body: a `Wire` has seen that every database stores it."""
Moment = Annotated[AwareDatetime, BeforeValidator(written_out), Field(strict=False)]
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


def read_cursor(noun: str, cursor: str | None, is_place: Callable[[str], bool] = is_id) -> str | None:
    """The id, or whatever marks a place, behind which the list goes on; InvalidInput for what is no cursor of it."""
    if cursor is None:
        return None
    try:
        found = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode("ascii")
    except (UnicodeError, binascii.Error, ValueError):
        found = ""
    named, _, last = found.partition(":")
    if named != noun or not is_place(last):
        raise bad_cursor()
    return last


def is_version(text: str) -> bool:
    """Whether this is the version of a job, which marks a place among its events."""
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 2**31


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
    is_place: Callable[[str], bool] = is_id,
) -> tuple[list[T], str | None]:
    """A page: one more is asked for than shown, which tells whether anything follows."""
    after = read_cursor(noun, cursor, is_place)
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
