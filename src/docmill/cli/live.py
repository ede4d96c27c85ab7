"""What all watching has in common: a drawing on stderr that keeps itself up to date, and a word when nothing moves."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from docmill.cli.output import console

if TYPE_CHECKING:
    from rich.console import Console

    from docmill.bootstrap import App as Installation

_FRAMES = 8
"""Redraws per second."""


@contextmanager
def drawn(draw: "Callable[[Console], Any]") -> Iterator[None]:
    """What `draw` gives, on stderr: redrawn while the block runs, gone at its end."""
    from rich.live import Live

    target = console(sys.stderr)
    with Live(
        get_renderable=lambda: draw(target),
        console=target,
        refresh_per_second=_FRAMES,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield


def bar(done: int, total: int, width: int) -> str:
    """Progress as a line of this width."""
    filled = width * done // max(total, 1)
    return "━" * filled + "╺" * (width - filled)


def note_idle(installation: "Installation") -> None:
    """Say so if no worker is there to do what is being waited for."""
    from docmill.services.workers import alive_workers

    if not alive_workers(installation.database):
        print("note: no worker is alive; start one with `docmill worker`.", file=sys.stderr)
