"""`docmill batch`: submit, watch, results, cancel, retry and the limit, as a person or a script uses them."""

import json
from pathlib import Path

import pytest

from docmill.model.ids import new_id
from tests.acceptance.conftest import Worker
from tests.acceptance.mill import Mill

UNKNOWN = "01a1e0e4-86a1-7f22-b51d-7d07fc8a27df"
BATCH = {
    "id",
    "title",
    "status",
    "progress",
    "limit",
    "total",
    "active",
    "held",
    "finished",
    "counts",
    "failures",
    "cancelling",
    "metadata",
    "created_by",
    "created_at",
    "started_at",
    "finished_at",
}
RESULT = {"job_id", "entity_type", "entity_id", "status", "step", "error", "result"}
SEVEN = [f"document:{n}" for n in range(7)]


def submitted(mill: Mill, *arguments: str) -> str:
    """The id of a new batch."""
    answer = mill("batch", "submit", *arguments)
    assert answer.code == 0, answer
    return answer.out.strip()


def shown(mill: Mill, batch: str) -> dict[str, object]:
    data: dict[str, object] = mill("batch", "show", batch, "--json").data["batch"]
    return data


def test_submit_prints_the_id_and_show_tells_how_it_stands(either: Mill) -> None:
    answer = either("batch", "submit", "plain", *SEVEN, "--limit", "3", "--title", "März", "--metadata", "from=mail")
    assert (answer.code, answer.err) == (0, "")
    batch = shown(either, answer.out.strip().upper())
    assert batch.keys() == BATCH
    expected = {"id": answer.out.strip(), "title": "März", "status": "PENDING", "progress": 0.0, "limit": 3}
    expected |= {"total": 7, "active": 3, "held": 4, "finished": 0, "failures": [], "metadata": {"from": "mail"}}
    assert {name: batch[name] for name in expected} == expected
    assert either("jobs", "list", "--json").data["jobs"][0]["status"] == "PENDING"
    text = either("batch", "show", answer.out.strip())
    assert "jobs      7: 7 PENDING" in text.out
    assert "limit     3 (3 active, 4 held)" in text.out


def test_entities_come_from_a_file_from_stdin_or_as_lines_of_json(mill: Mill) -> None:
    name = mill.write("list.txt", "# March\ndocument:a\n\n  document:b \n")
    assert shown(mill, submitted(mill, "plain", "--from", name))["total"] == 2
    lines = [{"entity": "document:c", "title": "C", "metadata": {"n": 1}}, {"entity": "document:d"}]
    piped = mill(
        *("batch", "submit", "plain", "--from", "-", "--title", "piped", "--metadata", "n:=0", "--metadata", "m=x"),
        given="\n".join(json.dumps(line) for line in lines),
    )
    assert piped.code == 0, piped
    assert shown(mill, piped.out.strip())["title"] == "piped"
    jobs = {job["entity_id"]: job["id"] for job in mill("jobs", "list", "--json").data["jobs"]}
    assert jobs.keys() == set("abcd")
    first = mill("jobs", "show", jobs["c"], "--json").data["job"]
    assert (first["title"], first["metadata"]) == ("C", {"n": 1, "m": "x"})
    assert mill("jobs", "show", jobs["d"], "--json").data["job"]["metadata"] == {"n": 0, "m": "x"}


