"""A small TCP proxy whose connections a test can cut, stall, or leave half open."""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Event, Thread
from typing import Any

from docmill.testing.servers import HOST


class Proxy:
    """Listens on a loopback port of its own and forwards to another, on a thread with an event loop of its own."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._ready = Event()
        self.port = 0
        self.seen = 0
        """Connections so far."""
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *exc: object) -> None:
        self._do(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def drop(self) -> None:
        """Cut every connection, both ways, with whatever was on its way."""
        self._do(self._drop)

    def stall(self) -> None:
        """Let nothing through, in either direction, until `flow`; connections stay open."""
        self._do(self._stop_flow)

    def flow(self) -> None:
        """Let everything through again."""
        self._do(self._start_flow)

    def half_open(self) -> None:
        """Hang up on the server and tell the client nothing: stalled until it is cut, as behind a dying router."""
        self._do(self._hang_up)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, HOST, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._flowing.set()
        self._ready.set()
        self._loop.run_forever()
        server.close()

    def _do(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(10)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen += 1
        try:
            there, back = await asyncio.open_connection(HOST, self._target)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, back)
        self._pairs.add(pair)
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        except asyncio.CancelledError:
            pass  # The proxy closes; asyncio would call that an error of this connection.
        finally:
            for end in pair:
                end.transport.abort()
            self._pairs.discard(pair)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        await self._flowing.wait()
        sink.transport.abort()

    async def _drop(self) -> None:
        for pair in list(self._pairs):
            for end in pair:
                end.transport.abort()

    async def _stop_flow(self) -> None:
        self._flowing.clear()

    async def _start_flow(self) -> None:
        self._flowing.set()

    async def _hang_up(self) -> None:
        self._flowing.clear()
        for _, back in list(self._pairs):
            back.transport.abort()

    async def _close(self) -> None:
        self._flowing.set()
        await self._drop()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)
