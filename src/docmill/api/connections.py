"""Connections that hold little of what was sent to them: bytes that nobody has asked for stay with the kernel.

The server's own protocol reads a quarter of a megabyte from each connection, whether or not anybody is ready for it: of
five hundred uploads that begin at once, a hundred megabytes. Here one buffer serves all connections, for a read is over
before the next begins; a request whose body nobody asks for holds what came with its headers, or else one read more;
and nothing more is read before what was read has been taken.
"""

import asyncio
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_ASKED = 1 << 14
"""Bytes of one read once the headers of a request are whole, until it is answered."""
_UNASKED = 1 << 12
"""Bytes of one read before: headers, and what of the body came with them."""


class _Frugal(HttpToolsProtocol, asyncio.BufferedProtocol):
    def __init__(self, room: memoryview, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._room = room

    def get_buffer(self, sizehint: int) -> memoryview:
        under_way = self.cycle is not None and not self.cycle.response_complete
        return self._room[: _ASKED if under_way else _UNASKED]

    def buffer_updated(self, nbytes: int) -> None:
        # Not copied: the parser hands on what it takes as bytes of their own.
        self.data_received(self._room[:nbytes])  # type: ignore[arg-type]

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        # Whoever asks for more resumes it. Once there is an answer nobody asks: the rest is read, and dropped.
        if self.cycle.body and not self.cycle.response_complete:
            self.flow.pause_reading()


def frugal() -> partial[_Frugal]:
    """Makes the connections of one server; another one, in another thread, has a buffer of its own."""
    return partial(_Frugal, memoryview(bytearray(_ASKED)))
