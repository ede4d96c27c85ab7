"""Review through the real executable: from a processed file to outputs that say what a person decided."""

import csv
import json

import pytest

from docmill.testing.papers import invoice_pdf
from tests.acceptance.mill import Mill
from tests.contract.mailroom import letter


@pytest.fixture
def desk(either: Mill) -> Mill:
    """An installation on each database in turn, without the documents of the plug-in."""
    return either.having(DOCMILL_PLUGINS="")


@pytest.fixture
def office(bare: Mill) -> Mill:
    """An installation that nobody has used yet, likewise."""
    return bare.having(DOCMILL_PLUGINS="")


def processed(mill: Mill) -> dict[str, object]:
    """A document with an item."""
    mill.write(
        "slip.yaml", "name: slip\ntitle: Slip\nfields:\n  total: {type: amount, labels: [Total], required: true}\n"
    )
    (mill.folder / "bill.pdf").write_bytes(letter("Invoice 4711\nTotal 12.50"))
    (record,) = mill("process", "bill.pdf", "--schema", "slip.yaml", "--out", "out", "--json").data
    assert isinstance(record, dict)
    return record


def test_a_correction_reaches_the_outputs_and_is_told(desk: Mill) -> None:
    record = processed(desk)
    (listed,) = desk("review", "list", "--json").data["items"]
    item = listed["id"]
    assert listed["document_id"] == record["id"]
    assert set(listed["priority"]) == {"priority", "doubt", "proximity", "complexity", "value"}
    assert item in desk("review", "list").out
    refused = desk("review", "correct", item, "total=13", "--json")
    assert (refused.code, refused.error["code"]) == (1, "not_claimed")
    taken = desk("review", "next", "--claim", "--as", "ann", "--json").data
    assert (taken["item"]["id"], taken["item"]["claimed_by"]) == (item, "ann")
    other = desk("review", "claim", item, "--as", "bob", "--json")
    assert (other.code, other.error["code"]) == (1, "already_claimed")
    wrong = desk("review", "correct", item, "total=much", "--as", "ann", "--json")
    assert (wrong.code, wrong.error["code"]) == (2, "invalid_input")
    assert "is in_review by ann" in desk("review", "correct", item, "total=13", "--as", "ann").out
    assert desk("review", "comment", item, "as on the phone", "--field", "total", "--as", "ann").code == 0
    shown = desk("review", "show", item).out
    assert "13.00" in shown
    assert "as on the phone" in shown
    decided = desk("review", "approve", item, "--as", "ann", "--json").data
    assert decided["item"]["status"] == "corrected"
    (output,) = (desk.folder / "out").rglob("*.json")
    assert json.loads(output.read_text())["fields"]["total"]["value"] == "13.00"
    assert "correct" in desk("review", "history", item, "total").out
    assert desk("review", "list").err == "Nothing to review.\n"
    again = desk("review", "reject", item, "--reason", "no", "--as", "ann", "--json")
    assert (again.code, again.error["code"]) == (1, "already_decided")


def test_results_tell_where_their_review_stands_at_this_moment(desk: Mill) -> None:
    def stand(*more: str) -> dict[str, object]:
        sql = "SELECT file_name, review FROM invoices"
        return {row["file_name"]: row["review"] for row in desk("query", sql, *more, "--json").data["rows"]}

    def exported(*more: str) -> list[tuple[str, str]]:
        rows = csv.DictReader(desk("export", *more).out.splitlines())
        return [(row["file_name"], row["review"]) for row in rows]

    for seed in (1, 2):
        invoice_pdf(seed).write(desk.folder / "inbox")
    (first, second) = sorted(path.name for path in (desk.folder / "inbox").iterdir())
    assert desk("process", "inbox").code == 0
    assert stand() == {first: "pending", second: "pending"}
    assert desk("review", "claim", first).code == desk("review", "claim", second).code == 0
    assert desk("review", "reject", first, "--reason", "not ours").code == 0
    # What was rejected is no result any more, and there for whoever asks.
    assert exported() == [(second, "in_review")]
    assert exported("--review", "rejected") == [(first, "rejected")]
    assert exported("--all") == [(first, "rejected"), (second, "in_review")]
    assert exported("--review", "approved,corrected") == []
    assert desk("review", "approve", second).code == 0
    assert set(exported("--items", "--review", "approved,corrected")) == {(second, "approved")}
    # A folder that is named is the same folder: what the database knows of its documents is told as well.
    assert stand("--from", str(desk.folder / "home" / "outputs")) == {second: "approved"}
    assert stand("--all") == {first: "rejected", second: "approved"}
    wrong = desk("export", "--review", "aproved", "--out", "a.csv", "--json")
    assert (wrong.code, wrong.error["code"]) == (2, "invalid_input")


def test_a_folder_without_a_database_has_no_reviews_and_cannot_be_asked_for_them(office: Mill) -> None:
    processed(office)
    elsewhere = office.having(DOCMILL_HOME=str(office.folder / "elsewhere"), DOCMILL_DATABASE_URL=None)
    told = elsewhere("query", "SELECT review FROM documents", "--from", "out", "--json").data["rows"]
    assert told == [{"review": None}]
    refused = elsewhere("export", "--from", "out", "--review", "approved", "--json", "--out", "a.csv")
    assert (refused.code, refused.error["code"]) == (2, "wrong_use")


