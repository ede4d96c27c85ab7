"""An outside executor in plain Python, as a user would write one, and the callbacks it brings in by command."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.conftest import Worker
from tests.acceptance.mill import DOCMILL, Mill

EXECUTOR = Path(__file__).parents[2] / "examples/outside-executor"
SECRET = "whsec_ZG8gbm90IHVzZSB0aGlzIG9uZSwgbWFrZSB5b3VycyE="


@contextmanager
def executor(mill: Mill) -> Iterator[str]:
    """The example as a process of its own; its address."""
    command = [sys.executable, str(EXECUTOR / "executor.py"), "0", SECRET, str(DOCMILL), "callback"]
    environment = mill.environment | {"DOCMILL_EXECUTORS__COUNTER__URL": "http://127.0.0.1/"}
    environment["DOCMILL_EXECUTORS__COUNTER__SECRET"] = SECRET
    process = subprocess.Popen(
        command, env=environment, cwd=mill.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def counting(either: Mill) -> Iterator[Mill]:
    """An installation that knows the executor."""
    with executor(either) as url:
        mill = either.having(DOCMILL_EXECUTORS__COUNTER__URL=url, DOCMILL_EXECUTORS__COUNTER__SECRET=SECRET)
        template = (EXECUTOR / "reading.yaml").read_text().replace("guest", "document")
        assert mill("templates", "import", mill.write("reading.yaml", template)).code == 0
        yield mill


def test_the_example_executor_does_the_steps_of_its_template(counting: Mill, worker: Worker) -> None:
    worker(counting)
    answer = counting("jobs", "submit", "reading", "document:7", "--watch", "--json")
    assert answer.code == 0, answer
    job = answer.lines[-1]["jobs"][0]
    steps = {step["step_key"]: step for step in job["steps"]}
    assert steps["count"]["result"]["message"].endswith("characters")
    assert steps["count_again"]["result"]["model"] == {"model": "careful"}
    found = counting("jobs", "callbacks", job["id"], "--json").data["callbacks"]
    assert [(row["step_key"], row["status"], row["outcome"]) for row in found] == [
        ("count", "COMPLETED", "applied"),
        ("count_again", "COMPLETED", "applied"),
    ]
    assert all(row["message_id"].startswith("msg_") for row in found)
    shown = counting("jobs", "callbacks", job["id"])
    assert (shown.code, "count_again" in shown.out, "applied" in shown.out) == (0, True, True)


def test_a_callback_to_nobody_is_told_so(mill: Mill) -> None:
    body = {"jobId": "nobody", "stepKey": "a", "status": "COMPLETED", "token": "x"}
    answer = mill("callback", "-", given=json.dumps(body))
    assert (answer.code, answer.err) == (1, "")
    assert answer.data == {
        "success": False,
        "skipped": False,
        "outcome": "unknown",
        "message": "There is no such job; check jobId",
        "code": "unknown_job",
    }


@pytest.mark.parametrize("arguments", [("callback",), ("callback", "-"), ("callback", "nonsense.json")])
def test_nonsense_is_answered_as_an_executor_would_be(mill: Mill, arguments: tuple[str, ...]) -> None:
    mill.write("nonsense.json", "{")
    answer = mill(*arguments, given="{")
    assert (answer.code, answer.data["success"], answer.data["code"]) == (1, False, "callback_invalid")


@pytest.mark.parametrize("arguments", [("nowhere.json",), ("-", "--header", "nonsense")])
def test_wrong_use_is_exit_code_2(mill: Mill, arguments: tuple[str, ...]) -> None:
    answer = mill("callback", *arguments, "--json", given="{}")
    assert (answer.code, answer.error["code"]) == (2, "wrong_use")


def test_a_job_without_callbacks_has_none(mill: Mill) -> None:
    job = mill.submit("plain")
    assert mill("jobs", "callbacks", job, "--json").data == {"callbacks": []}
    assert "No callback has come" in mill("jobs", "callbacks", job).err
    assert mill("jobs", "callbacks", "nobody").code == 2