@pytest.mark.parametrize(
    ("arguments", "given", "says"),
    [
        ((), None, "There is no entity; name some as TYPE:ID, or give a file with --from."),
        (("--from", "-"), "\n# nothing\n", "There is no entity"),
        (("document:1", "--from", "-"), "document:2", "Give entities or --from, not both."),
        (("--from", "-"), "document:1\n{\n", "error: stdin:2: not a JSON object"),
        (("--from", "-"), '{"entity": "document:1", "titel": ""}', "error: stdin:1: titel means nothing here"),
        (("--from", "-"), '{"title": "x"}', "entity is needed"),
        (("--from", "-"), "document:1\nwebsite:2", "processes document, not website"),
        (("document:1", "document:2", "document:1"), None, "more than once: document:1. Give each once."),
        (("document:1", "--limit", "0"), None, "The limit 0 is not between 1 and 100,000."),
        (("document:1", "--id", "7"), None, "'7' is not a batch id; write a UUID"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_submission_is_wrong_use_and_leaves_nothing(
    mill: Mill, arguments: tuple[str, ...], given: str | None, says: str
) -> None:
    answer = mill("batch", "submit", "plain", *arguments, given=given)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert says in answer.err
    assert answer.err.count("\n") == 1
    assert mill("jobs", "list", "--json").data["jobs"] == []


def test_a_missing_file_is_named(mill: Mill) -> None:
    answer = mill("batch", "submit", "plain", "--from", "nowhere.txt")
    assert (answer.code, answer.err) == (2, "error: Cannot read nowhere.txt: No such file or directory.\n")


def test_submitting_the_same_batch_twice_is_submitting_once(mill: Mill) -> None:
    own = new_id()
    first = mill("batch", "submit", "plain", *SEVEN, "--id", own)
    assert (first.code, mill("batch", "submit", "plain", *SEVEN, "--id", own).out) == (0, first.out)
    other = mill("batch", "submit", "plain", "document:x", "--id", own, "--json")
    assert (other.code, other.error["code"]) == (1, "conflict")
    assert len(mill("jobs", "list", "--json").data["jobs"]) == 7


def test_entities_with_an_active_job_are_refused_by_name_or_left_out(mill: Mill) -> None:
    submitted(mill, "plain", "document:1", "document:2")
    refused = mill("batch", "submit", "plain", *SEVEN)
    assert (refused.code, refused.out) == (1, "")
    assert "2 entities have an active job of this template already: document 1 (" in refused.err
    skipped = mill("batch", "submit", "plain", *SEVEN, "--skip-active")
    assert (skipped.code, skipped.err) == (0, "note: 2 jobs left out: the entity has an active one.\n")
    assert shown(mill, skipped.out.strip())["total"] == 5


def test_list_shows_the_newest_first(mill: Mill) -> None:
    assert mill("batch", "list").err == "No batches yet. `docmill batch submit` starts one.\n"
    ids = [submitted(mill, "plain", f"document:{name}", "--title", name) for name in "abc"]
    listed = mill("batch", "list", "--json").data["batches"]
    assert [batch["id"] for batch in listed] == ids[::-1]
    assert listed[0].keys() == BATCH
    table = mill("batch", "list", "--limit", "2")
    assert table.out.splitlines()[0].split()[:5] == ["BATCH", "STATUS", "DONE", "JOBS", "FAILED"]
    assert table.out.splitlines()[1].startswith(f"{ids[2]}  PENDING  0%")
    assert "--limit" in table.err


def test_waiting_tells_progress_and_ends_with_the_aggregate(either: Mill, worker: Worker) -> None:
    worker(either)
    answer = either("batch", "submit", "plain", *SEVEN, "--limit", "2", "--watch")
    assert answer.code == 0, answer
    assert "status    COMPLETED" in answer.out
    assert "jobs      7: 7 COMPLETED" in answer.out
    assert "7 COMPLETED" in answer.err
    batch = answer.out.split()[0]
    lines = either("batch", "watch", batch, "--json").lines
    assert [line["type"] for line in lines] == ["batch", "result"]
    assert (lines[-1]["ok"], lines[-1]["batch"]["progress"]) == (True, 1.0)
    results = either("batch", "results", batch, "--step", "read", "--json").lines
    assert {result.keys() == RESULT for result in results} == {True}
    assert [result["result"]["entity"] for result in results] == [str(n) for n in range(7)]
    assert either("batch", "results", batch, "--limit", "2").out.count("COMPLETED") == 2


def test_what_failed_is_named_and_can_be_tried_again(mill: Mill, worker: Worker) -> None:
    worker(mill)
    answer = mill("batch", "submit", "failing", *SEVEN, "--watch", "--json")
    assert answer.code == 1
    assert [answer.lines[0]["type"], answer.lines[-1]["type"]] == ["submitted", "result"]
    batch = answer.lines[-1]["batch"]
    assert (batch["status"], batch["counts"]["FAILED"], len(batch["failures"])) == ("FAILED", 7, 5)
    assert batch["failures"][0]["error"]["message"] == "The page is blank; scan it again."
    text = mill("batch", "show", batch["id"])
    assert "scan: The page is blank; scan it again. [permanent]" in text.out
    assert f"… and 2 jobs more: `docmill batch results {batch['id']} --status FAILED`" in text.out
    again = mill("batch", "retry", batch["id"], "--watch")
    assert again.code == 1
    assert f"7 jobs of batch {batch['id']} run again." in again.out
    nothing = mill("batch", "retry", batch["id"], "--status", "cancelled", "--json").data
    assert (nothing["again"], nothing["passed_over"]) == (0, [])
    assert mill("batch", "retry", batch["id"], "--status", "completed").code == 2


def test_the_limit_is_raised_the_rest_cancelled_and_run_again(either: Mill, worker: Worker) -> None:
    worker(either)
    batch = submitted(either, "gated", *SEVEN, "--limit", "2")
    raised = either("batch", "limit", batch, "4")
    assert (raised.code, raised.out) == (0, f"Batch {batch}: limit 4, 4 active, 3 held.\n")
    with either.started("batch", "watch", batch) as watching:
        watching.says("IN_PROGRESS")
        cancelled = either("batch", "cancel", batch)
        assert (cancelled.code, cancelled.out) == (0, f"Batch {batch} cancelled (7 jobs).\n")
        assert watching.end().code == 1
    assert either("batch", "cancel", batch).code == 1
    Path(either.environment["MILL_GATE"]).touch()
    again = either("batch", "retry", batch, "--status", "CANCELLED", "--watch")
    assert again.code == 0, again
    assert "7 COMPLETED" in again.out


@pytest.mark.parametrize("command", ["show", "watch", "cancel", "retry", "results"])
def test_an_unknown_batch_is_wrong_use(mill: Mill, command: str) -> None:
    answer = mill("batch", command, UNKNOWN)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"error: There is no batch {UNKNOWN}. `docmill batch list` shows those there are.\n"