def test_whoever_approves_what_fails_a_check_is_told_and_says_so(office: Mill) -> None:
    office.write(
        "slip.yaml",
        "name: slip\ntitle: Slip\nfields:\n"
        "  net: {type: amount, labels: [Net]}\n  total: {type: amount, labels: [Total]}\n"
        "rules:\n  no_tax: {holds: total == net, message: There is no tax.}\n",
    )
    (office.folder / "bill.pdf").write_bytes(letter("Invoice 4711\nNet 12.50\nTotal 12.50"))
    assert office("process", "bill.pdf", "--schema", "slip.yaml").code == 0
    assert office("review", "claim", "bill.pdf").code == 0
    corrected = office("review", "correct", "bill.pdf", "total=13")
    assert "note: no_tax fails: " in corrected.err
    assert "Locked as they are: total, net." in office("review", "confirm", "bill.pdf", "net").err
    refused = office("review", "approve", "bill.pdf", "--json")
    assert (refused.code, refused.error["code"], refused.error["details"]["failing"]) == (1, "checks_fail", ["no_tax"])
    assert "no_tax: " in refused.error["message"]
    assert "--anyway" in refused.error["message"]
    decided = office("review", "approve", "bill.pdf", "--anyway", "--json").data
    assert (decided["item"]["status"], [each["name"] for each in decided["failing"]]) == ("corrected", ["no_tax"])


def test_whoever_rejects_without_a_reason_is_told_to_give_one(office: Mill) -> None:
    refused = office("review", "reject", "bill.pdf")
    assert refused.code == 2
    assert "Say why it is rejected" in refused.err


def test_items_are_postponed_assigned_and_given_back(office: Mill) -> None:
    record = processed(office)
    document = str(record["id"])
    assert "postponed until" in office("review", "postpone", document, "2h").out
    assert office("review", "next").err == "Nothing to review.\n"
    assert office("review", "resume", document).code == 0
    assert office("review", "reviewers", "--add", "ann", "--json").data == {"reviewers": ["ann"]}
    assert "assigned to ann" in office("review", "assign", document).out
    assert office("review", "claim", document, "--as", "bob", "--json").error["code"] == "already_claimed"
    assert office("review", "assign", document, "--nobody").code == 0
    assert "is in_review by bob" in office("review", "claim", document, "--as", "bob").out
    assert "is pending" in office("review", "release", document, "--as", "bob").out
    assert office("review", "sla", "4h", "--schema", "slip", "--json").data["slas"]["slip"] == 14400


def test_what_was_approved_can_be_measured_on(office: Mill) -> None:
    nothing = office("eval", "--reviewed", "--json")
    assert (nothing.code, nothing.error["code"]) == (2, "nothing_reviewed")
    paper = invoice_pdf(1)
    (office.folder / paper.name).write_bytes(paper.content)
    (record,) = office("process", paper.name, "--json").data
    item = str(record["id"])
    assert office("review", "claim", item).code == 0
    total = record["fields"]["total"]["value"]
    assert office("review", "correct", item, "total=987654.32").code == 0
    assert office("review", "approve", item, "--anyway", "--json").code == 0
    measured = office("eval", "--reviewed", "--wrong", "--json").data
    assert measured["documents"] == 1
    assert {"field": "total", "expected": "987654.32", "found": total}.items() <= next(
        each for each in measured["wrong"] if each["field"] == "total"
    ).items()
    assert office("eval", "--json").error["code"] == "wrong_use"
    # What others approved is theirs.
    for more, name in (([], "Mill"), (["--another"], "Others")):
        assert office("init", *more, "--organisation", name, "--email", f"ann@{name}.example").code == 0
    theirs = office("eval", "--reviewed", "--organisation", "Others", "--json")
    assert (theirs.code, theirs.error["code"]) == (2, "nothing_reviewed")
    assert office("eval", "--reviewed", "--organisation", "Mill", "--json").data["documents"] == 1
    assert office("learn", str(office.folder), "--organisation", "Mill", "--json").error["code"] == "wrong_use"


def test_settings_that_are_taken_back_take_results_and_reviews_back(desk: Mill) -> None:
    """A demand that is no longer made asks nobody, and what was approved before it is not asked for again."""

    def process(settings: str) -> dict[str, str]:
        desk.write("docmill.yaml", settings)
        return {record["file_name"]: record["id"] for record in desk("process", "inbox", "--json").data}

    def current() -> dict[str, tuple[str, str | None]]:
        rows = desk("query", "SELECT file_name, id, review FROM invoices", "--json").data["rows"]
        return {row["file_name"]: (row["id"], row["review"]) for row in rows}

    def queue() -> list[str]:
        return sorted(item["document_id"] for item in desk("review", "list", "--json").data["items"])

    for seed in (1, 2):
        invoice_pdf(seed).write(desk.folder / "inbox")
    (approved, open_) = sorted(path.name for path in (desk.folder / "inbox").iterdir())
    before = process("{}\n")
    assert desk("review", "claim", approved).code == desk("review", "approve", approved).code == 0
    demanding = process("fields: {invoice: {order_number: {required: true}}}\n")
    assert current() == {name: (demanding[name], "pending") for name in (approved, open_)}
    assert queue() == sorted(demanding.values())
    process("{}\n")
    assert current() == {approved: (before[approved], "approved"), open_: (before[open_], "pending")}
    assert queue() == [before[open_]]
    assert desk("review", "claim", before[open_]).code == desk("review", "approve", before[open_]).code == 0
    assert desk("review", "list").err == "Nothing to review.\n"
