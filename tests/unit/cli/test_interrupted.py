"""Whoever interrupts `docmill process` hears how far it came, and that nothing is lost."""

from pathlib import Path
from typing import Any

import pytest

from docmill.cli.process import process
from docmill.model.documents import DocumentStatus
from docmill.services.processing import Processing, Progress


def test_an_interrupted_run_says_how_far_it_came_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: Processing, run_id: str, inputs: Any, *_: object, watch: Any, **__: object) -> None:
        watch(Progress(total=len(inputs), ended={DocumentStatus.COMPLETED: 1}))
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Processing, "run", interrupted)
    for name in ("a.pdf", "b.pdf"):
        (tmp_path / name).write_bytes(b"%PDF-1.7")
    with pytest.raises(KeyboardInterrupt):
        process(("a.pdf", "b.pdf"))
    told = capsys.readouterr().err
    assert "Ctrl-C once more ends at once" in told
    assert "Interrupted: 1 of 2 documents done. The same command goes on" in told
