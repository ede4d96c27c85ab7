"""What happens, as it happens: by Server-Sent Events and by WebSocket. Both go on where somebody stopped."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated

import orjson
from fastapi import APIRouter, Header, Query, Request, WebSocket
from fastapi.responses import StreamingResponse
from starlette.requests import HTTPConnection
from starlette.websockets import WebSocketDisconnect

from docmill.api.access import SPOKEN, Guarded, admit, allowed, only, shown_by
from docmill.api.problems import answer_to, status_of
from docmill.api.streams import Seat, Seated, Streams
from docmill.bootstrap import App
from docmill.model.errors import DocmillError, InvalidInput
from docmill.model.people import Permission, Principal
from docmill.services.feed import FeedEvent, Follower, Place

routes = APIRouter(prefix="/events", tags=["events"], route_class=Guarded)

_SHORTEST, _LONGEST = 0.1, 1.0
"""Seconds between two looks."""
_HEARTBEAT = 15.0
_RECHECK = 10.0
"""Seconds after which it is asked again whether whoever listens may."""

LastId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)]
After = Annotated[str | None, Query(max_length=100, description="The id of the last event seen; as Last-Event-ID.")]
JobId = Annotated[str | None, Query(min_length=36, max_length=36, description="Only events of this job.")]


class _Stream:
    """The events that one listener hears."""

    def __init__(
        self,
        connection: HTTPConnection,
        principal: Principal,
        after: str | None,
        job_id: str | None,
        said: str = "query.after",
    ) -> None:
        self._connection = connection
        self._principal = principal
        app: App = connection.app.state.docmill
        self._org = app.for_org(principal.org_id)
        self._jobs = app.jobs_for(principal)
        self._after = None if after is None else Place.read(after, said)
        self._job_id = job_id
        self._streams: Streams = connection.app.state.streams

    async def open(self) -> None:
        """Refuse what cannot be followed before anything is sent."""

        def look() -> Follower:
            if self._job_id is not None:
                self._job_id = self._jobs.get(self._job_id).summary.id
            start = self._org.feed.now()
            return Follower(self._org.feed, self._after, start=start)

        self._follower = await self._streams.run(look)

    def _look(self) -> tuple[Sequence[FeedEvent], Sequence[FeedEvent]]:
        """What is new, and what of it is for this listener."""
        news = self._follower.news()
        wanted = [event for event in news if self._job_id in (None, event.job_id)]
        if wanted and self._job_id is None:
            seen = self._jobs.positions(sorted({event.job_id for event in wanted}))
            wanted = [event for event in wanted if event.job_id in seen]
        return news, wanted

    async def batches(self) -> AsyncIterator[Sequence[FeedEvent]]:
        """Events as they come; an empty one now and then, to tell that somebody is there."""
        interval, quiet, checked = _SHORTEST, 0.0, 0.0
        while not getattr(self._connection.app.state, "stopping", False):
            news, wanted = await self._streams.run(self._look)
            if wanted or quiet >= _HEARTBEAT:
                yield wanted
                quiet = 0.0
            interval = _SHORTEST if news else min(1.5 * interval, _LONGEST)
            await asyncio.sleep(interval)
            quiet, checked = quiet + interval, checked + interval
            if checked >= _RECHECK:
                checked = 0.0
                now = await self._streams.run(self._connection.app.state.authenticator, shown_by(self._connection))
                now.require(Permission.JOBS_READ)
                if now.org_id != self._principal.org_id:
                    return


def _plain(event: FeedEvent) -> bytes:
    told = {
        "id": event.id,
        "type": "job",
        "job_id": event.job_id,
        "version": event.version,
        "at": event.at.isoformat(),
        "data": event.data,
    }
    return orjson.dumps(told, default=dict)


@routes.get(
    "",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
@allowed(Permission.JOBS_READ)
async def listen(
    request: Request, last_event_id: LastId = None, after: After = None, job_id: JobId = None
) -> StreamingResponse:
    """Events from now on, or from `Last-Event-ID` on. After an interruption the last seconds may come once more."""
    if last_event_id is not None and after is not None and last_event_id != after:
        raise InvalidInput("Last-Event-ID and after say different things; send one of them.", field="query.after")
    principal: Principal = request.state.principal
    seat = _seat(request, principal)
    try:
        said = "header.last-event-id" if last_event_id is not None else "query.after"
        stream = _Stream(request, principal, last_event_id or after, job_id, said)
        await stream.open()
    except BaseException:
        seat.leave()
        raise

    async def sent() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        try:
            async for batch in stream.batches():
                if not batch:
                    yield b": still here\n\n"
                for event in batch:
                    yield b"id: %s\nevent: job\ndata: %s\n\n" % (event.id.encode(), _plain(event))
        except DocmillError:
            # Not allowed any more, or the database is away: the client asks again, and hears why.
            return

    return Seated(sent(), seat=seat, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _seat(connection: HTTPConnection, principal: Principal) -> Seat:
    streams: Streams = connection.app.state.streams
    return streams.seat(principal.org_id)


@routes.websocket("/socket")
async def socket(websocket: WebSocket) -> None:
    """The same over a WebSocket: one JSON message for each event. `after` and `job_id` as for the other."""
    query = websocket.query_params
    seat = None
    try:
        try:
            principal = await admit(websocket, Permission.JOBS_READ)
            only({"after", "job_id"}, websocket)
            seat = _seat(websocket, principal)
            stream = _Stream(websocket, principal, query.get("after"), query.get("job_id"))
            await stream.open()
        except DocmillError as error:
            # Before it is accepted: the handshake is refused, with the same words as a request.
            await websocket.send_denial_response(answer_to(websocket.url.path, error))
            return
        await websocket.accept(subprotocol=_spoken(websocket))
        gone = asyncio.ensure_future(_until_gone(websocket.receive))
        told = asyncio.ensure_future(_tell(websocket, stream))
        await asyncio.wait({gone, told}, return_when=asyncio.FIRST_COMPLETED)
        for task in (gone, told):
            task.cancel()
        await asyncio.gather(gone, told, return_exceptions=True)
    finally:
        if seat is not None:
            seat.leave()


def _spoken(websocket: WebSocket) -> str | None:
    """What was offered is answered: browsers give up on a server that names none of the protocols that they named."""
    offered: Sequence[str] = websocket.scope.get("subprotocols", ())
    if "docmill" in offered:
        return "docmill"
    return next((each for each in offered if each.startswith(SPOKEN)), None)


async def _tell(websocket: WebSocket, stream: _Stream) -> None:
    try:
        async for batch in stream.batches():
            if not batch:
                await websocket.send_text('{"type":"heartbeat"}')
            for event in batch:
                await websocket.send_text(_plain(event).decode())
        await websocket.close(1001)
    except DocmillError as error:
        await websocket.close(4000 + status_of(error), error.code)
    except WebSocketDisconnect:
        pass


async def _until_gone(receive: Callable[[], object]) -> None:
    while True:
        message = await receive()  # type: ignore[misc]
        if message["type"] == "websocket.disconnect":
            return
