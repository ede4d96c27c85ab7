"""What many send at once stays with the kernel until somebody asks for it."""

import asyncio
import socket
from threading import Thread
from typing import Any

import httpx
from fastapi import FastAPI, Request

from docmill.api.serving import address_of, listen, server
from docmill.testing.waiting import until

PART = 50_000
CONNECTIONS = 20


def test_a_connection_holds_little_of_a_body_that_nobody_has_asked_for() -> None:
    api, running = FastAPI(), None
    asked = asyncio.Event()
    pieces: list[int] = []

    @api.post("/body")
    async def body(request: Request) -> int:
        await asked.wait()
        found = [piece async for piece in request.stream()]
        pieces.extend(map(len, found))
        return sum(map(len, found))

    @api.get("/held")
    async def held() -> list[int]:
        cycles = [getattr(each, "cycle", None) for each in running.server_state.connections]  # type: ignore[attr-defined]
        return [len(cycle.body) for cycle in cycles if cycle is not None and cycle.scope["path"] == "/body"]

    @api.post("/ask")
    async def ask() -> None:
        asked.set()

    listening = listen("127.0.0.1", 0)
    running = server(api)
    thread = Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until(lambda: running.started, 60, what="the server")
    wires = []
    try:
        head = b"POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (2 * PART)
        for _ in range(CONNECTIONS):
            wires.append(socket.create_connection(listening.getsockname()))
            wires[-1].sendall(head + b"a" * PART)
        found: list[Any] = []

        def all_there() -> bool:
            found[:] = httpx.get(f"{address_of(listening)}/held").json()
            return len(found) == CONNECTIONS

        until(all_there, 60, what="all requests")
        # Once more: what lay ready has had its chance to be read.
        assert all_there()
        assert max(found) <= 4096
        httpx.post(f"{address_of(listening)}/ask")
        for wire in wires:
            wire.sendall(b"a" * PART)
        for wire in wires:
            answer = b""
            while piece := wire.recv(4096):
                answer += piece
            assert answer.endswith(str(2 * PART).encode())
        assert sum(pieces) == 2 * PART * CONNECTIONS
        assert max(pieces) <= 1 << 14
    finally:
        for wire in wires:
            wire.close()
        running.should_exit = True
        thread.join(30)
        listening.close()
