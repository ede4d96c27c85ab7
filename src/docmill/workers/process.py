"""One worker in this process: signals in, an orderly end out."""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from types import FrameType

from docmill.engine.worker import Worker

log = logging.getLogger("docmill.worker")

_PATIENCE = 3.0
"""Seconds a drain waits before it says what for, and before it says so again."""


def serve(worker: Worker, *, database: str, on_ready: Callable[[], None] = lambda: None) -> None:
    """Run until SIGTERM or SIGINT, then drain. Must be called from the main thread."""
    pools = ", ".join(f"{use.name} {use.capacity}" for use in worker.use())
    log.info("database %s", database)
    log.info("pools: %s", pools)
    # A daemon: should the worker fail before it is ready, nobody waits for this.
    Thread(target=_announce, args=(worker, on_ready), name="docmill-ready", daemon=True).start()
    asyncio.run(_serve(worker))
    log.info("stopped")


def _announce(worker: Worker, on_ready: Callable[[], None]) -> None:
    worker.ready.wait()
    on_ready()


async def _serve(worker: Worker) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, worker, loop, number)
    # No task in between: a signal is handled at the first await in `run`, by when `stop` has something to stop.
    await worker.run()


def _stop(worker: Worker, loop: asyncio.AbstractEventLoop, number: signal.Signals) -> None:
    again = "; once more ends at once" if number is signal.SIGINT else ""
    log.info("%s: draining%s", number.name, again)
    if number is signal.SIGINT:
        loop.remove_signal_handler(signal.SIGINT)
        # Not Python's own handler, which would wait for the loop: the kernel's, which waits for nobody.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    worker.stop()


class Alongside:
    """A worker that runs in a thread of this process, beside whatever else it does."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="docmill-worker", daemon=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._worker.run())
        except BaseException as error:
            self._failure = error

    def check(self) -> None:
        """Raise what ended the worker, should it have ended: nobody else may be there to do the work."""
        if not self._thread.is_alive() and self._failure is not None:
            raise self._failure

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self, waiting: Callable[[int], None] = lambda busy: None) -> None:
        """Drain, and wait for the end; `waiting` hears now and then how many steps are still at work.

        One that never began has nothing to end: an interrupt may come that early.
        """
        if self._thread.ident is None:
            return
        self._worker.stop()
        self._thread.join(_PATIENCE)
        while self._thread.is_alive():
            waiting(sum(use.busy for use in self._worker.use()))
            self._thread.join(_PATIENCE)


@contextmanager
def alongside(worker: Worker, *, waiting: Callable[[int], None] = lambda busy: None) -> Iterator[Alongside]:
    """Work while the block runs. SIGTERM ends the block as Ctrl-C does: what is running is finished or given back.

    `waiting` is told how many steps a drain still waits for.
    """
    running = Alongside(worker)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        running.start()
        yield running
    finally:
        signal.signal(signal.SIGTERM, before)
        running.stop(waiting)
    running.check()


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Whoever handles Ctrl-C counts this as the first one.
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(number, frame)
    raise KeyboardInterrupt
