"""The office outside, a process of its own: posts what it is told to post, and answers by callback. Twice, to be sure.

It gets the secret it shares with the installation on stdin and prints its address; it ends when stdin closes. It
needs no server: it brings its callbacks to the installation that its environment describes.
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

from docmill.testing.hub import Callback, Hub, completed
from docmill.webhooks.signatures import read_secret

SENT = 2
"""How often every callback is sent: it must count once."""
_SECONDS = 0.4
"""How long the office takes to post."""


def post(message: Mapping[str, Any]) -> Sequence[Callback]:
    """The callbacks for a message."""
    Event().wait(_SECONDS)
    result = {
        "reference": f"ERP-{message['entityId'][:2]}",
        "amount": message["entity"]["total"],
        "process": os.getpid(),
    }
    steps = message["metadata"]["steps"]
    return [{**completed(message, step), "resultData": result} for step in steps for _ in range(SENT)]


class Delivery:
    """The way to the installation, opened when it is first needed: the office is there before the installation is."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._callbacks: Any = None

    def __call__(self, body: bytes, headers: Mapping[str, str]) -> object:
        from docmill.bootstrap import open_app
        from docmill.bootstrap.clock import this_moment
        from docmill.settings import load_settings

        if self._callbacks is None:
            self._callbacks = self._stack.enter_context(open_app(load_settings())).callbacks
        return self._callbacks.receive(body, now=this_moment(), headers=headers)


def main() -> None:
    """Serve until stdin closes."""
    # Ctrl-C goes to every process of the terminal; the demo decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    (directory,) = sys.argv[1:]
    secret = os.read(0, 1000).decode().strip()
    with ExitStack() as stack:
        hub = Hub(Path(directory), deliver=Delivery(stack), script=post, key=read_secret(secret))
        print(hub.url, flush=True)
        os.read(0, 1)
        hub.close()


if __name__ == "__main__":
    main()
