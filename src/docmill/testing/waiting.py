"""Waiting for something to become true, bounded by a deadline."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from docmill.model.errors import DocmillError

T = TypeVar("T")


class TimedOut(DocmillError):
    """What was waited for did not happen in time."""

    code = "timed_out"


def until(predicate: Callable[[], T], timeout: float = 10.0, *, interval: float = 0.01, what: str = "") -> T:
    """Call `predicate` until it returns something true, and return that.

    For conditions that announce nothing (a server's port, a row in a database). Where there is something to wait on, an
    event, a process, a socket, wait on that instead. Raises `TimedOut` after `timeout` seconds; the predicate is always
    asked once more at the deadline, so a slow machine is not failed for having been scheduled late.
    """
    deadline = time.monotonic() + timeout
    never = threading.Event()
    while True:
        late = time.monotonic() >= deadline
        if answer := predicate():
            return answer
        if late:
            name = what or getattr(predicate, "__qualname__", repr(predicate))
            raise TimedOut(f"waited {timeout:g} s in vain for: {name}")
        never.wait(interval)


async def until_true(predicate: Callable[[], object], *, interval: float = 0.02) -> None:
    """As `until`, on an event loop and without a deadline: for steps and models that a test holds at a gate.

    Whoever started the process bounds it, and what is cancelled leaves at once.
    """
    while not predicate():
        await asyncio.sleep(interval)
