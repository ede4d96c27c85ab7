"""The demo's screen fits the terminals that people have."""

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from docmill.bootstrap import catalogue_of, load_registry
from docmill.db.tables.workers import WorkerStatus
from docmill.demo.installation import PLUGINS, compiled_template
from docmill.demo.papers import PAPERS
from docmill.demo.screen import open_screen, picture
from docmill.demo.tale import Line, Tale
from docmill.demo.watch import JobNow, Snapshot, StepNow, WorkerNow
from docmill.model.ids import new_id
from docmill.model.statuses import JobStatus, StepStatus

NOW = datetime(2026, 1, 31, tzinfo=UTC)
PLAN = compiled_template(catalogue_of(load_registry(PLUGINS))).plan
COMMAND = f"docmill issues resolve {new_id()} --set total=119"


def busy_snapshot() -> Snapshot:
    """Everything under way at once: nothing on the screen is ever wider."""
    step = StepNow(status=StepStatus.IN_PROGRESS, worker="A", failures=1, crashes=1, parts=2)
    jobs = tuple(
        JobNow(id="", paper=paper.name, status=status, steps={item.step_key: step for item in PLAN.steps})
        for paper in PAPERS
        for status in [JobStatus.IN_PROGRESS if paper.number > 1 else JobStatus.PARTIAL_SUCCESS]
    )
    workers = tuple(WorkerNow(name=name, pid=1, status=WorkerStatus.ALIVE, running=8) for name in "ABC")
    return Snapshot(jobs=jobs, workers=workers)


def long_tale() -> Tale:
    tale = Tale(plan=PLAN, began=NOW)
    tale.lines = [
        Line(at=NOW + timedelta(seconds=n), tone="bad", sign="✗", subject=PAPERS[0].name, text="a long story " * 20)
        for n in range(30)
    ]
    tale.lines.append(Line(at=NOW, tone="typed", sign="$", subject="", text=COMMAND))
    return tale


def rendered(columns: int, rows: int) -> list[str]:
    console = Console(width=columns, height=rows, color_system=None)
    with console.capture() as capture:
        console.print(picture(busy_snapshot(), long_tale(), PLAN, size=(columns, rows), spin="⠋"))
    return capture.get().splitlines()


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (200, 60)])
def test_grid_workers_and_tale_fit_the_terminal(size: tuple[int, int]) -> None:
    lines = rendered(*size)
    assert len(lines) <= size[1]
    for paper in PAPERS:
        # One row each: nothing was wrapped or left out.
        (row,) = [line for line in lines if line.startswith(f" {paper.name} ")]
        assert row.rstrip().endswith(("in progress", "PARTIAL_SUCCESS"))
        assert row.count("A⠋") == len(PLAN.steps) - 1


def test_the_command_of_the_person_is_shown_whole_even_on_a_narrow_terminal() -> None:
    assert f"$ {COMMAND}" in [line.strip() for line in rendered(80, 24)]


def test_a_pipe_gets_every_line_once_and_no_control_codes() -> None:
    console = Console(force_terminal=False, width=80)
    tale = long_tale()
    with console.capture() as capture, open_screen(console, PLAN) as screen:
        screen.show(busy_snapshot(), tale, tale.lines[:3])
        screen.show(busy_snapshot(), tale, [])
        screen.show(busy_snapshot(), tale, tale.lines[-1:])
    told = capture.get()
    assert told.count("✗ 01 Aurora AG") == 3
    assert told.splitlines().count(f"$ {COMMAND}") == 1
    assert "\x1b" not in told
