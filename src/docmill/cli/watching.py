"""Watching jobs: a live board in a terminal, a line per change in a log, a stream of JSON for programs."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from docmill.bootstrap.clock import this_moment
from docmill.cli.board import Board, job_change, step_changes
from docmill.cli.job_events import event_record
from docmill.cli.job_text import details, error_text, job_record, job_table, percent
from docmill.cli.live import bar, drawn, note_idle
from docmill.cli.output import counted, print_json_line, printable, styled, table
from docmill.model.statuses import JobStatus, StepStatus

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.services.following import JobEvent
    from docmill.services.jobs import JobView

_ROOMY = 100
"""Columns from which a board of many jobs also shows which steps run."""


class Progress(Protocol):
    """Something that shows events as they happen."""

    def begin(self, views: "Sequence[JobView]") -> None:
        """Show how the jobs stand before the first event."""

    def hear(self, event: "JobEvent") -> None: ...


def watch_jobs(
    installation: "Installation", job_ids: Sequence[str], *, as_json: bool, after: Mapping[str, int] | None = None
) -> int:
    """Follow the jobs to their end; 0 if all completed.

    `after` says which events the person knows of; without it, how things stand is told first and only news follow.
    """
    jobs = installation.jobs
    views = [jobs.get(job_id) for job_id in dict.fromkeys(job_ids)]
    versions = {view.summary.id: view.version for view in views}
    if not as_json and any(not view.summary.status.finished for view in views):
        note_idle(installation)
    with _progress(views, as_json=as_json) as progress:
        if after is None:
            progress.begin(views)
        for event in jobs.watch(versions if after is None else after):
            if event is not None:
                progress.hear(event)
    ended = [jobs.get(job_id) for job_id in versions]
    good = all(view.summary.status is JobStatus.COMPLETED for view in ended)
    if as_json:
        print_json_line({"type": "result", "ok": good, "jobs": [job_record(view) for view in ended]})
    elif len(ended) == 1:
        details(ended[0], this_moment())
    else:
        job_table([view.summary for view in ended], this_moment())
    return 0 if good else 1


@contextmanager
def _progress(views: "Sequence[JobView]", *, as_json: bool) -> Iterator[Progress]:
    if as_json:
        yield _JsonLines()
    elif sys.stderr.isatty():
        board = Board(views)
        with drawn(lambda console: _drawing(board, console.height, console.width)):
            yield board
    else:
        yield _Lines(name_jobs=len(views) > 1)


class _JsonLines:
    """Each event as a line of JSON on stdout."""

    def begin(self, views: "Sequence[JobView]") -> None:
        for view in views:
            print_json_line({"type": "job", "job": job_record(view)})

    def hear(self, event: "JobEvent") -> None:
        print_json_line(event_record(event))


class _Lines:
    """Each change as a line on stderr, for logs and pipes."""

    def __init__(self, *, name_jobs: bool) -> None:
        self._name_jobs = name_jobs

    def begin(self, views: "Sequence[JobView]") -> None:
        prefix = this_moment().astimezone().strftime("%H:%M:%S")
        for view in views:
            name = f"{prefix} {view.summary.id}" if self._name_jobs else prefix
            for step in view.steps:
                if step.status is not StepStatus.PENDING:
                    self._print(f"{name} {step.step_key} {step.status}")
            self._print(f"{name} job {view.summary.status}{_what_for(view.summary.status, view.summary.id)}")

    def hear(self, event: "JobEvent") -> None:
        prefix = event.at.astimezone().strftime("%H:%M:%S")
        if self._name_jobs:
            prefix += f" {event.job_id}"
        errors = event.data.get("errors", {})
        for step in step_changes(event):
            reason = f" ({step.reason})" if step.reason else ""
            why = f": {error_text(errors[step.step_key])}" if step.step_key in errors else ""
            self._print(f"{prefix} {step.step_key} {step.after}{reason}{why}")
        if change := job_change(event):
            self._print(f"{prefix} job {change[1]}{_what_for(change[1], event.job_id)}")

    @staticmethod
    def _print(line: str) -> None:
        print(printable(line), file=sys.stderr, flush=True)


def _what_for(status: str, job_id: str) -> str:
    """Whoever watches a job that waits for a person would wait for ever without knowing it."""
    return f"; `docmill jobs show {job_id}` says for what" if status == JobStatus.WAITING else ""


def _drawing(board: Board, height: int, width: int) -> Any:
    jobs = list(board.jobs.values())
    return _one_job(jobs[0], height, width) if len(jobs) == 1 else _many_jobs(board, height, width)


def _one_job(job: Any, height: int, width: int) -> Any:
    from rich.console import Group
    from rich.text import Text

    head = Text.assemble(
        (bar(job.settled, len(job.steps), min(30, width // 3)), "cyan"),
        f" {percent(job.settled / len(job.steps))} ",
        styled(job.status),
        f" {printable(job.template)} {printable(job.entity)}",
        overflow="ellipsis",
        no_wrap=True,
    )
    keys = list(job.steps)
    room = max(3, height - 4)
    # Too tall for the screen: begin shortly before the first step that is not settled.
    first = next((n for n, key in enumerate(keys) if not job.steps[key].settled), 0)
    start = max(0, min(first - 1, len(keys) - room))
    rows = [
        (key, styled(job.steps[key]), error_text(job.errors[key]) if key in job.errors else "")
        for key in keys[start : start + room]
    ]
    drawn_steps = table(("STEP", "STATUS", ""), rows, give_way=("",))
    if job.status is not JobStatus.WAITING:
        return Group(head, drawn_steps)
    hint = Text(f"`docmill jobs show {job.id}` says what it waits for", style="bright_black")
    return Group(head, drawn_steps, hint)


def _many_jobs(board: Board, height: int, width: int) -> Any:
    from rich.console import Group
    from rich.text import Text

    counts = board.counts()
    finished = sum(number for status, number in counts.items() if status.finished)
    head = Text(f"{finished} of {counted(len(board.jobs), 'job')} finished: ", no_wrap=True, overflow="ellipsis")
    for status in JobStatus:
        if counts[status]:
            head.append_text(styled(status)).append(f" {counts[status]}  ")
    shown = board.liveliest(max(3, height - 5))
    roomy = width >= _ROOMY
    rows: list[list[Any]] = []
    for job in shown:
        row = [job.id, bar(job.settled, len(job.steps), 10), styled(job.status), job.entity]
        rows.append([*row, ", ".join(job.running)] if roomy else row)
    heads = ["JOB", "", "STATUS", "ENTITY", *(["RUNNING"] if roomy else [])]
    parts = [head, table(heads, rows, give_way=("ENTITY", "RUNNING"))]
    if len(shown) < len(board.jobs):
        parts.append(Text(f"… and {counted(len(board.jobs) - len(shown), 'job')} more", style="bright_black"))
    return Group(*parts)
