"""What a person hears who presses Ctrl-C at a command that works: the first ends it in order, the second at once."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from docmill.cli.errors import EXIT_INTERRUPTED
from docmill.cli.output import counted

_LINE_ANEW = "\r\x1b[2K\x1b[?25h"
"""In a terminal: away with the half drawn line of progress, and the cursor back, which it hid."""


def tell_waiting(busy: int) -> None:
    """One more word while a drain takes its time: silence looks like a command that hangs."""
    if busy:
        print(f"Still finishing: {counted(busy, 'document')} at work.", file=sys.stderr, flush=True)


@contextmanager
def second_ends_at_once(told: str, *, before: Callable[[], object]) -> Iterator[None]:
    """Within the block the first Ctrl-C is a KeyboardInterrupt, as ever; from then on another ends the process.

    Nothing is closed in order then: threads that go on would find it closed under them, and say so at length. What is
    lost is what any kill loses: the work on pages under way. `before` is called before, in the signal handler.
    """

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, second)
        raise KeyboardInterrupt

    def second(number: int, frame: FrameType | None) -> None:
        before()
        # Past `sys.stderr`, in the middle of a write to which the signal may have come.
        os.write(2, f"{_LINE_ANEW if os.isatty(2) else ''}{told}\n".encode())
        os._exit(EXIT_INTERRUPTED)

    found = signal.getsignal(signal.SIGINT)
    if found is not signal.default_int_handler:
        # Somebody wants it otherwise: a shell that runs this in the background has it ignored.
        yield
        return
    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, found)
