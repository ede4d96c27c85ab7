"""`docmill jobs` without a worker: submit, list, show, cancel, and what is refused."""

import uuid

import pytest

from docmill.model.ids import new_id
from tests.acceptance.mill import Mill

UNKNOWN = "01a1e0e4-86a1-7f22-b51d-7d07fc8a27df"
SUMMARY = {
    "id",
    "template",
    "template_version",
    "entity_type",
    "entity_id",
    "title",
    "status",
    "progress",
    "run",
    "priority",
    "created_at",
    "started_at",
    "finished_at",
}
JOB = SUMMARY | {"version", "metadata", "file_type", "created_by", "parent_job_id", "batch_id", "children", "steps"}
STEP = {
    "step_key",
    "display_name",
    "kind",
    "pool",
    "execution_group",
    "optional",
    "status",
    "attempt",
    "max_attempts",
    "crashes",
    "reason",
    "result",
    "error",
    "due_at",
    "started_at",
    "finished_at",
    "model",
    "items",
}


def test_submit_prints_the_id_and_show_gives_everything_back(either: Mill) -> None:
    submitted = either(
        *("jobs", "submit", "plain", "document:in/voice 7:b", "--title", "März", "--priority", "-5"),
        *("--metadata", '{"a": {"b": [1, null]}}', "--metadata", "note=x=y", "--metadata", "n:=3"),
        *("--file-type", "application/pdf"),
    )
    assert (submitted.code, submitted.err) == (0, "")
    job_id = str(uuid.UUID(submitted.out.strip()))
    job = either("jobs", "show", job_id.upper(), "--json").data["job"]
    assert job.keys() == JOB | {"waits_for"}
    assert {step.keys() == STEP for step in job["steps"]} == {True}
    expected = {
        "id": job_id,
        "template": "plain",
        "template_version": 1,
        "entity_type": "document",
        "entity_id": "in/voice 7:b",
        "title": "März",
        "priority": -5,
        "metadata": {"a": {"b": [1, None]}, "note": "x=y", "n": 3},
        "file_type": "application/pdf",
        "status": "PENDING",
        "progress": 0.0,
        "run": 1,
    }
    assert {name: job[name] for name in expected} == expected
    assert [step["status"] for step in job["steps"]] == ["READY", "PENDING", "PENDING"]


def test_show_is_readable(mill: Mill) -> None:
    job = mill.submit("plain", "--title", "Hello")
    answer = mill("jobs", "show", job)
    assert (answer.code, answer.err) == (0, "")
    assert f"job         {job}" in answer.out
    assert "status      PENDING (0 of 3 steps settled)" in answer.out
    assert "title       Hello" in answer.out
    assert "STEP    STATUS   TRIES  TOOK  NOTE" in answer.out


def test_list_shows_the_newest_first_and_filters(either: Mill) -> None:
    assert either("jobs", "list", "--json").data == {"jobs": []}
    submitted = either("jobs", "submit", "plain", "document:1", "document:2", "--json").data
    assert submitted.keys() == {"template", "job_ids", "new"}
    assert submitted["new"] == 2
    last = either.submit("half")
    assert either("jobs", "cancel", last).code == 0
    listed = either("jobs", "list", "--json").data["jobs"]
    assert listed[0].keys() == SUMMARY
    assert listed[0]["id"] == last
    assert {job["id"] for job in listed[1:]} == set(submitted["job_ids"])
    cancelled = either("jobs", "list", "--status", "cancelled", "--json").data["jobs"]
    assert [job["id"] for job in cancelled] == [last]
    newest = either("jobs", "list", "--limit", "1")
    assert newest.out.splitlines()[0].split() == ["JOB", "STATUS", "TEMPLATE", "ENTITY", "CREATED", "TOOK"]
    assert newest.out.splitlines()[1].startswith(f"{last}  CANCELLED  half")
    assert "--limit" in newest.err


def test_an_empty_list_says_so_on_stderr_only(mill: Mill) -> None:
    answer = mill("jobs", "list")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err == "No jobs yet. `docmill jobs submit` starts one.\n"


