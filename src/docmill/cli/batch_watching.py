"""Watching a batch: a bar in a terminal, a line per change in a log, a stream of JSON for programs."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from docmill.bootstrap.clock import this_moment
from docmill.cli.batch_text import batch_record, details, duration, standing
from docmill.cli.job_text import percent
from docmill.cli.live import bar, drawn, note_idle
from docmill.cli.output import print_json_line, printable
from docmill.model.statuses import JobStatus

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.services.batch_views import BatchView

Tell = Callable[["BatchView"], None]


def watch_batch(installation: "Installation", batch_id: str, *, as_json: bool) -> int:
    """Follow the batch to its end; 0 if all its jobs completed."""
    batches = installation.batches
    view = batches.get(batch_id)
    if not as_json and view.finished_at is None:
        note_idle(installation)
    with _telling(view, as_json=as_json) as tell:
        for seen in batches.watch(view.id):
            if seen is not None:
                view = seen
                tell(seen)
    good = view.status is JobStatus.COMPLETED
    if as_json:
        print_json_line({"type": "result", "ok": good, "batch": batch_record(view)})
    else:
        details(view, this_moment())
    return 0 if good else 1


@contextmanager
def _telling(view: "BatchView", *, as_json: bool) -> Iterator[Tell]:
    if as_json:
        yield lambda seen: print_json_line({"type": "batch", "batch": batch_record(seen)})
    elif sys.stderr.isatty():
        shown = deque([view], maxlen=1)
        with drawn(lambda console: drawing(shown[0], console.width, this_moment())):
            yield shown.append
    else:
        yield lambda seen: _print_line(seen, this_moment())


def _print_line(view: "BatchView", now: datetime) -> None:
    clock = now.astimezone().strftime("%H:%M:%S")
    print(printable(f"{clock} {percent(view.progress)} {standing(view)}"), file=sys.stderr, flush=True)


def drawing(view: "BatchView", width: int, now: datetime) -> Any:
    """The batch as rich draws it: a bar, and below it how the jobs stand."""
    from rich.console import Group
    from rich.text import Text

    head = Text.assemble(
        (bar(int(1000 * view.progress), 1000, min(40, width // 3)), "cyan"),
        f" {percent(view.progress)}  {view.finished:,} of {view.total:,} jobs  {duration(view, now)}",
        no_wrap=True,
        overflow="ellipsis",
    )
    below = f"{standing(view)}; {view.active:,} active of at most {view.limit:,}"
    return Group(head, Text(printable(below), no_wrap=True, overflow="ellipsis"))
