"""Uploads are read a few at a time; the others wait, and their bytes with whoever sends them.

So memory does not grow with the number of those who upload at once. A place is kept for a short turn: who sends slowly
gives it to the next one, waits for more bytes without, and stands in line again when they have come.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from docmill.services.uploads import Incoming, Uploads

_TURN = 2.0
"""Seconds."""


class Place:
    """The right of one upload to be read and stored."""

    def __init__(self, free: asyncio.Semaphore, turn: float) -> None:
        self._free = free
        self._turn = turn
        self._held = False
        self._until = 0.0

    async def take(self) -> None:
        """Wait for a place, in the order of asking."""
        await self._free.acquire()
        self._held = True
        self._until = asyncio.get_running_loop().time() + self._turn

    def leave(self) -> None:
        """Give the place back, if it is held."""
        if self._held:
            self._held = False
            self._free.release()

    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """What is sent, piece by piece; ClientDisconnect if the sender goes away."""
        more = True
        while more:
            message = await self._next(request)
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            if piece := message.get("body", b""):
                yield piece

    async def _next(self, request: Request) -> Message:
        try:
            async with asyncio.timeout_at(self._until):
                return await request.receive()
        except TimeoutError:
            self.leave()
        # Without a place no more is read than the connection holds anyway.
        message = await request.receive()
        await self.take()
        return message


class Places:
    """The places of one server."""

    def __init__(self, count: int, turn: float = _TURN) -> None:
        self._free = asyncio.Semaphore(count)
        self._turn = turn

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Place]:
        """A place, from the first byte until the upload is accepted."""
        place = Place(self._free, self._turn)
        await place.take()
        try:
            yield place
        finally:
            place.leave()


@asynccontextmanager
async def uploading(request: Request, uploads: Uploads) -> AsyncIterator[tuple[AsyncIterator[bytes], Incoming]]:
    """The body of an upload and where its bytes go, once there is a place for it."""
    places: Places = request.app.state.places
    async with places.one() as place:
        incoming = await run_in_threadpool(uploads.open)
        try:
            yield place.body(request), incoming
        finally:
            # Also when the sender goes away: what was not accepted leaves nothing behind.
            incoming.close()
