"""Parts of the installation are made once, whatever number of threads ask first."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

from docmill.bootstrap.once import made_once


class House:
    def __init__(self) -> None:
        self.built = 0
        self.both_inside = Barrier(2, timeout=0.2)

    @made_once
    def cellar(self) -> object:
        self.built += 1
        # If two could be in here, they would meet.
        with suppress(BrokenBarrierError):
            self.both_inside.wait()
        return object()

    @made_once
    def house(self) -> tuple[object]:
        return (self.cellar,)


def test_two_threads_get_the_same_part() -> None:
    house = House()
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: house.cellar, range(2))
    assert first is second
    assert house.built == 1


def test_a_part_is_made_of_parts() -> None:
    house = House()
    assert house.house == (house.cellar,)
