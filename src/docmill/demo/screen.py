"""How the demo looks: a live grid on a terminal, lines of text elsewhere."""

from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from docmill.db.tables.workers import WorkerStatus
from docmill.demo.invoices import PAGES
from docmill.demo.tale import Line, Tale
from docmill.demo.watch import JobNow, Snapshot, StepNow, WorkerNow
from docmill.model.statuses import JobStatus, StepStatus
from docmill.templates.plan import Plan

TITLE = "twelve invoices, three workers, one of them about to be killed"
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WORKER_STYLES = {"A": "cyan", "B": "magenta", "C": "blue"}
_TONES = {"plain": "", "good": "green", "bad": "bold red", "warn": "yellow", "quiet": "bright_black"}
_JOB_STYLES = {
    JobStatus.COMPLETED: "green",
    JobStatus.PARTIAL_SUCCESS: "yellow",
    JobStatus.FAILED: "bold red",
    JobStatus.CANCELLED: "red",
}
_LOG_LINES = 9
_AIR = 5
"""Blank lines and legend."""
_LEGEND = Text("✓ done  – skipped  ✗ failed  ↻ retried  ↪ taken over  A⠋ 1/3 runs in worker A", "bright_black")


class Screen(Protocol):
    """Where the demo shows itself while it runs."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def show(self, snapshot: Snapshot, tale: Tale, new: list[Line]) -> None: ...


def open_screen(console: Console, plan: Plan) -> Screen:
    """The screen that fits: live where somebody watches."""
    return LiveScreen(console, plan) if console.is_terminal and not console.is_dumb_terminal else PlainScreen(console)


class PlainScreen:
    """A line for everything worth a line; for logs and for pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        self._console.print(f"Docmill demo: {TITLE}\n", soft_wrap=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    def show(self, snapshot: Snapshot, tale: Tale, new: list[Line]) -> None:
        for line in new:
            self._console.print(_sentence(line, tale), soft_wrap=True)


class LiveScreen:
    """A grid of invoices and steps that fills up, the workers below it, and the last lines of the tale."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._plan = plan
        self._frame = 0
        self._last = Snapshot()
        self._live = Live(console=console, auto_refresh=False, transient=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, snapshot: Snapshot, tale: Tale, new: list[Line]) -> None:
        if snapshot == self._last and not any(worker.running for worker in snapshot.workers):
            return
        self._last = snapshot
        self._frame += 1
        spin = _SPINNER[self._frame % len(_SPINNER)]
        # On a low terminal the tale matters more than air and legend.
        rows = len(snapshot.jobs) + 4
        low = self._console.height < rows + _AIR + _LOG_LINES
        air = [] if low else [Text()]
        space = self._console.height - rows - (0 if low else _AIR)
        parts: list[RenderableType] = [
            *air,
            Text.assemble(("Docmill  ", "bold"), (TITLE, "bright_black")),
            *air,
            _grid(snapshot, self._plan, spin),
            *air,
            *([] if low else [_LEGEND]),
            _workers(snapshot.workers),
            *air,
            *_log(tale, self._console.width - 2, None if snapshot.finished else max(1, min(_LOG_LINES, space - 1))),
        ]
        self._live.update(Padding(Group(*parts), (0, 1)), refresh=True)


def _grid(snapshot: Snapshot, plan: Plan, spin: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("invoice", width=14, no_wrap=True)
    before = 0
    for step in plan.steps:
        # Steps of one group stand under one number: they run side by side.
        number = f"{step.execution_group}" if step.execution_group != before else ""
        before = step.execution_group
        heading = Text.assemble((number, "bright_black"), "\n", step.step_key)
        table.add_column(heading, justify="center", no_wrap=True, min_width=4)
    table.add_column("job", no_wrap=True, width=15)
    for job in snapshot.jobs:
        cells = [_cell(job.steps.get(step.step_key), step.step_key, spin) for step in plan.steps]
        table.add_row(job.invoice, *cells, _job(job))
    return table


def _cell(step: StepNow | None, key: str, spin: str) -> Text:
    if step is None:
        return Text("·", "bright_black")
    match step.status:
        case StepStatus.COMPLETED:
            return Text("✓" + "↻" * bool(step.failures) + "↪" * bool(step.crashes), "green")
        case StepStatus.FAILED:
            return Text("✗", "bold red")
        case StepStatus.SKIPPED:
            return Text("–", "bright_black")
        case StepStatus.IN_PROGRESS:
            pages = f" {step.parts}/{PAGES}" if key == "extract" else ""
            return Text(f"{step.worker}{spin}{pages}", _WORKER_STYLES.get(step.worker or "", ""))
        case StepStatus.READY if step.failures:
            return Text("↻", "yellow")
        case StepStatus.READY if step.crashes:
            return Text("↺", "yellow")
        case _:
            return Text("◦", "bright_black")


def _job(job: JobNow) -> Text:
    if job.status.finished:
        return Text(job.status.value, _JOB_STYLES[job.status])
    return Text(job.status.value.lower().replace("_", " "), "bright_black")


def _workers(workers: tuple[WorkerNow, ...]) -> Text:
    line = Text("workers  ", "bold")
    if not workers:
        line.append("starting", "bright_black")
    for worker in workers:
        style = _WORKER_STYLES.get(worker.name, "")
        if worker.status is WorkerStatus.DEAD:
            line.append(f"{worker.name} ✖ killed", "bold red")
        else:
            line.append(f"{worker.name} ", f"bold {style}")
            line.append("●" * worker.running or "idle", style)
        line.append("   ")
    return line


def _log(tale: Tale, width: int, limit: int | None) -> Iterator[Text]:
    """The last lines, or all of them."""
    lines = [line for line in tale.lines if not line.minor]
    shown = lines[-limit:] if limit else lines
    for line in shown:
        sentence = _sentence(line, tale)
        sentence.truncate(width, overflow="ellipsis")
        yield sentence
    yield from (Text() for _ in range((limit or 0) - len(shown)))


def _sentence(line: Line, tale: Tale) -> Text:
    return Text.assemble(
        (f"{tale.seconds(line.at):5.1f} s  ", "bright_black"),
        (f"{line.sign} ", _TONES[line.tone]),
        (f"{line.subject:<13} ", "bold"),
        (line.text, _TONES[line.tone]),
    )
