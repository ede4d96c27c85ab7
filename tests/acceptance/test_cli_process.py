"""`docmill process` as a person or a script uses it."""

import json
import os
import signal
from pathlib import Path

import pytest
from PIL import Image

from docmill.testing.papers import invoice_pdf
from docmill.testing.waiting import until
from tests.acceptance.mill import Mill
from tests.contract.mailroom import SCHEMA, letter
from tests.unit.documents.making import text_pdf

BILL = letter("Invoice 4711\nTotal 12.50")


@pytest.fixture
def office(bare: Mill) -> Mill:
    """An installation that nobody has used, with papers in a folder."""
    papers = bare.folder / "papers"
    (papers / "more").mkdir(parents=True)
    (papers / "bill.pdf").write_bytes(BILL)
    (papers / "more" / "copy.pdf").write_bytes(BILL)
    (papers / "notes.txt").write_text("no document")
    (papers / ".hidden.pdf").write_bytes(BILL)
    (bare.folder / "slip.yaml").write_text(SCHEMA)
    return bare.having(DOCMILL_PLUGINS="counting_model", COUNTED=str(bare.folder / "counted"))


def test_a_folder_becomes_rows_outputs_and_an_exit_code(office: Mill) -> None:
    answer = office("process", "papers", "--schema", "slip.yaml", "--out", "out", "--json")
    assert answer.code == 1, answer
    rows = {Path(row["file"]).name: row for row in answer.data}
    assert [Path(row["file"]).name for row in answer.data] == ["bill.pdf", "notes.txt", "copy.pdf"]
    assert sorted([rows["bill.pdf"]["status"], rows["copy.pdf"]["status"]]) == ["completed", "duplicate"]
    assert rows["notes.txt"]["status"] == "failed"
    assert rows["notes.txt"]["error"]["code"] == "unsupported_file"
    for name in ("bill.pdf", "copy.pdf"):
        row = rows[name]
        assert (row["schema"], row["error"]) == ("slip", None)
        assert row["fields"]["total"]["value"] == "12.50"
        assert 0 <= row["fields"]["total"]["confidence"] <= 1
        assert row["fields"]["total"]["evidence"][0]["page"] == 1
        assert {Path(path).suffix for path in row["outputs"]} == {".json", ".parquet"}
        assert all(Path(path).is_relative_to(office.folder / "out") for path in row["outputs"])
    ids = {row["duplicate_of"] for row in answer.data} - {None}
    assert ids == {row["id"] for row in answer.data if row["status"] == "completed"}

    shown = office("documents", "show", rows["bill.pdf"]["id"][:18])
    assert "12.50" in shown.out
    listed = office("documents", "list", "--all", "--json")
    assert {row["file_name"] for row in listed.data} == {"bill.pdf", "copy.pdf", "notes.txt"}


def test_a_table_tells_people_what_was_found_and_what_failed(office: Mill) -> None:
    answer = office("process", "papers/bill.pdf", "papers/notes.txt", "--schema", "slip.yaml")
    assert answer.code == 1
    bill, notes, summary = answer.out.splitlines()[1:]
    assert "completed" in bill
    assert "12.50" in bill
    assert "unsupported_file" in notes
    assert summary == "2 documents: 1 completed, 1 failed."


def test_standard_input_is_a_document_and_a_model_can_be_asked(office: Mill) -> None:
    given = BILL.decode("latin-1")
    answer = office("process", "-", "--schema", "slip.yaml", "--model", "counting:one", "--json", given=given)
    assert answer.code == 0, answer
    (row,) = answer.data
    assert (row["file"], row["status"], row["reader"]) == ("-", "completed", "combined")
    assert row["fields"]["total"]["value"] == "12.50"
    assert (office.folder / "counted").read_text() == "one\n"
    spent = json.loads(office("ai", "calls", "--json").out)
    assert len(spent) == 1
    # The same question again is answered from what is known; without the model it is another question.
    again = office("process", "papers/bill.pdf", "--schema", "slip.yaml", "--model", "counting:one", "--json")
    assert [row["status"] for row in again.data] == ["duplicate"]
    assert (office.folder / "counted").read_text() == "one\n"
    without = office("process", "papers/bill.pdf", "--schema", "slip.yaml", "--json")
    assert [(row["status"], row["reader"]) for row in without.data] == [("completed", "local")]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["process"], 2, "PATHS"),
        (["process", "papers", "--schema", "nonsense"], 2, "no field schema"),
        (["process", "papers", "--model", "nobody's"], 2, "whose model"),
        (["process", "papers", "--out", "slip.yaml"], 1, "cannot be written to slip.yaml"),
        (["process", "papers", "--model", "nope:x"], 2, "no provider 'nope'"),
        (["process", "papers", "--schema", "faulty.yaml"], 2, "numbr"),
        (["documents", "show", "01a1"], 2, "6 digits or more"),
        (["show", "bill.pdf", "--output", "page.jpg"], 2, "ends in .png"),
        (["documents", "show", "01a1e229"], 2, "no document"),
        (["documents", "expire"], 0, "0 originals expired"),
    ],
)
def test_what_cannot_be_done_is_said(office: Mill, arguments: list[str], code: int, said: str) -> None:
    office.write("faulty.yaml", "fields: {weight: {type: numbr}}\n")
    answer = office(*arguments)
    assert (answer.code, said in answer.out + answer.err) == (code, True), answer