def test_submitting_the_same_id_twice_is_submitting_once(mill: Mill) -> None:
    own = new_id()
    first = mill("jobs", "submit", "plain", "document:1", "--id", own)
    second = mill("jobs", "submit", "plain", "document:1", "--id", own)
    assert first.out == second.out == f"{own}\n"
    assert first.err == ""
    assert "there already" in second.err
    assert len(mill("jobs", "list", "--json").data["jobs"]) == 1


def test_count_submits_many(mill: Mill) -> None:
    answer = mill("jobs", "submit", "plain", "document:a", "--count", "3", "--json")
    assert answer.data["new"] == 3
    entities = {job["entity_id"] for job in mill("jobs", "list", "--json").data["jobs"]}
    assert entities == {"a-1", "a-2", "a-3"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("document",), "'document' does not name an entity; write TYPE:ID, such as document:42."),
        (("document:",), "write TYPE:ID"),
        ((":7",), "write TYPE:ID"),
        (("website:7",), "The template 'plain' processes document, not website"),
        (("document:7", "--priority", "101"), "The priority 101 is not between -100 and 100."),
        (("document:7", "--priority", "99999999999"), "is not between"),
        (("document:7", "--metadata", "{"), "--metadata is not a JSON object"),
        (("document:7", "--metadata", '{"a": NaN}'), "--metadata is not a JSON object"),
        (("document:7", "--metadata", '{"a": "\\u0000"}'), "NUL"),
        (("document:7", "--metadata", "lonely"), "neither a JSON object, key=text nor key:=JSON"),
        (("document:7", "--metadata", "n:=three"), "write n=…"),
        (("document:7", "--id", "7"), "'7' is not a job id; write a UUID"),
        (("document:7", "document:8", "--id", UNKNOWN), "--id names one job"),
        (("document:7", "--count", "0"), "--count"),
        (("document:7", "--title", "x" * 1001), "1,000 are allowed"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_bad_submission_is_wrong_use_and_leaves_nothing(mill: Mill, arguments: tuple[str, ...], says: str) -> None:
    answer = mill("jobs", "submit", "plain", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert says in answer.err
    assert answer.err.count("\n") == 1


def test_submitting_by_file_says_how(mill: Mill) -> None:
    answer = mill("jobs", "submit", "plain.yaml", "document:1")
    assert answer.code == 2
    assert "docmill templates import plain.yaml" in answer.err


@pytest.mark.parametrize("command", ["show", "watch", "cancel", "retry", "events"])
@pytest.mark.parametrize("job", ["nonsense", UNKNOWN])
def test_an_unknown_job_is_wrong_use(mill: Mill, command: str, job: str) -> None:
    answer = mill("jobs", command, job)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"error: There is no job {job}. `docmill jobs list` shows those there are.\n"


def test_cancel_ends_a_job_once(either: Mill) -> None:
    job = either.submit("plain")
    cancelled = either("jobs", "cancel", job, "--json")
    assert cancelled.code == 0
    assert cancelled.data["job"]["status"] == "CANCELLED"
    again = either("jobs", "cancel", job)
    assert (again.code, again.out) == (1, "")
    assert again.err.startswith(f"error: Job {job} (CANCELLED) is already finished")
    assert either("jobs", "cancel", job, "--json").error["code"] == "conflict"


def test_retry_is_refused_while_the_job_runs_and_for_steps_it_does_not_have(mill: Mill) -> None:
    job = mill.submit("plain")
    early = mill("jobs", "retry", job)
    assert (early.code, early.out) == (1, "")
    assert "is still running; cancel it first or wait for its end" in early.err
    assert mill("jobs", "cancel", job).code == 0
    for option in ("--step", "--from"):
        unknown = mill("jobs", "retry", job, option, "nothing")
        assert (unknown.code, unknown.out) == (2, "")
        assert "The job has no step nothing; its steps are read, shaky, finish." in unknown.err
    assert mill("jobs", "retry", job, "--all", "--from", "read").code == 2
    both = mill("jobs", "retry", job, "--step", "read", "--from", "read")
    assert both.code == 2
    again = mill("jobs", "retry", job)
    assert (again.code, again.out) == (0, f"Job {job} runs again (3 steps).\n")
