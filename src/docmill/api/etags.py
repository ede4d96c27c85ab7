"""`ETag` and `If-Match`: a change names what it was made from, and is refused when that is not there any more."""

import hashlib
import re
from collections.abc import Callable
from typing import Annotated

import orjson
from fastapi import Depends, Header, Response

from docmill.api.problems import PreconditionFailed, PreconditionMissing

_TAG = re.compile(r'\s*(?:W/)?"(\d{1,9})"\s*', re.ASCII)

IfMatch = Annotated[
    str | None, Header(alias="If-Match", max_length=200, description="The ETag that the change was made from.")
]


def etag(response: Response, version: int | str) -> None:
    """Say which version this is, or what `tag_of` tells of it."""
    response.headers["ETag"] = f'"{version}"'


def tag_of(*content: object) -> str:
    """What stands for a version where none is counted: whose it is, and all of it that can be edited."""
    return hashlib.sha256(orjson.dumps(content)).hexdigest()[:16]


def _version(if_match: IfMatch = None) -> int | None:
    """The version that was named; None: any, or none was named."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = _TAG.fullmatch(if_match)
    if found is None:
        raise PreconditionFailed(
            "If-Match names no version of this; send the ETag of the last answer as it is.", field="header.if-match"
        )
    return int(found[1])


def _missing() -> PreconditionMissing:
    return PreconditionMissing(
        "Others may be changing this too. Send If-Match with the ETag of what you looked at.", field="header.if-match"
    )


async def _optional_dependency(if_match: IfMatch = None) -> int | None:
    return _version(if_match)


async def _needed_dependency(if_match: IfMatch = None) -> int | None:
    if if_match is None:
        raise _missing()
    return _version(if_match)


async def _base_dependency(if_match: IfMatch = None) -> "Base":
    seen = _version(if_match)

    def must_be(current: int | None) -> None:
        if if_match is None and current is not None:
            raise _missing()
        if seen is not None and seen != current:
            there = "there is nothing yet" if current is None else f"it is at {current}"
            raise PreconditionFailed(f"This has changed since: {there}, not {seen}. Look at it again.", version=current)

    return must_be


async def _unless_dependency(if_match: IfMatch = None) -> "Unless":
    # What is compressed on its way comes with a weak tag, and is the same.
    named = None if if_match is None else if_match.strip().removeprefix("W/")

    def must_be(current: str) -> None:
        if named not in (None, "*", f'"{current}"'):
            raise PreconditionFailed(
                "This has changed since. Look at it again, and send the ETag of that answer as it is.",
                field="header.if-match",
            )

    return must_be


Seen = Annotated[int | None, Depends(_needed_dependency)]
"""The version that an edit was made from: it must be named. `*` is whatever is there."""
MaybeSeen = Annotated[int | None, Depends(_optional_dependency)]
Base = Callable[[int | None], None]
Onto = Annotated[Base, Depends(_base_dependency)]
"""Refuses to store onto a version that the request does not name, where it is known what is there; onto nothing, none
need be named."""
Unless = Callable[[str], None]
UnlessChanged = Annotated[Unless, Depends(_unless_dependency)]
"""Refuses what has another tag than the one that the request names; none need be named. For where `tag_of` tells."""
