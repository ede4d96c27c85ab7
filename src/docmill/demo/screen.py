"""How the demo looks: a live grid on a terminal, lines of text elsewhere."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from docmill.db.tables.workers import WorkerStatus
from docmill.demo.killing import READING
from docmill.demo.papers import PAGES
from docmill.demo.tale import Line, Tale
from docmill.demo.watch import JobNow, Snapshot, StepNow
from docmill.model.statuses import JobStatus, StepKind, StepStatus
from docmill.templates.catalogue import FINISH_TYPE
from docmill.templates.plan import Plan, PlanStep

TITLE = "ten papers become transactions; one worker will be killed"
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WORKER_STYLES = {"A": "cyan", "B": "magenta", "C": "blue"}
_TONES = {"plain": "", "good": "green", "bad": "bold red", "warn": "yellow", "quiet": "bright_black"}
_TONES |= {"ask": "bold yellow", "typed": "bold cyan"}
_JOB_STYLES = {
    JobStatus.COMPLETED: "green",
    JobStatus.PARTIAL_SUCCESS: "yellow",
    JobStatus.FAILED: "bold red",
    JobStatus.CANCELLED: "red",
}
_LOG_LINES = 11
_NARROWEST = 5
_PAGES_WIDE = 6
"""A worker, its spinner and the pages."""
_AIR = 5
"""Blank lines and legend."""
_LEGEND = Text("✓ done  – skipped  ✗ failed  ↻ retried  ↪ taken over  ? asks a person  … asked outside", "bright_black")


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
    """A grid of papers and steps that fills up, the workers below it, and the last lines of the tale."""

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
        if snapshot == self._last and not new and not any(worker.running for worker in snapshot.workers):
            return
        self._last = snapshot
        self._frame += 1
        spin = _SPINNER[self._frame % len(_SPINNER)]
        size = (self._console.width, self._console.height)
        self._live.update(picture(snapshot, tale, self._plan, size=size, spin=spin), refresh=True)


def picture(snapshot: Snapshot, tale: Tale, plan: Plan, *, size: tuple[int, int], spin: str) -> RenderableType:
    """All there is to see, in so many columns and rows; only the last one, which stays, may be higher."""
    width, height = size
    # On a low terminal the tale matters more than air and legend.
    rows = len(snapshot.jobs) + 4
    low = height < rows + _AIR + _LOG_LINES
    air = [] if low else [Text()]
    space = height - rows - (0 if low else _AIR)
    parts: list[RenderableType] = [
        *air,
        Text.assemble(("Docmill  ", "bold"), (TITLE, "bright_black")),
        *air,
        _grid(snapshot, plan, spin),
        *air,
        *([] if low else [_LEGEND]),
        _processes(snapshot, plan),
        *air,
        *_log(tale, width - 2, None if snapshot.finished else max(1, min(_LOG_LINES, space - 1))),
    ]
    return Padding(Group(*parts), (0, 1))


def _grid(snapshot: Snapshot, plan: Plan, spin: str) -> Table:
    # Without the finish step: its end is that of the job.
    steps = [step for step in plan.steps if step.step_type != FINISH_TYPE]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("\npaper", width=12, no_wrap=True)
    for step in steps:
        width = max(_NARROWEST, len(step.display_name), _PAGES_WIDE if step.step_key == READING else 0)
        group = _group_line([other for other in steps if other.execution_group == step.execution_group], step, width)
        heading = Text.assemble((group, "bright_black"), "\n", step.display_name.center(width))
        table.add_column(heading, justify="center", no_wrap=True, width=width)
    table.add_column("\njob", no_wrap=True, width=15)
    for job in snapshot.jobs:
        cells = [_cell(job.steps.get(step.step_key), step, spin) for step in steps]
        table.add_row(job.paper, *cells, _job(job))
    return table


def _group_line(group: Sequence[PlanStep], step: PlanStep, width: int) -> str:
    """The number of the group, and a bracket over steps that run side by side."""
    number = str(step.execution_group)
    if len(group) == 1:
        return number.center(width)
    if step is group[0]:
        return f"╭ {number} ".ljust(width, "─")
    return "─" * (width - 1) + ("╮" if step is group[-1] else "─")


def _cell(step: StepNow | None, planned: PlanStep, spin: str) -> Text:
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
            pages = f" {step.parts}/{PAGES}" if planned.step_key == READING else ""
            return Text(f"{step.worker}{spin}{pages}", _WORKER_STYLES.get(step.worker or "", ""))
        case StepStatus.WAITING:
            outside = planned.kind is StepKind.EXTERNAL
            return Text("…", "bold blue") if outside else Text("?", "bold yellow")
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


def _processes(snapshot: Snapshot, plan: Plan) -> Text:
    """The workers with what each runs, and the office outside with what it was asked to do."""
    line = Text("workers  ", "bold")
    if not snapshot.workers:
        line.append("starting", "bright_black")
        return line
    for worker in snapshot.workers:
        style = _WORKER_STYLES.get(worker.name, "")
        if worker.status is WorkerStatus.DEAD:
            line.append(f"{worker.name} ✖ killed", "bold red")
        else:
            line.append(f"{worker.name} ", f"bold {style}")
            line.append("●" * worker.running or "idle", style)
        line.append("   ")
    outside = {step.step_key for step in plan.steps if step.kind is StepKind.EXTERNAL}
    asked = sum(
        step.status is StepStatus.WAITING for job in snapshot.jobs for key, step in job.steps.items() if key in outside
    )
    line.append("outside  ", "bold")
    line.append("office ", "bold blue")
    line.append("…" * asked or "idle", "blue")
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
    if not line.subject:
        # A command and what it said: as in a shell, from the left.
        return Text(f"{line.sign} {line.text}".lstrip(), _TONES[line.tone])
    return Text.assemble(
        (f"{tale.seconds(line.at):5.1f} s  ", "bright_black"),
        (f"{line.sign} ", _TONES[line.tone]),
        (f"{line.subject:<12} ", "bold"),
        (line.text, _TONES[line.tone]),
    )
