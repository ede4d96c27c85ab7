"""`Idempotency-Key`: what creates something is done once, however often its answer is lost on the way."""

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import orjson
from fastapi import Depends, Header, Request
from pydantic import BaseModel, TypeAdapter
from starlette.responses import Response

from docmill.api.access import Acting, Call
from docmill.model.errors import InvalidInput
from docmill.services.replies import Reply

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="The same key with the same content gets the same answer, and nothing is done twice.",
    ),
]


class Once:
    """One request that creates something."""

    def __init__(self, call: Call, request: Request, key: str | None) -> None:
        self._call = call
        self._route = f"{request.method} {request.url.path}"
        self._key = key

    @property
    def derived_key(self) -> str | None:
        """Names what is created, should this process die before the answer is stored."""
        if self._key is None:
            return None
        # Hashed whole: cut off, two long keys would name the same.
        parts = (self._call.principal.id, self._route, self._key)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def once(
        self,
        said: BaseModel | dict[str, Any],
        work: Callable[[], Any],
        *,
        status: int = 201,
        secret: str | None = None,
    ) -> Response:
        """The answer to this request; of the first time, if it is not the first. `secret` is told only then."""
        if self._key is None:
            return _response(Reply(status=status, body=_json(work())), again=False)
        digest = hashlib.sha256(self._route.encode() + b"\0" + _content(said)).hexdigest()
        replies = self._call.org.replies
        turn = replies.begin(self._call.principal.id, self._key, digest)
        if isinstance(turn, Reply):
            return _response(turn, again=True)
        try:
            body = _json(work())
        except BaseException:
            # Nothing came of it: the same key may be used for another try.
            replies.abandon(turn)
            raise
        replies.finish(turn, Reply(status=status, body=_masked(body, secret)))
        return _response(Reply(status=status, body=body), again=False)


def _content(said: BaseModel | dict[str, Any]) -> bytes:
    """What was said, in one form, whatever the order of its keys."""
    try:
        plain = said.model_dump() if isinstance(said, BaseModel) else said
        return orjson.dumps(plain, default=str, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise InvalidInput(
            f"The body holds what cannot be stored ({error}). Write whole numbers beyond 64 bits as text, and text in "
            "well-formed Unicode.",
            field="body",
        ) from error


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    """Made once: to make one takes longer than most answers."""
    return TypeAdapter(kind)


def _json(value: Any) -> bytes:
    return _adapter(type(value)).dump_json(value)  # type: ignore[arg-type]  # a class is hashable


def _masked(body: bytes, secret: str | None) -> bytes:
    return body if secret is None else orjson.dumps({**orjson.loads(body), secret: None})


def _response(reply: Reply, *, again: bool) -> Response:
    headers = {"Idempotent-Replayed": "true"} if again else {}
    return Response(reply.body, status_code=reply.status, media_type="application/json", headers=headers)


async def _once(request: Request, call: Acting, key: Key = None) -> Once:
    return Once(call, request, key)


Creating = Annotated[Once, Depends(_once)]
