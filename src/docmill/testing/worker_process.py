"""One worker as a process of its own, told everything through the environment.

It dies with the test that started it, and tells the witness when it is ready.
"""

import asyncio
import logging
import os
import signal
from threading import Thread

from docmill.bootstrap import open_app
from docmill.settings import load_settings
from docmill.testing.nursery import die_with_parent
from docmill.testing.witness import Witness


async def _serve() -> None:
    with open_app(load_settings()) as app:
        worker = app.worker()
        witness = Witness.of_environment()

        def announce() -> None:
            worker.ready.wait()
            witness.note("ready")

        Thread(target=announce, daemon=True).start()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


def main() -> None:
    """Serve until SIGTERM."""
    die_with_parent(os.getppid())
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {os.getpid()} %(name)s %(message)s")
    asyncio.run(_serve())


if __name__ == "__main__":
    main()
