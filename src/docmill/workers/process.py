"""One worker in this process: signals in, an orderly end out."""

import asyncio
import logging
import signal
from collections.abc import Callable
from threading import Thread

from docmill.engine.worker import Worker

log = logging.getLogger("docmill.worker")


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
