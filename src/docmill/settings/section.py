"""What every section of the settings is made of."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from docmill.model.errors import InvalidInput

T = TypeVar("T")

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds", "": "seconds"}
_LENGTH = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([dhms]?)\s*", re.ASCII)


class Section(BaseModel):
    """A mapping of settings: unknown names are refused, and what is wrong with a secret may be said, not the secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def parse_length(text: str) -> timedelta | None:
    """A length of time as people write it (`90d`, `12h`, seconds); None if it is none."""
    found = _LENGTH.fullmatch(text)
    return timedelta(**{_UNITS[found[2]]: float(found[1])}) if found else None


def length_text(length: timedelta) -> str:
    """As `parse_length` reads it, in the largest unit that it is whole numbers of."""
    seconds = length.total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def _length(value: object) -> object:
    return (parse_length(value) or value) if isinstance(value, str) else value


Length = Annotated[timedelta, BeforeValidator(_length)]
"""A length of time as people write it: `90d`, `12h`, seconds."""


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Listed = BeforeValidator(_split)
"""Of a tuple that may also be written as text with commas, as in a variable; mark its annotation with `NoDecode`."""


def checked(check: Callable[[str], T], value: str) -> T:
    """What a check of the model makes of a value, its complaint as a fault of the settings."""
    try:
        return check(value)
    except InvalidInput as error:
        raise ValueError(error.message) from None
