"""The command line looks after jobs: submits once, finds, tells, retries and prunes them."""

import signal
from pathlib import Path

import pytest

from tests.acceptance.conftest import Worker
from tests.acceptance.mill import Mill


def test_create_job_and_start_processing(either: Mill, worker: Worker) -> None:
    """The architecture: createJobAndStartProcessing(type, id, user, title, metadata, file type)."""
    worker(either)
    answer = either(
        *("jobs", "submit", "plain", "document:42", "--title", "Receipt Processing", "--created-by", "ann"),
        *("--metadata", "uploadedVia=whatsapp", "--file-type", "application/pdf", "--watch", "--json"),
    )
    assert answer.code == 0
    job = answer.lines[-1]["jobs"][0]
    assert (job["title"], job["created_by"], job["file_type"]) == ("Receipt Processing", "ann", "application/pdf")
    assert job["metadata"] == {"uploadedVia": "whatsapp"}
    listed = either("jobs", "list", "--created-by", "ann", "--entity", "document:42", "--template", "plain", "--json")
    assert [each["id"] for each in listed.data["jobs"]] == [job["id"]]
    assert either("jobs", "list", "--created-by", "bob").err == "No such jobs.\n"


def test_a_key_submits_once_and_stands_for_one_job(either: Mill) -> None:
    first = either("jobs", "submit", "plain", "document:1", "--key", "upload-7")
    again = either("jobs", "submit", "plain", "document:1", "--key", "upload-7", "--json")
    assert again.data == {"template": again.data["template"], "job_ids": [first.out.strip()], "new": 0}
    other = either("jobs", "submit", "plain", "document:1", "--key", "upload-7", "--title", "Another", "--json")
    assert (other.code, other.out, other.error["code"]) == (1, "", "idempotency_conflict")
    assert other.error["details"]["differs"] == ["title"]
    both = either("jobs", "submit", "plain", "document:1", "document:2", "--key", "upload-8")
    assert both.code == 2
    assert "--key names one job" in both.err


def test_whether_an_entity_has_an_active_job_is_an_exit_code(mill: Mill) -> None:
    assert mill("jobs", "active", "document:7").code == 1
    job = mill.submit("plain")
    active = mill("jobs", "active", "document:7")
    assert (active.code, active.out, active.err) == (0, f"{job}\n", "")
    assert mill("jobs", "active", "document:7", "--template", "half", "--json").data == {
        "active": False,
        "job_ids": [],
    }
    assert mill("jobs", "cancel", job).code == 0
    assert mill("jobs", "active", "document:7").code == 1
    assert mill("jobs", "active", "document").code == 2


def test_the_first_digits_of_an_id_are_enough(mill: Mill) -> None:
    first = mill("jobs", "submit", "plain", "document:1", "--id", "aaaaaaaa-0000-7000-8000-000000000001").out.strip()
    mill("jobs", "submit", "plain", "document:2", "--id", "aaaaaaab-0000-7000-8000-000000000001")
    assert mill("jobs", "show", "aaaaaaaa", "--json").data["job"]["id"] == first
    assert mill("jobs", "cancel", "AAAAAAAA-00").out == f"Job {first} cancelled.\n"
    assert mill("jobs", "retry", "aaaaaaaa").code == 0
    assert mill("jobs", "events", "aaaaaaaa").code == 0
    assert mill("jobs", "callbacks", "aaaaaaaa").code == 0
    assert mill("issues", "list", "--job", "aaaaaaaa").code == 0
    assert mill("ai", "calls", "--job", "aaaaaaaa").err == "No model was asked for this job.\n"
    several = mill("jobs", "show", "aaaaaa")
    assert several.code == 2
    assert "Several jobs begin with aaaaaa" in several.err
    assert mill("jobs", "show", "aaaaa").code == 2


def test_a_list_goes_on_after_the_last_job_of_the_page_before(mill: Mill) -> None:
    mill("jobs", "submit", "plain", "document:a", "--count", "5")
    whole = [job["id"] for job in mill("jobs", "list", "--json").data["jobs"]]
    page = mill("jobs", "list", "--limit", "2")
    assert f"--after {whole[1]}" in page.err
    rest = mill("jobs", "list", "--after", whole[1], "--json").data["jobs"]
    assert [job["id"] for job in rest] == whole[2:]


def test_events_are_told_from_any_position_and_verified(either: Mill, worker: Worker) -> None:
    job = either.submit("plain")
    with either.started("jobs", "events", job, "--follow", "--json") as following:
        following.says('"version":1')
        worker(either)
        followed = following.end()
    assert followed.code == 0
    versions = [event["version"] for event in followed.lines]
    assert versions == list(range(1, len(versions) + 1))
    assert followed.lines[-1]["job"]["after"] == "COMPLETED"
    told = either("jobs", "events", job, "--after", "2", "--verify", "--json").data
    assert [event["version"] for event in told["events"]] == versions[2:]
    assert told["position"] == versions[-1]
    assert told["chain"] == {"holds": True, "faults": []}
    readable = either("jobs", "events", job, "--verify")
    assert readable.code == 0
    assert "shaky IN_PROGRESS → READY (retry): Not yet. [retryable]" in readable.out
    assert readable.out.splitlines()[0].split()[0] == "1"
    assert readable.out.endswith("The chain holds: no event is missing or changed.\n")
    assert either("jobs", "events", job, "--after", str(versions[-1])).out == ""


