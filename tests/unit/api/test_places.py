"""Few uploads are read at once, and whoever sends slowly keeps nobody waiting."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from docmill.api.places import Place, Places

PATIENCE = 30


class Sender:
    """Somebody who uploads, as fast as the test says."""

    def __init__(self) -> None:
        self._sent: asyncio.Queue[Message] = asyncio.Queue()
        self.request = Request({"type": "http", "headers": []}, self._sent.get)

    def send(self, body: bytes, *, more: bool = True) -> None:
        self._sent.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def go(self) -> None:
        self._sent.put_nowait({"type": "http.disconnect"})

    async def taken(self, place: Place) -> bytes:
        return b"".join([piece async for piece in place.body(self.request)])


def test_no_more_uploads_are_read_at_once_than_there_are_places() -> None:
    places = Places(3)
    reading, most = 0, 0

    async def upload() -> bytes:
        nonlocal reading, most
        sender = Sender()
        async with places.one() as place:
            reading += 1
            most = max(most, reading)
            sender.send(b"abc")
            # Lets all others run as far as they can.
            asyncio.get_running_loop().call_soon(sender.send, b"def")
            asyncio.get_running_loop().call_later(0.01, lambda: sender.send(b"", more=False))
            found = await sender.taken(place)
            reading -= 1
            return found

    async def all_of_them() -> list[bytes]:
        return await asyncio.wait_for(asyncio.gather(*(upload() for _ in range(20))), PATIENCE)

    assert asyncio.run(all_of_them()) == [b"abcdef"] * 20
    assert most == 3


def test_who_sends_nothing_for_a_while_gives_the_place_to_the_next_and_goes_on_later() -> None:
    async def tale() -> None:
        places, slow, quick = Places(1, turn=0.05), Sender(), Sender()
        slow.send(b"slow")
        quick.send(b"quick", more=False)
        begun = asyncio.Event()

        async def crawl() -> bytes:
            async with places.one() as place:
                begun.set()
                return await slow.taken(place)

        crawling = asyncio.ensure_future(crawl())
        await begun.wait()
        async with places.one() as place:
            assert await quick.taken(place) == b"quick"
            slow.send(b"ly", more=False)
        assert await crawling == b"slowly"
        # All places are free again, and no more than there were.
        async with places.one():
            waiting = asyncio.ensure_future(places.one().__aenter__())
            await asyncio.wait({waiting}, timeout=0.05)
            assert not waiting.done()
            waiting.cancel()

    asyncio.run(asyncio.wait_for(tale(), PATIENCE))


def test_who_goes_away_leaves_the_place_whether_it_was_held_or_not() -> None:
    async def tale() -> None:
        places = Places(1, turn=0.05)

        async def upload(after: float) -> None:
            sender = Sender()
            async with places.one() as place:
                asyncio.get_running_loop().call_later(after, sender.go)
                await sender.taken(place)

        for after in (0.0, 0.1):
            with pytest.raises(ClientDisconnect):
                await upload(after)
        async with places.one():
            pass

    asyncio.run(asyncio.wait_for(tale(), PATIENCE))
