"""The table of `docmill process` in a terminal: what matters stays whole, and what is long stands below."""

import re
import sys
from io import StringIO
from typing import Any

import pytest

from docmill.cli.process_text import print_results
from docmill.model.documents import NothingRead

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(StringIO):
    """Looks like a terminal."""

    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, columns: int, *records: dict[str, Any]) -> list[str]:
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", screen)
    print_results(records)
    return _COLOUR.sub("", screen.getvalue()).splitlines()


def document(file: str, **more: Any) -> dict[str, Any]:
    values = {
        "seller_name": "Gärtnerei Sonnenfeld e.K.",
        "issue_date": "2026-11-16",
        "total": "1234.50",
        "currency": "EUR",
    }
    return {
        "file": file,
        "id": "01a1e269-9511-790e-869d-05cc24d65f51",
        "status": "completed",
        "document_type": "invoice",
        "schema": "invoice",
        "fields": {name: {"value": value} for name, value in values.items()},
        "confidence": 0.84,
        "error": None,
        "duplicate_of": None,
        "checks": [],
        "notes": [],
        **more,
    }


@pytest.mark.parametrize("columns", [80, 110, 149])
def test_status_date_total_and_confidence_are_never_cut(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    _, first, *_ = printed(
        monkeypatch, columns, document("inbox/a-rather-long-name-of-a-file.pdf"), document("inbox/b.pdf")
    )
    for whole in ("completed", "invoice", "2026-11-16", "1234.50 EUR", "84%"):
        assert whole in first
    assert len(first) <= columns


def test_a_wide_terminal_shows_the_ids_too(monkeypatch: pytest.MonkeyPatch) -> None:
    _, row, _ = printed(monkeypatch, 160, document("bill.pdf"))
    assert "01a1e269-9511-790e-869d-05cc24d65f51" in row


def test_the_folder_of_all_files_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, 110, document("inbox/a.pdf"), document("inbox/more/b.pdf"))
    assert [line.split()[0] for line in lines[1:3]] == ["a.pdf", "more/b.pdf"]


def test_an_error_is_told_to_its_end_below_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "This is plain text. " * 8 + "Convert it."
    failed = {
        "status": "failed",
        "fields": {},
        "confidence": None,
        "error": {"code": "unsupported_file", "message": message},
    }
    lines = printed(monkeypatch, 80, document("notes.txt", **failed))
    told = " ".join(line.strip() for line in lines[2:-2])
    assert told == f"- notes.txt: unsupported_file: {message}"
    assert lines[-1] == "1 document: 1 failed."


def test_in_a_pipe_one_long_name_does_not_widen_the_table_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    print_results([document("inbox/" + "a" * 240 + ".pdf"), document("b.pdf")])
    _, first, second, *_ = pipe.getvalue().splitlines()
    assert first.startswith("inbox/aaa")
    assert "….pdf" not in first
    assert "…" in first
    assert ".pdf  completed" in first
    assert second.index("completed") == first.index("completed") <= 102


def test_a_narrow_terminal_shows_which_file_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    head, first, *_ = printed(monkeypatch, 80, document("invoice-of-november-2026.pdf"), document("b.pdf"))
    assert first.startswith("invoice-of-november")
    assert "FROM" not in head
    assert "FROM" in printed(monkeypatch, 130, document("invoice-of-november-2026.pdf"))[0]


def test_a_failed_check_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("Total", "Currency", "Seller", "Number", "Date")
    checks = [
        {"name": "range", "passed": True, "message": "Tax is in range.", "fields": ["tax"]},
        *(
            {"name": "required", "passed": False, "message": f"{name} was not found.", "fields": [name.lower()]}
            for name in names
        ),
    ]
    told = printed(monkeypatch, 110, document("a.pdf", checks=checks[:3]))[2]
    assert told == "- a.pdf: Total was not found. Currency was not found."
    many = printed(monkeypatch, 110, document("a.pdf", checks=checks))[2]
    assert many.endswith("Seller was not found. And 2 checks more.")


