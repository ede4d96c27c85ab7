"""Streams of events: so many at once, and with threads of their own, so that they keep no request waiting."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from docmill.api.problems import TooManyStreams

T = TypeVar("T")
_THREADS = 2
"""That look for all of them. The database has so many connections to spare besides those of requests."""
_RETRY = 5.0
"""Seconds."""


class Seat:
    """The place of one stream that is open."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave: Callable[[], None] | None = leave

    def leave(self) -> None:
        """The stream has ended. To be said as often as one likes."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


class Streams:
    """The streams of one server; of one organisation at most half of them, so that none keeps the others out."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_one = max(1, most // 2)
        self._open: Counter[str] = Counter()
        self._threads = CapacityLimiter(_THREADS)

    def seat(self, org_id: str) -> Seat:
        """A place for one more of this organisation; TooManyStreams if there is none."""
        if self._open.total() >= self._most:
            raise _full(f"{self._most} streams of events are open")
        if self._open[org_id] >= self._most_of_one:
            raise _full(f"{self._most_of_one} streams of events of this organisation are open")
        self._open[org_id] += 1
        return Seat(partial(self._left, org_id))

    def _left(self, org_id: str) -> None:
        self._open[org_id] -= 1
        if not self._open[org_id]:
            del self._open[org_id]

    async def run(self, work: Callable[..., T], *given: Any) -> T:
        """What asks the database, on a thread that no request needs."""
        return await run_sync(partial(work, *given), limiter=self._threads)


def _full(what: str) -> TooManyStreams:
    return TooManyStreams(
        f"{what}, and there may be no more (`api.max_streams`). Try again in a while, or ask for the events of a job "
        "without a stream.",
        retry_after=_RETRY,
    )


class Seated(StreamingResponse):
    """An answer that holds a seat until it ends, however it does."""

    def __init__(self, *given: Any, seat: Seat, **named: Any) -> None:
        super().__init__(*given, **named)
        self._seat = seat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._seat.leave()
