"""Watching a batch: a bar in a terminal, a line per change in a log, a stream of JSON for programs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from docmill.cli.batch_text import batch_record, details, duration, standing
from docmill.cli.job_text import percent
from docmill.cli.output import console, print_json_line, printable
from docmill.cli.watching import bar
from docmill.model.statuses import JobStatus

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.services.batch_views import BatchView

_FRAMES = 8
"""Redraws per second."""

Tell = Callable[["BatchView"], None]


def watch_batch(installation: "Installation", batch_id: str, *, as_json: bool) -> int:
    """Follow the batch to its end; 0 if all its jobs completed."""
    batches = installation.batches
    view = batches.get(batch_id)
    if not as_json:
        _note_idle(installation, view)
    with _telling(view, as_json=as_json) as tell:
        for seen in batches.watch(view.id):
            if seen is not None:
                view = seen
                tell(seen)
    good = view.status is JobStatus.COMPLETED
    if as_json:
        print_json_line({"type": "result", "ok": good, "batch": batch_record(view)})
    else:
        details(view)
    return 0 if good else 1


def _note_idle(installation: "Installation", view: "BatchView") -> None:
    from docmill.services.workers import alive_workers

    if view.finished_at is None and not alive_workers(installation.database):
        print("note: no worker is alive; start one with `docmill worker`.", file=sys.stderr)


@contextmanager
def _telling(view: "BatchView", *, as_json: bool) -> Iterator[Tell]:
    if as_json:
        yield lambda seen: print_json_line({"type": "batch", "batch": batch_record(seen)})
    elif sys.stderr.isatty():
        with _live(view) as tell:
            yield tell
    else:
        yield _print_line


def _print_line(view: "BatchView") -> None:
    clock = datetime.now().astimezone().strftime("%H:%M:%S")
    print(printable(f"{clock} {percent(view.progress)} {standing(view)}"), file=sys.stderr, flush=True)


@contextmanager
def _live(view: "BatchView") -> Iterator[Tell]:
    """A bar on stderr, redrawn while it changes, gone at the end."""
    from rich.live import Live

    shown = [view]
    target = console(sys.stderr)

    def tell(seen: "BatchView") -> None:
        shown[0] = seen

    with Live(
        get_renderable=lambda: drawing(shown[0], target.width),
        console=target,
        refresh_per_second=_FRAMES,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield tell


def drawing(view: "BatchView", width: int) -> Any:
    """The batch as rich draws it: a bar, and below it how the jobs stand."""
    from rich.console import Group
    from rich.text import Text

    head = Text.assemble(
        (bar(int(1000 * view.progress), 1000, min(40, width // 3)), "cyan"),
        f" {percent(view.progress)}  {view.finished:,} of {view.total:,} jobs  {duration(view)}",
        no_wrap=True,
        overflow="ellipsis",
    )
    below = f"{standing(view)}; {view.active:,} active of at most {view.limit:,}"
    return Group(head, Text(printable(below), no_wrap=True, overflow="ellipsis"))
