"""Issues through the real executable: a job waits, a person answers, the job goes on."""

import pytest

from tests.acceptance.conftest import Worker
from tests.acceptance.mill import Mill


def question(mill: Mill, job: str) -> str:
    """The id of the one issue the job waits for."""
    (issue,) = mill("issues", "list", "--job", job, "--blocking", "--json").data["issues"]
    return str(issue["id"])


def waiting(mill: Mill, worker: Worker, *options: str) -> str:
    """A job that waits for a person."""
    worker(mill)
    with mill.started("jobs", "submit", "checked", "document:7", "--watch", *options) as watching:
        watching.says("job WAITING; `docmill jobs show")
    (job,) = mill("jobs", "list", "--json").data["jobs"]
    return str(job["id"])


def test_an_answer_flows_back_into_the_job(either: Mill, worker: Worker) -> None:
    job = waiting(either, worker)
    shown = either("jobs", "show", job)
    issue = question(either, job)
    assert "check waits for: The total is not the sum [error, total_mismatch]" in shown.out
    assert f"docmill issues resolve {issue}" in shown.out
    assert [each["id"] for each in either("jobs", "show", job, "--json").data["job"]["waits_for"]] == [issue]

    with either.started("jobs", "watch", job) as watching:
        watching.says("check WAITING")
        answer = either("issues", "resolve", issue, "--set", "total=110", "--by", "ann", "--note", "as printed")
        assert (answer.code, answer.err) == (0, "")
        assert f"Issue {issue} is resolved. Job {job} is " in answer.out
        assert watching.end().code == 0
    steps = {step["step_key"]: step for step in either("jobs", "show", job, "--json").data["job"]["steps"]}
    assert steps["check"]["result"] == {"total": 110, "currency": "EUR"}
    again = either("issues", "resolve", issue, "--json")
    assert (again.code, again.error["code"]) == (1, "already_resolved")
    assert "by ann" in again.error["message"]
    shown = either("issues", "show", issue)
    assert '"sum": 110.0' in shown.out
    assert 'data        {"total": 110}' in shown.out
    assert "note        as printed" in shown.out


def test_a_human_task_tells_what_it_must_be_given(mill: Mill, worker: Worker) -> None:
    job = waiting(mill, worker, "--metadata", "approve:=true", "--metadata", "clean:=true")
    issue = question(mill, job)
    shown = mill("issues", "show", issue)
    assert "title       Approve 100" in shown.out
    assert f"docmill issues resolve {issue} --set approved=…" in shown.out
    wrong = mill("issues", "resolve", issue, "--set", "approved=maybe", "--json")
    assert (wrong.code, wrong.error["code"]) == (2, "answer_invalid")
    assert "$.approved" in wrong.error["message"]
    mill.write("answer.json", '{"approved": "perhaps"}')
    assert mill("issues", "resolve", issue, "--data-file", "answer.json").code == 2
    assert mill("issues", "resolve", issue, "--data-file", "nowhere.json").err.startswith("error: Cannot read nowhere")
    done = mill("issues", "resolve", issue, "--data-file", "-", "--json", given='{"approved": true}').data
    assert (done["issue"]["status"], done["issue"]["data"]) == ("resolved", {"approved": True})
    assert mill("jobs", "watch", job).code == 0


def test_a_rejected_answer_fails_the_job_with_the_note(mill: Mill, worker: Worker) -> None:
    job = waiting(mill, worker)
    answer = mill("issues", "resolve", question(mill, job), "--action", "fail", "--note", "not ours", "--by", "ann")
    assert answer.code == 0
    assert "Rejected by ann: not ours [issue_rejected]" in mill("jobs", "show", job).out
    assert mill("jobs", "watch", job).code == 1


def test_a_worker_killed_after_the_checkpoint_leaves_one_issue(mill: Mill, worker: Worker) -> None:
    job = mill.submit("checked", "--metadata", "clean:=true")
    with mill.having(DOCMILL_FAILPOINT="checkpoint.written:1:kill").started("worker") as doomed:
        assert doomed.end().code == -9
    assert mill("issues", "list", "--json").data["issues"] == []
    worker(mill)
    assert mill("jobs", "watch", job).code == 0
    (issue,) = mill("issues", "list", "--all", "--json").data["issues"]
    assert (issue["code"], issue["status"], issue["blocking"]) == ("blurred", "open", False)


def test_people_open_assign_and_list_issues(mill: Mill) -> None:
    opened = mill("issues", "open", "Torn page", "--entity", "document:7", "--severity", "critical", "--by", "ann")
    issue = opened.out.strip()
    assert mill("issues", "assign", issue, "bob").out == f"Issue {issue} is assigned to bob.\n"
    listed = mill("issues", "list", "--assigned-to", "bob", "--severity", "error")
    assert "Torn page" in listed.out
    assert "critical" in listed.out
    assert mill("issues", "assign", issue, "--nobody").code == 0
    assert mill("issues", "list", "--unassigned", "--json").data["issues"][0]["created_by"] == "ann"
    assert mill("issues", "resolve", issue, "--note", "rescanned").out == f"Issue {issue} is resolved.\n"
    assert mill("issues", "list").err == "No open issues.\n"
    assert issue in mill("issues", "list", "--all", "--entity", "document:7").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resolve", "X", "--data", "{"], "--data is not JSON"),
        (["resolve", "X", "--data", "{}", "--data-file", "f"], "exclude each other"),
        (["resolve", "X", "--data", "[1]", "--set", "a=1"], "adds keys to an object"),
        (["resolve", "X", "--set", "total"], "is not KEY=VALUE"),
        (["resolve", "X", "--action", "shrug"], "continue"),
        (["resolve", "nonsense"], "There is no issue nonsense"),
        (["assign", "X"], "or give --nobody"),
        (["open", "Torn"], "name one of them"),
        (["open", "Torn", "--entity", "seven"], "TYPE:ID"),
        (["list", "--unassigned", "--assigned-to", "ann"], "exclude each other"),
    ],
)
def test_wrong_use_is_told_and_is_exit_code_2(mill: Mill, arguments: list[str], message: str) -> None:
    answer = mill("issues", *arguments)
    assert answer.code == 2, answer
    assert message in answer.err
    assert "Traceback" not in answer.err
