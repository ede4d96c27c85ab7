"""Threads that read. There are a few of them for all steps, so one that hangs is given up and replaced."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic
from typing import Any, Generic, TypeVar

from docmill.model.errors import RetryableError

T = TypeVar("T")
log = logging.getLogger("docmill.engine")

_LOOK = 1.0
"""Seconds between looks at reads that take long."""


class Read(Generic[T]):
    """One piece of work, from the queue to its end."""

    def __init__(self, work: "Callable[[Read[T]], T]", future: "asyncio.Future[T]") -> None:
        self.work = work
        self.future = future
        self._began_at: float | None = None
        self._ended = self._given_up = False
        self._lock = Lock()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """The time inside counts. What is spent waiting for a database that is away does not."""
        self._began_at = monotonic()
        try:
            yield
        finally:
            self._began_at = None

    def excuse(self) -> None:
        """Count from now on, if it counts at all."""
        if self._began_at is not None:
            self._began_at = monotonic()

    def end(self) -> bool:
        """The thread is through with it; False if it was given up meanwhile."""
        with self._lock:
            self._ended = True
            return not self._given_up

    def give_up(self, patience: float) -> bool:
        """Whether it takes too long and is now nobody's business any more."""
        began_at = self._began_at
        if began_at is None or monotonic() - began_at < patience:
            return False
        with self._lock:
            self._given_up = not self._ended
            return self._given_up


class Readers:
    """A number of threads and the queue they share. `run` and `close` are called on the loop."""

    def __init__(self, count: int, *, patience: float, database_answers: Callable[[], bool]) -> None:
        self._count = count
        self._patience = patience
        self._database_answers = database_answers
        self._queue: SimpleQueue[Read[Any] | None] = SimpleQueue()
        self._open: set[Read[Any]] = set()
        self._looking: asyncio.TimerHandle | None = None
        for _ in range(count):
            self._start_thread()

    def _start_thread(self) -> None:
        # Daemons: one that hangs must not hold up the end of the process.
        Thread(target=self._serve, name="docmill-reader", daemon=True).start()

    async def run(self, work: Callable[[Read[T]], T]) -> T:
        """The value of the work, done in one of the threads; RetryableError when it takes too long."""
        loop = asyncio.get_running_loop()
        read: Read[T] = Read(work, loop.create_future())
        self._open.add(read)
        self._queue.put(read)
        if self._looking is None:
            self._looking = loop.call_later(_LOOK, self._look)
        try:
            return await read.future
        finally:
            # A step that was cancelled leaves its read behind; if that hangs it must still be replaced.
            if not read.future.cancelled():
                self._open.discard(read)

    def _look(self) -> None:
        """All that are open, once in a while: a timer for each read would cost more than most reads."""
        answers = self._database_answers()
        for read in list(self._open):
            if not answers:
                # An outage must not cost a step one of its attempts.
                read.excuse()
            elif read.give_up(self._patience):
                self._open.discard(read)
                log.error("a read has taken more than %.0f s; its thread is given up", self._patience)
                self._start_thread()
                if not read.future.done():
                    read.future.set_exception(
                        RetryableError(
                            f"Loading took more than {self._patience:g} s and was given up. Look at the entity loader: "
                            "it may only read from the database it is given."
                        )
                    )
        self._looking = asyncio.get_running_loop().call_later(_LOOK, self._look) if self._open else None

    def _serve(self) -> None:
        while (read := self._queue.get()) is not None:
            ours = True
            try:
                value = read.work(read)
            except BaseException as error:
                # StopIteration is the one exception that a future refuses to carry.
                said = RuntimeError(f"StopIteration: {error}") if isinstance(error, StopIteration) else error
                ours = read.end()
                self._tell(read, _fail, said)
            else:
                ours = read.end()
                self._tell(read, _succeed, value)
            if not ours:
                return  # Another thread has taken our place.

    def _tell(self, read: Read[Any], how: Callable[[Any, Any], None], what: Any) -> None:
        def told() -> None:
            self._open.discard(read)
            if not read.future.done():
                how(read.future, what)

        with suppress(RuntimeError):  # The loop has ended: nobody waits any more.
            read.future.get_loop().call_soon_threadsafe(told)

    def close(self) -> None:
        """Let the threads end, each when its work is done."""
        if self._looking is not None:
            self._looking.cancel()
        for _ in range(self._count):
            self._queue.put(None)


def _succeed(future: "asyncio.Future[Any]", value: Any) -> None:
    future.set_result(value)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    future.set_exception(error)