def test_a_path_that_names_nothing_is_told_before_the_work_and_costs_the_others_nothing(office: Mill) -> None:
    answer = office("process", "papers/moved.pdf", "papers/bill.pdf", "inboxx/", "--schema", "slip.yaml", "--json")
    assert answer.code == 1
    gone, bill, nowhere = answer.data
    assert (gone["file"], gone["status"], gone["error"]["code"]) == ("papers/moved.pdf", "failed", "file_not_found")
    assert (bill["file"], bill["status"], bill["error"]) == ("papers/bill.pdf", "completed", None)
    assert nowhere["error"] == {"code": "file_not_found", "message": "There is no folder inboxx/. Check the path."}
    assert "note: There is no folder inboxx/" in answer.err
    # It is a mistake in the command and no document: nothing is listed, nothing can be retried or removed.
    assert gone.keys() == bill.keys()
    assert [row["id"] for row in (gone, nowhere)] == [None, None]
    assert [row["id"] for row in office("documents", "list", "--all", "--json").data] == [bill["id"]]


def test_paths_that_all_name_nothing_are_rows_too_and_nothing_is_stored(office: Mill) -> None:
    answer = office("process", "none.pdf", "nor/this.pdf", "--json")
    assert (answer.code, [(row["file"], row["error"]["code"]) for row in answer.data]) == (
        1,
        [("none.pdf", "file_not_found"), ("nor/this.pdf", "file_not_found")],
    )
    told = office("process", "none/")
    assert (told.code, "There is no folder none/" in told.out) == (1, True)
    assert office("documents", "list", "--all", "--json").data == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_waiting_for_whoever_writes_into_a_pipe_can_be_interrupted(office: Mill, number: signal.Signals) -> None:
    os.mkfifo(office.folder / "pipe")
    with (
        office.started("process", "papers/bill.pdf", "pipe") as running,
        (office.folder / "pipe").open("wb", buffering=0) as writer,  # Opens once the other end is open.
    ):
        writer.write(BILL[:10])
        running.signal(number)
        answer = running.end()
    assert (answer.code, "The same command goes on from here" in answer.err) == (130, True), answer


def test_a_second_interrupt_ends_at_once_with_one_line_and_the_same_command_goes_on(office: Mill) -> None:
    command = ("process", "papers/bill.pdf", "--schema", "slip.yaml", "--model", "counting:any", "--json")
    with office.having(SILENT="1").started(*command) as running:
        until((office.folder / "counted").exists, what="a model that is asked")
        running.signal(signal.SIGINT)
        running.says("Ctrl-C once more ends at once")
        running.signal(signal.SIGINT)
        answer = running.end()
    assert (answer.code, answer.out) == (130, "")
    _, after = answer.err.split("Ctrl-C once more ends at once.\n")
    assert after == "Interrupted. The same command goes on from here.\n"
    (row,) = office(*command).data
    assert (row["status"], row["variant"]) == ("completed", "counting:any")


