"""The command line with a worker: jobs run, are watched, fail, are taken over and run again."""

import signal
from pathlib import Path

import pytest

from tests.acceptance.conftest import Worker
from tests.acceptance.mill import Mill


def test_submit_and_watch_follow_a_job_to_its_end(either: Mill, worker: Worker) -> None:
    worker(either)
    answer = either("jobs", "submit", "plain", "document:7", "--watch")
    assert answer.code == 0
    assert "status      COMPLETED (3 of 3 steps settled)" in answer.out
    assert "read COMPLETED" in answer.err
    assert "job COMPLETED" in answer.err
    assert "shaky READY (retry): Not yet. [retryable]" in answer.err


def test_watch_as_json_is_a_line_per_event_and_a_result(either: Mill, worker: Worker) -> None:
    job = either.submit("priced", "--metadata", "file:=true")
    with either.started("jobs", "watch", job, "--json") as watching:
        watching.says('"type":"job"')
        worker(either)
        answer = watching.end()
    assert (answer.code, answer.err) == (0, "")
    first, *events, result = answer.lines
    assert (first["type"], first["job"]["id"]) == ("job", job)
    assert {event["type"] for event in events} == {"event"}
    versions = [event["version"] for event in events]
    assert versions == sorted(set(versions))
    assert events[-1].keys() == {"type", "job_id", "version", "at", "job", "steps", "errors"}
    assert events[-1]["job"]["after"] == "COMPLETED"
    assert events[0]["steps"][0] == {
        "step_key": "read",
        "before": "READY",
        "after": "IN_PROGRESS",
        "reason": None,
    }
    assert (result["type"], result["ok"]) == ("result", True)
    steps = {step["step_key"]: step for step in result["jobs"][0]["steps"]}
    assert steps["price"]["result"] == {"price": 12}


@pytest.mark.parametrize(("template", "status"), [("half", "PARTIAL_SUCCESS"), ("failing", "FAILED")])
def test_a_failure_is_told_and_is_exit_code_1(mill: Mill, worker: Worker, template: str, status: str) -> None:
    worker(mill)
    answer = mill("jobs", "submit", template, "document:7", "--watch")
    assert answer.code == 1
    assert f"status      {status}" in answer.out
    assert "The page is blank; scan it again. [permanent]" in answer.out
    assert "Traceback" not in answer.err


def test_watching_many_ends_when_all_have(mill: Mill, worker: Worker) -> None:
    worker(mill)
    good = mill("jobs", "submit", "plain", "document:a", "--count", "5", "--json").data["job_ids"]
    bad = mill.submit("failing")
    answer = mill("jobs", "watch", *good, bad, good[0])
    assert answer.code == 1
    assert answer.out.count("COMPLETED") == 5
    assert answer.out.count("FAILED") == 1
    assert f"{bad} job FAILED" in answer.err or "FAILED" in mill("jobs", "show", bad).out


def test_watching_what_has_ended_tells_its_end_at_once(mill: Mill, worker: Worker) -> None:
    worker(mill)
    job = mill.submit("plain")
    assert mill("jobs", "watch", job).code == 0
    again = mill("jobs", "watch", job, "--json")
    assert again.code == 0
    assert [line["type"] for line in again.lines] == ["job", "result"]


def counted(mill: Mill) -> int:
    counter = Path(mill.environment["MILL_COUNTER"])
    return len(counter.read_text().splitlines()) if counter.exists() else 0


def test_retry_uses_what_was_paid_for_unless_told_otherwise(mill: Mill, worker: Worker) -> None:
    worker(mill)
    job = mill.submit("priced")
    assert mill("jobs", "watch", job).code == 0
    assert counted(mill) == 1
    assert mill("jobs", "retry", job, "--all", "--watch").code == 0
    assert mill("jobs", "retry", job, "--from", "price", "--watch").code == 0
    assert counted(mill) == 1
    assert mill("jobs", "retry", job, "--step", "read", "--watch").code == 0
    assert mill("jobs", "retry", job, "--step", "price", "--fresh", "--watch").code == 0
    assert counted(mill) == 2
    assert mill("jobs", "show", job, "--json").data["job"]["run"] == 5


def test_cancel_ends_a_running_job(either: Mill, worker: Worker) -> None:
    worker(either)
    job = either.submit("gated")
    with either.started("jobs", "watch", job) as watching:
        watching.says("gate IN_PROGRESS")
        assert either("jobs", "cancel", job).code == 0
        answer = watching.end()
    assert answer.code == 1
    assert "status      CANCELLED" in answer.out


def test_a_worker_drains_on_sigterm_and_the_next_one_goes_on(either: Mill, worker: Worker) -> None:
    impatient = either.having(DOCMILL_DRAIN_SECONDS="0.1")
    first = worker(impatient)
    job = either.submit("gated")
    with either.started("jobs", "watch", job) as watching:
        watching.says("gate IN_PROGRESS")
        first.signal(signal.SIGTERM)
        ended = first.end()
        assert (ended.code, ended.out) == (0, "")
        assert "SIGTERM: draining" in ended.err
        assert "stopped" in ended.err
        watching.says("gate READY (released)")
        Path(either.environment["MILL_GATE"]).touch()
        worker(either)
        assert watching.end().code == 0
    assert either("jobs", "show", job, "--json").data["job"]["steps"][0]["crashes"] == 0


def test_a_second_ctrl_c_ends_at_once_and_another_worker_takes_over(mill: Mill, worker: Worker) -> None:
    first = worker(mill)
    job = mill.submit("gated")
    with mill.started("jobs", "watch", job) as watching:
        watching.says("gate IN_PROGRESS")
        first.signal(signal.SIGINT)
        first.says("once more ends at once")
        first.signal(signal.SIGINT)
        assert first.end().code == -signal.SIGINT
        Path(mill.environment["MILL_GATE"]).touch()
        worker(mill)
        answer = watching.end()
    assert answer.code == 0
    assert mill("jobs", "show", job, "--json").data["job"]["steps"][0]["crashes"] == 1


def test_a_worker_serves_only_the_pools_it_is_given(mill: Mill) -> None:
    job = mill.submit("priced")
    with mill.started("worker", "--pool", "rule=3", "--json") as rules:
        rules.says('"ready"')
        with mill.started("jobs", "watch", job) as watching:
            watching.says("price READY")
            with mill.started("worker", "--pool", "ai=1", "--pool", "system=1", "--json") as others:
                assert watching.end().code == 0
                others.says('"ready"')
                others.signal(signal.SIGINT)
                ready, stopped = others.end().lines
        assert ready["pools"] == {"ai": 1, "system": 1}
        assert stopped == {"type": "stopped"}
