"""`make demo` keeps what it shows: run as a user runs it, judged by its own summary and by what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from docmill.testing.waiting import until

CLAIMS = ["nothing_lost", "groups", "condition", "switched_model", "raised_tokens", "optional", "issue", "callback"]
CLAIMS += ["takeover", "checkpoints", "paid_once", "exactly_once"]
COMMAND = [sys.executable, "-m", "docmill.demo", "workflow", "--json"]


def environment(tmp: Path) -> dict[str, str]:
    """A user's environment with settings of their own, none of which may reach the demo."""
    return {
        **os.environ,
        "TMPDIR": str(tmp),
        "DOCMILL_DATABASE_URL": "postgresql://nowhere.invalid/never",
        "TERM": "dumb",
    }


DOCUMENT_CLAIMS = ["every_file", "invoice", "receipt_scan", "e_invoice", "duplicate", "named_error", "outputs", "query"]


def test_sample_documents_become_data_and_nothing_is_left_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "docmill.demo", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(tmp_path), timeout=240)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert {claim["name"]: claim["kept"] for claim in summary["claims"]} == dict.fromkeys(DOCUMENT_CLAIMS, True)
    assert "$ docmill process invoice.pdf" in done.stderr
    assert not demo_processes(tmp_path)
    assert not list(tmp_path.glob("docmill-demo-*"))


def demo_processes(tmp: Path) -> list[psutil.Process]:
    """Processes whose installation lies below `tmp`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("DOCMILL_HOME", "").startswith(str(tmp)):
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


def test_the_demo_keeps_its_claims_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=environment(tmp_path), timeout=240)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert {claim["name"]: claim["kept"] for claim in summary["claims"]} == dict.fromkeys(CLAIMS, True)
    assert summary["jobs"] == {"COMPLETED": 9, "PARTIAL_SUCCESS": 1}
    assert summary["retries"] == 3
    assert summary["taken_over"] >= 1
    assert 0 <= summary["given_back_s"] <= summary["takeover_s"]
    # One call for each page and question, for each failed attempt, and at most one for each step of the killed worker.
    asked = 10 * 3 + 10 + 10 + 10 + 9
    assert asked + 3 <= summary["model_calls"] <= asked + 3 + summary["taken_over"]
    assert summary["dollars"] > 0
    assert {booking["paper"][:2]: booking["cents"] for booking in summary["bookings"]}["07"] == 11_900
    (command,) = summary["commands"]
    assert command.endswith(" --set total=119")
    told = done.stderr.splitlines()
    assert f"$ {command}" in told
    assert f"Issue {command.split()[3]} is resolved." in done.stderr
    for promise in ("SIGKILL", "again with careful-2", "again with 520 tokens", "budget failed (optional)"):
        assert any(promise in line for line in told), promise
    assert f"process {summary['office_pid']} outside called back" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert demo_processes(tmp_path) == []


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_a_demo_that_is_interrupted_leaves_no_process_running(tmp_path: Path, with_signal: signal.Signals) -> None:
    process = subprocess.Popen(COMMAND, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(tmp_path))
    try:
        until(lambda: len(demo_processes(tmp_path)) >= 4, timeout=60, what="office and workers to start")
        process.send_signal(with_signal)
        code = process.wait(60)
    finally:
        process.kill()
        process.wait()
    until(lambda: not demo_processes(tmp_path), timeout=60, what="them to end")
    if with_signal is not signal.SIGKILL:
        assert code == 130
        assert list(tmp_path.iterdir()) == []


def test_a_folder_to_keep_must_be_empty(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    done = subprocess.run([*COMMAND, "--keep", str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_demo_out_of_time_says_what_was_open(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--timeout", "0"], capture_output=True, text=True, env=environment(tmp_path), timeout=60
    )
    assert done.returncode == 1
    assert "Out of time" in done.stderr
    assert list(tmp_path.iterdir()) == []