def test_ids_take_no_room_from_values(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "Vereinigte Gärtnereien Sonnenfeld und Söhne GmbH & Co. KG"
    lines = printed(monkeypatch, 150, document("bill.pdf", fields={"seller_name": {"value": long}}))
    assert long in lines[1]
    assert "ID" not in lines[0].split()


def test_copies_do_not_bury_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, 100, document("a.pdf", status="duplicate", duplicate_of="01a1"), document("b.pdf"))
    assert not [line for line in lines if line.startswith("- ")]


def test_what_is_wrong_with_the_original_is_told_of_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"name": "total_adds_up", "passed": False, "message": "subtotal + tax = 12.00, total = 13.00."}
    copy = {"status": "duplicate", "duplicate_of": "01a1"}
    lines = printed(monkeypatch, 100, document("a.pdf", checks=[failed], **copy), document("b.pdf", **copy))
    assert [line for line in lines if line.startswith("- ")] == [
        "- a.pdf: duplicate of 01a1: subtotal + tax = 12.00, total = 13.00."
    ]


def test_a_copy_is_told_with_what_it_is_a_copy_of(monkeypatch: pytest.MonkeyPatch) -> None:
    original = document("a.pdf")
    copies = [
        document("b.pdf", status="duplicate", duplicate_of=original["id"], id="01b"),
        document("c.pdf", status="duplicate", duplicate_of="01a1f0", id="01c"),
    ]
    assert "Copies: b.pdf of a.pdf, c.pdf of 01a1f0." in printed(monkeypatch, 100, original, *copies)


def test_what_is_said_of_several_files_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"code": "unsupported_file", "message": "This is plain text."}
    failed = [document(name, status="failed", error=error) for name in ("a.txt", "b.txt")]
    lines = printed(monkeypatch, 100, *failed, document("c.pdf"))
    assert [line for line in lines if line.startswith("- ")] == [
        "- a.txt, b.txt: unsupported_file: This is plain text."
    ]


def test_of_many_files_of_which_the_same_is_said_the_first_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"code": "unsupported_file", "message": "This is plain text."}
    failed = [document(f"{number}.txt", status="failed", error=error) for number in range(1200)]
    lines = printed(monkeypatch, 120, *failed)
    assert [line for line in lines if line.startswith("- ")] == [
        "- 0.txt, 1.txt, 2.txt, and 1197 more (`--json` names all): unsupported_file: This is plain text."
    ]


@pytest.mark.parametrize(
    ("kind", "note", "said"),
    [
        ("other", NothingRead.UNKNOWN, "it is of no known type; --schema NAME reads it all the same"),
        ("delivery_note", NothingRead.NO_SCHEMA, "there is no schema for papers of the type delivery note; --schema"),
        ("other", NothingRead.EMPTY, "the page is empty"),
        ("other", NothingRead.HARDLY, "hardly anything can be read on it; photograph or scan it again"),
    ],
)
def test_why_nothing_was_extracted_is_told_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, kind: str, note: NothingRead, said: str
) -> None:
    one = document("a.pdf", schema=None, document_type=kind, fields={}, confidence=None, notes=[note.value])
    assert f"- a.pdf: nothing extracted: {said}" in "\n".join(printed(monkeypatch, 200, one))


def test_what_nothing_was_extracted_from_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = document("novel.epub", schema=None, document_type="other", fields={}, confidence=None)
    assert any("nothing extracted" in line for line in printed(monkeypatch, 100, nothing))


def test_in_a_pipe_names_are_whole_and_every_column_has_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    long = "Vereinigte Gärtnereien Sonnenfeld und Söhne GmbH & Co. KG"
    print_results([document("b.pdf", fields={"seller_name": {"value": long}})])
    head, first, *_ = pipe.getvalue().splitlines()
    assert long in first
    assert head.endswith("NOTE")
