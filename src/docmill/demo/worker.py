"""One worker process of the demo. It ends on SIGTERM and when the pipe to the demo closes: none is left behind."""

import asyncio
import logging
import os
import signal
from threading import Thread

from docmill.bootstrap import open_app
from docmill.engine.worker import Worker
from docmill.settings import load_settings


def main() -> None:
    """Serve until told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    with open_app(load_settings()) as app:
        asyncio.run(_serve(app.worker()))


async def _serve(worker: Worker) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, worker.stop)
    # Ctrl-C goes to every process of the terminal; the demo decides what it means.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    Thread(target=_watch_parent, args=(worker,), name="demo-parent", daemon=True).start()
    await worker.run()


def _watch_parent(worker: Worker) -> None:
    # Not through sys.stdin: a thread waiting in its lock would abort the interpreter's own end.
    os.read(0, 1)
    worker.ready.wait()
    worker.stop()


if __name__ == "__main__":
    main()
