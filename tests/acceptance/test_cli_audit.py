"""What is done at the command line is recorded, by whoever sits there, for the organisation it is done in."""

import getpass
from pathlib import Path
from typing import Any

import pytest

from docmill.testing import papers
from tests.acceptance.mill import TEMPLATES, Mill, environment


def entries(mill: Mill, *more: str) -> list[dict[str, Any]]:
    """All that is recorded, the oldest first; the chain must hold."""
    assert mill("audit", "verify", *more).code == 0
    found: list[dict[str, Any]] = mill("audit", "export", *more).lines
    return found


def done(mill: Mill, *command: str, given: str | None = None) -> Any:
    answer = mill(*command, "--json", given=given)
    assert answer.code == 0, (command, answer.err)
    return answer.data


def test_every_command_that_changes_something_leaves_an_entry(either: Mill) -> None:
    stored = [each["action"] for each in entries(either)]
    assert stored == ["template.publish"] * len(TEMPLATES)
    done(either, "prompts", "set", "Ask", "--text", "What?")
    done(either, "prompts", "import", str(either.write("Tell.txt", "Tell me.")))
    (job,) = done(either, "jobs", "submit", "gated", "document:1")["job_ids"]
    done(either, "jobs", "cancel", job)
    done(either, "jobs", "retry", job)
    done(either, "jobs", "cancel", job)
    batch = done(either, "batch", "submit", "gated", "document:2", "document:3")["batch"]["id"]
    done(either, "batch", "limit", batch, "1")
    done(either, "batch", "cancel", batch)
    done(either, "batch", "retry", batch, "--status", "CANCELLED")
    issue = done(either, "issues", "open", "Odd", "--entity", "document:1", "--by", "ann")["issue"]["id"]
    done(either, "issues", "assign", issue, "bob")
    done(either, "issues", "resolve", issue, "--by", "ann")
    done(either, "jobs", "prune", "--older-than", "0s")
    endpoint = done(either, "webhooks", "add", "https://example.com/", "--as", "ann")["endpoint"]["id"]
    done(either, "webhooks", "ping", endpoint)
    told = [(each["action"], each["actor_kind"], each["actor_id"]) for each in entries(either)[len(stored) :]]
    me = getpass.getuser()
    assert told == [
        *[("prompt.publish", "system", me)] * 2,
        *[(f"job.{verb}", "system", me) for verb in ("submit", "cancel", "retry", "cancel")],
        *[(f"batch.{verb}", "system", me) for verb in ("submit", "limit", "cancel", "retry")],
        *[("issue.open", "system", "ann"), ("issue.assign", "system", me), ("issue.resolve", "system", "ann")],
        *[("job.prune", "system", me), ("webhooks.create", "system", "ann"), ("webhooks.ping", "system", me)],
    ]


def test_shared_prompts_are_recorded_apart(either: Mill) -> None:
    before = len(entries(either))
    done(either, "prompts", "set", "Everybodys", "--text", "What?", "--shared")
    assert len(entries(either)) == before
    (entry,) = entries(either, "--shared")
    assert (entry["action"], entry["subject_id"]) == ("prompt.publish", "Everybodys")
    both = either("audit", "list", "--shared", "--organisation", "Mill")
    assert (both.code, "exclude each other" in both.err) == (2, True)


@pytest.fixture(scope="module")
def processed(tmp_path_factory: pytest.TempPathFactory) -> Mill:
    """Two e-invoices of the organisation of this installation, beside another organisation."""
    folder = tmp_path_factory.mktemp("organisations")
    mill = Mill(folder=folder, environment=environment(folder)).having(DOCMILL_PLUGINS=None)
    for number in (3, 4):
        papers.ubl_xml(number, language="de").write(folder / "inbox")
    assert mill("process", "inbox").code == 0
    done(mill, "init", "--organisation", "Mill", "--email", "ann@mill.example")
    done(mill, "init", "--another", "--organisation", "Others", "--email", "theo@others.example")
    return mill


def test_many_documents_that_are_processed_at_once_are_one_entry(processed: Mill) -> None:
    run = entries(processed)[0]
    assert (run["action"], run["subject_type"], run["actor_id"]) == (
        "document.process",
        "document_run",
        getpass.getuser(),
    )
    assert [Path(path).name for path in run["after"]["paths"]] == ["inbox"]


def test_one_organisation_is_not_asked_for_the_results_of_another(processed: Mill) -> None:
    count = ("query", "SELECT count(*) AS n FROM documents")
    assert done(processed, *count)["rows"] == [{"n": 2}]
    assert done(processed, *count, "--organisation", "Mill")["rows"] == [{"n": 2}]
    assert done(processed, *count, "--organisation", "Others")["rows"] == [{"n": 0}]
    # Files that somebody names are looked at as they are.
    folder = str(processed.folder / "home" / "outputs")
    assert done(processed, *count, "--from", folder)["rows"] == [{"n": 2}]
    assert done(processed, *count, "--from", folder, "--organisation", "Others")["rows"] == [{"n": 0}]
    assert processed(*count, "--organisation", "Nobody").code == 2


def test_an_export_has_the_rows_of_one_organisation_and_an_entry_there(processed: Mill) -> None:
    out = str(processed.folder / "rows.jsonl")
    assert done(processed, "export", "--out", out)["rows"] == 2
    assert done(processed, "export", "--out", out, "--organisation", "Others")["rows"] == 0
    for organisation in ("Mill", "Others"):
        last = entries(processed, "--organisation", organisation)[-1]
        assert (last["action"], last["actor_id"]) == ("results.export", getpass.getuser())
        assert last["after"]["format"] == "jsonl"


def test_review_and_webhooks_are_those_of_the_organisation_that_is_named(processed: Mill) -> None:
    there = ("--organisation", "Others")
    done(processed, "webhooks", "add", "https://example.com/theirs", *there)
    assert done(processed, "webhooks", "list")["endpoints"] == []
    (endpoint,) = done(processed, "webhooks", "list", *there)["endpoints"]
    assert endpoint["url"] == "https://example.com/theirs"
    assert processed("webhooks", "remove", endpoint["id"]).code == 2
    done(processed, "review", "reviewers", "--add", "theo", *there)
    assert done(processed, "review", "reviewers")["reviewers"] == []
    assert "theo" in done(processed, "review", "reviewers", *there)["reviewers"]
    assert done(processed, "review", "list", *there)["items"] == []
