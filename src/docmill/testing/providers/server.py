"""One HTTP server on loopback that stands in for every provider, each under its own paths."""

import json
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Self, assert_never

from docmill.ai.providers.access import Access, Kind
from docmill.testing.providers.anthropic import Anthropic
from docmill.testing.providers.exchange import (
    Asked,
    CutsOff,
    Dialect,
    Fails,
    Fault,
    Garbles,
    Hangs,
    Misunderstood,
    Reaction,
    Refuses,
    Response,
    Says,
    Truncates,
)
from docmill.testing.providers.gemini import Gemini
from docmill.testing.providers.openai import Chat, Responses

KEY = "sk-the-right-key-0123456789"
_DIALECTS: tuple[Dialect, ...] = (Gemini(), Responses(), Chat(), Anthropic())
_LONGEST = 64 << 20


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """Clients come many at a time; the usual five would turn some away."""


class ProviderServer:
    """Answers by a script: a function from what is asked to a reaction. Change `script` at any time."""

    def __init__(self, script: Callable[[Asked], Reaction], *, key: str = KEY) -> None:
        self.script = script
        self.key = key
        self.asked: list[Asked] = []
        """What came in and was understood, in order."""
        self.refused: list[str] = []
        """Why requests were not understood."""
        self._lock = Lock()
        self._over = Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), name="providers", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def base_url(self, kind: Kind) -> str:
        """Where the stand-in for this kind is."""
        root = f"http://127.0.0.1:{self._server.server_address[1]}"
        return root if kind in (Kind.GOOGLE, Kind.ANTHROPIC) else f"{root}/v1"

    def access(self, kind: Kind, *, key: str | None = None) -> Access:
        """All that a client needs to come here."""
        return Access(name=str(kind), kind=kind, key=key or self.key, base_url=self.base_url(kind))

    def environment(self) -> dict[str, str]:
        """Settings by which an installation takes its providers from here."""
        found: dict[str, str] = {}
        for kind in Kind:
            prefix = f"DOCMILL_AI__PROVIDERS__{kind}__"
            found |= {f"{prefix}BASE_URL": self.base_url(kind), f"{prefix}KEY": self.key}
        return found

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """One request."""
        raw = handler.rfile.read(min(int(handler.headers.get("content-length", 0)), _LONGEST))
        path = handler.path.partition("?")[0]
        dialect = next((found for found in _DIALECTS if found.takes(path)), None)
        if dialect is None:
            self._note(f"no provider has the path {path}")
            _send(handler, Response(status=404, body={"error": {"message": f"Unknown path {path}"}}))
            return
        headers = {name.casefold(): value for name, value in handler.headers.items()}
        given = dialect.key(headers)
        if given != self.key:
            fault = dialect.error(Fault.KEY)
            # OpenAI repeats the key that it does not like.
            text = json.dumps(fault.body).replace("{key}", given or "")
            _send(handler, Response(status=fault.status, body=json.loads(text)))
            return
        try:
            asked = dialect.read(path, headers, json.loads(raw))
        except (Misunderstood, KeyError, ValueError, TypeError) as error:
            self._note(f"{type(error).__name__}: {error}")
            _send(handler, dialect.error(Fault.BAD_REQUEST, str(error)))
            return
        with self._lock:
            self.asked.append(asked)
        self._react(handler, dialect, asked, self.script(asked))

    def _react(self, handler: BaseHTTPRequestHandler, dialect: Dialect, asked: Asked, reaction: Reaction) -> None:
        match reaction:
            case Says() | Truncates() | Refuses():
                _send(handler, dialect.answer(asked, reaction))
            case Fails():
                failure = dialect.error(reaction.fault)
                headers = {} if reaction.retry_after is None else dialect.slow_down(reaction.retry_after)
                _send(handler, Response(status=failure.status, body=failure.body, headers=headers))
            case Hangs():
                self._over.wait()
                handler.close_connection = True
            case CutsOff():
                _begin(handler, 200, 1000)
                handler.wfile.write(b'{"id": "')
                handler.wfile.flush()
                handler.connection.shutdown(socket.SHUT_RDWR)
                handler.close_connection = True
            case Garbles():
                data = reaction.body.encode()
                _begin(handler, 200, len(data))
                handler.wfile.write(data)
            case _:
                assert_never(reaction)

    def _note(self, why: str) -> None:
        with self._lock:
            self.refused.append(why)


def _send(handler: BaseHTTPRequestHandler, response: Response) -> None:
    data = json.dumps(response.body).encode()
    _begin(handler, response.status, len(data), **response.headers)
    handler.wfile.write(data)


def _begin(handler: BaseHTTPRequestHandler, status: int, length: int, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"content-type": "application/json", "content-length": str(length), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()


def _handler(server: ProviderServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body leave together: apart, the kernel would hold the second back for 40 ms.
        wbufsize = 65536

        def do_POST(self) -> None:
            server.handle(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    return Handler