def test_show_tells_results_briefly_or_whole(mill: Mill, worker: Worker) -> None:
    worker(mill)
    job = mill.submit("plain", "--metadata", f"note={'x' * 200}")
    assert mill("jobs", "watch", job).code == 0
    brief = mill("jobs", "show", job).out
    assert 'shaky: {"attempt": 2}' in brief
    assert "x" * 150 not in brief.split("results")[1]
    assert "x" * 200 in mill("jobs", "show", job, "--results").out.split("results")[1]


def test_retry_runs_what_failed_and_all_of_it_only_when_told(mill: Mill, worker: Worker) -> None:
    worker(mill)
    job = mill.submit("half")
    assert mill("jobs", "watch", job).code == 1
    again = mill("jobs", "retry", job, "--watch", "--json")
    changed = {step["step_key"] for line in again.lines if line["type"] == "event" for step in line["steps"]}
    assert changed == {"extra", "finish"}
    good = mill.submit("plain")
    assert mill("jobs", "watch", good).code == 0
    nothing = mill("jobs", "retry", good)
    assert (nothing.code, nothing.out) == (1, "")
    assert "nothing in it failed" in nothing.err
    assert mill("jobs", "retry", good, "--all", "--watch").code == 0


def test_many_documents_in_one_job(either: Mill, worker: Worker) -> None:
    worker(either)
    answer = either(
        *("jobs", "submit", "many", "case:1", "--document", "document:1", "--document", "document:blank"),
        *("--document", "document:3", "--watch"),
    )
    assert answer.code == 0
    assert "2 of 3 items" in answer.out
    job = either("jobs", "list", "--json").data["jobs"][0]["id"]
    shown = either("jobs", "show", job, "--json").data["job"]
    assert shown["metadata"] == {"documents": ["document:1", "document:blank", "document:3"]}
    read = shown["steps"][0]
    assert read["items"] == {"total": 3, "completed": 2}
    assert [item["status"] for item in read["result"]["items"]] == ["completed", "failed", "completed"]
    assert either("jobs", "submit", "many", "case:2", "--document", "nonsense").code == 2


def test_prune_deletes_what_is_old_enough(either: Mill) -> None:
    job = either.submit("plain")
    assert either("jobs", "cancel", job).code == 0
    assert either("jobs", "prune", "--older-than", "1d").out == "Deleted 0 jobs.\n"
    counted = either("jobs", "prune", "--older-than", "0s", "--dry-run", "--json").data
    assert (counted["jobs"], counted["dry_run"]) == (1, True)
    assert either("jobs", "prune", "--older-than", "0s", "--status", "completed").out == "Deleted 0 jobs.\n"
    assert either("jobs", "prune", "--older-than", "0s").out == "Deleted 1 job.\n"
    assert either("jobs", "show", job).code == 2


@pytest.mark.parametrize(
    "arguments",
    [(), ("--older-than", "soon"), ("--older-than", "1d", "--status", "pending")],
    ids=lambda a: " ".join(a),
)
def test_prune_wants_to_know_what_is_old(mill: Mill, arguments: tuple[str, ...]) -> None:
    answer = mill("jobs", "prune", *arguments)
    assert (answer.code, answer.out) == (2, "")


def test_a_worker_with_a_retention_prunes_in_the_background(mill: Mill, worker: Worker) -> None:
    job = mill.submit("plain")
    assert mill("jobs", "cancel", job).code == 0
    worker(mill.having(DOCMILL_RETENTION__JOBS="0.001")).says("pruned 1 jobs")
    assert mill("jobs", "show", job).code == 2


def test_doctor_sees_at_once_that_a_worker_was_killed(mill: Mill, worker: Worker) -> None:
    killed = worker(mill)
    killed.signal(signal.SIGKILL)
    killed.end()
    found = {check["name"]: check for check in mill("doctor", "--json").data["checks"]}["workers"]
    assert found["health"] == "warn"
    assert found["found"].startswith("none alive, so jobs wait; gone without a word: ")


def test_completion_is_installed_for_the_shell(bare: Mill) -> None:
    home = bare.having(HOME=str(bare.folder), SHELL="/bin/bash")
    assert home("--install-completion", "--shell", "bash").code == 0
    script = bare.folder / ".local/share/bash-completion/completions/docmill"
    assert "retry" in Path(script).read_text()