def test_whoever_writes_outputs_elsewhere_is_told_how_they_are_asked(office: Mill) -> None:
    told = office("process", "papers/bill.pdf", "--schema", "slip.yaml", "--out", "results").err
    assert "`docmill query --from results` and `export --from results` ask them" in told
    spaced = office("process", "papers/bill.pdf", "--schema", "slip.yaml", "--out", "of may").err
    assert "`docmill query --from 'of may'` and `export --from 'of may'` ask them" in spaced
    assert "\x1b" not in office("process", "papers/bill.pdf", "--schema", "slip.yaml", "--out", "red\x1b[31m").err
    assert "--from" not in office("process", "papers/bill.pdf", "--schema", "slip.yaml").err
    listed = office("documents", "list").out
    assert "ERROR" not in listed
    assert office("process", "papers/notes.txt").code == 1
    head, first, _ = office("documents", "list").out.splitlines()
    assert head.split() == ["DOCUMENT", "STATUS", "FILE", "TYPE", "ERROR", "SURE", "CREATED"]
    assert "unsupported_file" in first


def test_a_picture_of_a_page_goes_into_no_folder_that_is_not_there(office: Mill) -> None:
    assert office("process", "papers/bill.pdf", "--schema", "slip.yaml").code == 0
    refused = office("show", "papers/bill.pdf", "--output", "nope/bill.png", "--json")
    assert (refused.code, refused.error["code"]) == (1, "output_unwritable")
    assert not (office.folder / "nope").exists()


def test_a_document_is_found_by_its_file(office: Mill) -> None:
    (office.folder / "filed").mkdir()
    (office.folder / "filed" / "a-bill.pdf").write_bytes(BILL)
    (made,) = office("process", "filed", "--schema", "slip.yaml", "--json").data
    for name in ("filed/a-bill.pdf", "a-bill.pdf"):
        assert office("documents", "show", name, "--json").data["id"] == made["id"]
    assert office("documents", "show", "another-bill.pdf").code == 2


def test_a_mistake_in_the_settings_is_told_before_the_work_and_fails_no_document(office: Mill) -> None:
    office.write("docmill.yaml", "fields: {invoice: {totl: {required: true}}, invoyce: {total: {pattern: '(['}}}\n")
    before = office("documents", "list", "--json").data
    answer = office("process", "papers", "--json")
    (office.folder / "docmill.yaml").unlink()
    assert (answer.code, answer.error["code"]) == (2, "settings_invalid")
    assert {"fields.invoice.totl", "fields.invoyce"} <= {
        mistake.partition(":")[0] for mistake in answer.error["details"]["mistakes"]
    }
    assert office("documents", "list", "--json").data == before


