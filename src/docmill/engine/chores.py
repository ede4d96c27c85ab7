"""What a worker looks after besides its steps, on a thread of its own: a slow bucket must not hold up the sweeper."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Condition, Thread
from typing import Protocol, runtime_checkable

log = logging.getLogger("docmill.engine")

Chore = Callable[[datetime], object]
"""Called after every sweep with the database's time. Harmless when several workers do it at once, or when cut off."""


@runtime_checkable
class Closing(Protocol):
    """A chore that leaves something running, which ends with the worker."""

    def close(self) -> None: ...


_FAREWELL = 5.0
"""Seconds that a worker that ends waits for a chore under way."""


class Chores:
    """Does the chores one after the other whenever it is asked to; asked while at it, once more afterwards."""

    def __init__(self, chores: Sequence[Chore]) -> None:
        self._chores = chores
        self._asked: datetime | None = None
        self._wake = Condition()
        self._stopping = False
        self._thread = Thread(target=self._run, name="docmill-chores", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, now: datetime) -> None:
        """Do them at this time of the database."""
        with self._wake:
            self._asked = now
            self._wake.notify()

    def close(self) -> None:
        """End after the chore under way; one that takes long is left to itself."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(_FAREWELL)
        for chore in self._chores:
            if isinstance(chore, Closing):
                chore.close()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._stopping or self._asked is not None)
                if self._stopping or self._asked is None:
                    return
                now, self._asked = self._asked, None
            for chore in self._chores:
                if self._stopping:
                    return
                try:
                    chore(now)
                except Exception as error:
                    # It comes up again; the others and the steps must not suffer for it.
                    log.warning("a chore failed: %s", error)
