"""A stand-in for a system that hears of things by webhooks: a real HTTP server on loopback, answering as it is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from threading import Condition
from typing import Any

import orjson

from docmill.testing.loopback import LoopbackServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message as it came."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def told(self) -> dict[str, Any]:
        """What it says."""
        read: dict[str, Any] = orjson.loads(self.body)
        return read


Answer = tuple[int, Mapping[str, str]]
"""Status and headers."""


class Receiver(LoopbackServer):
    """Keeps every message; `answer` says what each is answered, and may block."""

    def __init__(self, answer: Callable[[Message], Answer | int] = lambda message: 204) -> None:
        self.answer = answer
        self.messages: list[Message] = []
        self._changed = Condition()
        super().__init__(_handler(self))

    @property
    def url(self) -> str:
        return f"{self.address}/hook"

    def wait_for(self, count: int, timeout: float = 30.0) -> list[Message]:
        """The first so many messages, once they have come."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.messages) >= count, timeout)
            assert came, f"{len(self.messages)} messages came in {timeout:g} s, not {count}"
            return self.messages[:count]

    def take(self, message: Message) -> Answer:
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()
        given = self.answer(message)
        return (given, {}) if isinstance(given, int) else given


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more = receiver.take(Message(headers=headers, body=body))
            self.send_response(status)
            for name, value in {**more, "content-length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Silent: what came is in `messages`."""

    return Handler
