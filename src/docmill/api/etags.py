"""`ETag` and `If-Match`: a change names what it was made from, and is refused when that is not there any more."""

import re
from typing import Annotated

from fastapi import Depends, Header, Response

from docmill.api.problems import PreconditionFailed, PreconditionMissing

_TAG = re.compile(r'\s*(?:W/)?"(\d{1,9})"\s*', re.ASCII)

IfMatch = Annotated[
    str | None, Header(alias="If-Match", max_length=200, description="The ETag that the change was made from.")
]


def etag(response: Response, version: int) -> None:
    """Say which version this is."""
    response.headers["ETag"] = f'"{version}"'


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


def _needed(if_match: IfMatch = None) -> int | None:
    if if_match is None:
        raise PreconditionMissing(
            "Others may be changing this too. Send If-Match with the ETag of what you looked at.",
            field="header.if-match",
        )
    return _version(if_match)


async def _optional_dependency(if_match: IfMatch = None) -> int | None:
    return _version(if_match)


async def _needed_dependency(if_match: IfMatch = None) -> int | None:
    return _needed(if_match)


Seen = Annotated[int | None, Depends(_needed_dependency)]
"""The version that an edit was made from: it must be named. `*` is whatever is there."""
MaybeSeen = Annotated[int | None, Depends(_optional_dependency)]


def must_be(current: int | None, seen: int | None) -> None:
    """Refuse an edit of something that has moved on; for what is stored by a service that knows no versions."""
    if seen is not None and seen != current:
        there = "there is nothing yet" if current is None else f"it is at {current}"
        raise PreconditionFailed(f"This has changed since: {there}, not {seen}. Look at it again.", version=current)