def test_files_that_failed_are_told_tried_again_and_removed(bare: Mill) -> None:
    mill = bare.having(DOCMILL_PLUGINS="")
    (mill.folder / "inbox").mkdir()
    (mill.folder / "inbox" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    paper = invoice_pdf(2)
    paper.write(mill.folder / "inbox")
    assert mill("process", "inbox").code == 1
    listed = mill("documents", "list", "--status", "failed")
    assert "damaged_file" in listed.out
    assert "docmill documents retry" in listed.err
    again = mill("documents", "retry", "broken.pdf", "--json")
    assert (again.code, again.data[0]["error"]["code"]) == (1, "damaged_file")
    refused = mill("documents", "retry", paper.name, "--json")
    assert (refused.code, refused.error["code"]) == (2, "wrong_use")
    # One of several that cannot be tried again: none is begun, which nobody would then work on.
    assert mill("documents", "retry", "broken.pdf", paper.name, "--json").error["code"] == "wrong_use"
    assert [each["status"] for each in mill("documents", "list", "--status", "failed", "--json").data] == ["failed"]
    stays = mill("documents", "remove", paper.name, "--json")
    assert (stays.code, stays.error["code"]) == (1, "not_discardable")
    assert mill("documents", "remove", "--json").error["code"] == "wrong_use"
    assert mill("documents", "remove", "--failed", "--json").data == {"removed": 1}
    assert [each["file_name"] for each in mill("documents", "list", "--json").data] == [paper.name]


def test_what_failed_because_of_a_limit_is_read_when_the_limit_is_raised(bare: Mill) -> None:
    mill = bare.having(DOCMILL_PLUGINS="")
    (mill.folder / "book.pdf").write_bytes(text_pdf(*([(50.0, 700.0, f"Page {number}")] for number in range(3))))
    strict = mill.having(DOCMILL_DOCUMENTS__MAX_PAGES="2")
    (record,) = strict("process", "book.pdf", "--json").data
    assert record["error"]["code"] == "too_many_pages"
    (mill.folder / "notes.txt").write_text("no document")
    assert mill("process", "notes.txt").code == 1
    again = mill("documents", "retry", "--failed", "--json")
    # A file of no kind that is read was not kept, so it cannot be tried; not a word would look as if it had been.
    assert "of 1 failed document no bytes were kept" in again.err
    (mended,) = again.data
    assert (mended["id"], mended["status"], mended["error"]) == (record["id"], "completed", None)


def test_a_document_is_read_once_more_by_another_schema_or_model(office: Mill) -> None:
    (first,) = office("process", "papers/bill.pdf", "--schema", "slip.yaml", "--json").data
    (office.folder / "papers" / "bill.pdf").unlink()
    (again,) = office("documents", "reprocess", first["id"], "--json").data
    assert (again["id"], again["status"]) == (first["id"], "completed")
    office.write("note.yaml", SCHEMA.replace("name: slip", "name: note").replace("  number:", "  mark:"))
    answer = office("documents", "reprocess", first["id"], "--schema", "note.yaml", "--json")
    (other,) = answer.data
    assert (answer.code, other["status"], other["schema"]) == (0, "completed", "note")
    assert (other["id"] != first["id"], other["file_name"]) == (True, "bill.pdf")
    (asked,) = office("documents", "reprocess", first["id"], "--model", "counting:one", "--json").data
    assert (asked["schema"], asked["reader"]) == ("slip", "combined")
    for arguments, code in (
        ([], "wrong_use"),
        ([first["id"], "--schema", "nonsense"], "not_found"),
        ([first["id"], "--model", "nope:x"], "invalid_input"),
    ):
        assert office("documents", "reprocess", *arguments, "--json").error["code"] == code


def test_what_a_limit_cut_short_does_not_answer_once_the_limit_is_raised(bare: Mill) -> None:
    mill = bare.having(DOCMILL_PLUGINS="")
    mill.write("slip.yaml", SCHEMA)
    first, second = Image.new("L", (300, 200), 255), Image.new("L", (300, 200), 255)
    first.save(mill.folder / "two.tif", save_all=True, append_images=[second])
    command = ("process", "two.tif", "--schema", "slip.yaml", "--json")
    strict = mill.having(DOCMILL_DOCUMENTS__MAX_FRAMES="1")
    cut, again = strict(*command).data + strict(*command).data
    assert (cut["status"], again["duplicate_of"]) == ("completed", cut["id"])
    assert cut["notes"] == ["The image has more than 1 frames; the others were left out."]
    # Under another schema the same reading would do; raised, neither does.
    (other,) = mill("process", "two.tif", "--schema", "invoice", "--json").data
    whole, copy = mill(*command).data + mill(*command).data
    assert [(each["status"], each["notes"]) for each in (other, whole)] == [("completed", other["notes"])] * 2
    assert "left out" not in str(other["notes"])
    assert (copy["status"], copy["duplicate_of"]) == ("duplicate", whole["id"])
    # And what is whole answers under any limit.
    assert [row["duplicate_of"] for row in strict(*command).data] == [whole["id"]]


def test_a_model_that_stays_away_is_told_ends_the_run_and_costs_nothing_once_it_is_back(office: Mill) -> None:
    away = office.folder / "away"
    away.touch()
    letters = office.folder / "letters"
    letters.mkdir()
    for number in range(8):
        (letters / f"{number}.pdf").write_bytes(letter(f"Invoice {number}\nTotal 12.50"))
    shop = office.having(
        AWAY=str(away),
        DOCMILL_PROCESSING__RETRY__BASE_DELAY_SECONDS="0.5",
        DOCMILL_PROCESSING__RETRY__MAX_RETRIES="9",
        DOCMILL_PROCESSING__CIRCUIT_BREAKER__RECOVERY_TIMEOUT_SECONDS="1",
        DOCMILL_AI__RATE="1000",
    )
    command = ("process", "letters", "--schema", "slip.yaml", "--model", "counting:one")
    given_up = shop(*command)
    assert (given_up.code, given_up.out) == (1, ""), given_up
    assert "counting:one cannot be reached; next try in 1 s\n" in given_up.err
    assert "(Connection refused). 5 tries one after the other failed; 0 of 8 documents are done" in given_up.err
    assert "same command goes on" in given_up.err
    away.unlink()
    back = shop(*command, "--json")
    assert (back.code, {row["status"] for row in back.data}, len(back.data)) == (0, {"completed"}, 8), back
    assert (office.folder / "counted").read_text() == 8 * "one\n"
    assert len(shop("documents", "list", "--json").data) == 8
