"""Whoever waits for documents sees that something happens, before any of them is done."""

from io import StringIO
from typing import Any

import pytest

from docmill.cli import process_text
from docmill.cli.process_text import progress_shown
from docmill.model.documents import DocumentStatus
from docmill.services.processing import Progress


def said(monkeypatch: pytest.MonkeyPatch, *looks: tuple[float, Progress], quiet: bool = False) -> list[str]:
    """What stands in a pipe after looks at these moments."""
    pipe, moment = StringIO(), [0.0]
    monkeypatch.setattr("sys.stderr", pipe)
    monkeypatch.setattr(process_text, "monotonic", lambda: moment[0])
    with progress_shown(quiet=quiet) as watch:
        for at, progress in looks:
            moment[0] = at
            watch(progress)
    return pipe.getvalue().splitlines()


def progress(done: int, at: str | None) -> Any:
    return Progress(total=60, ended={DocumentStatus.COMPLETED: done}, at=at)


def test_a_run_in_a_pipe_is_never_silent_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [(1.0, progress(0, "a.jpg")), (10.0, progress(0, "a.jpg")), (12.0, progress(1, "b.jpg"))]
    looks += [(13.0, progress(6, "g.jpg")), (21.0, progress(7, "h.jpg")), (23.0, progress(60, None))]
    assert said(monkeypatch, *looks) == [
        "0 of 60 documents done, at a.jpg",
        "6 of 60 documents done, at g.jpg",
        "60 of 60 documents done",
    ]


def test_whoever_wants_json_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, (30.0, progress(0, "a.jpg")), quiet=True) == []


def test_the_line_in_a_terminal_names_the_file_it_is_at() -> None:
    assert process_text._line(progress(0, "inbox/a.jpg"), 80).plain.endswith(" 0/60 at a.jpg")
