"""The API on a socket."""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

import uvicorn
from fastapi import FastAPI

from docmill.api.connections import frugal

_BACKLOG = 2048
_GRACE = 10
"""Seconds that requests under way get when the server ends."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Of TCP by name: asyncio turns Nagle's algorithm off only for those, else 40 ms a request."""
    family, kind, proto, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, proto)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def address_of(listening: socket.socket) -> str:
    """Where it can be reached."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: FastAPI, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Streams end by themselves now; nobody waits for them.
        self._app.state.stopping = True
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As the original, but a signal that was obeyed is not raised once more: what is open is closed after us."""
        if current_thread() is not main_thread():
            yield
            return
        kept = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)


def server(app: FastAPI, *, on_ready: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """A server for the application; `run` it with the sockets of `listen`, from the main thread."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        http=frugal(),  # type: ignore[arg-type]  # makes connections as the class would
        ws="websockets-sansio",
        proxy_headers=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=_GRACE,
        lifespan="on",
    )
    return _Server(config, app, on_ready)
