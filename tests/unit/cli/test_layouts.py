"""What lists, answers and figures look like in a terminal: nothing is cut without a word, and hints say what to do."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest

from docmill.bootstrap import App, open_app
from docmill.cli import documents, evaluating, process, query
from docmill.cli.documents import list_documents
from docmill.cli.review_text import item_table
from docmill.documents.records import DocumentRecord, insert_new
from docmill.extraction.scoring import FieldSummary, Summary
from docmill.model.documents import DocumentStatus
from docmill.model.ids import new_id
from docmill.model.review import ReviewStatus, SlaState
from docmill.outputs.querying import Answer
from docmill.review.priority import Breakdown
from docmill.services.review_views import ItemSummary
from docmill.settings import Settings
from tests.contract.mailroom import letter, mailroom

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(StringIO):
    """Looks like a terminal."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> Terminal:
    """One of so many columns, in the place of the standard output."""
    made = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", made)
    return made


def lines(screen: Terminal) -> list[str]:
    return _COLOUR.sub("", screen.getvalue()).splitlines()


@contextmanager
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """An installation that commands find."""
    monkeypatch.setenv("DOCMILL_HOME", str(folder / "home"))
    monkeypatch.delenv("DOCMILL_DATABASE_URL", raising=False)
    monkeypatch.chdir(folder)
    url = f"sqlite:///{folder / 'home' / 'docmill.db'}"
    with open_app(Settings(home=folder / "home", database_url=url), check_schema=False) as app:
        app.upgrade()
        yield app


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two documents of an installation in which nobody works."""
    with installed(tmp_path, monkeypatch):
        pass
    with mailroom(f"sqlite:///{tmp_path / 'home' / 'docmill.db'}", tmp_path) as room:
        return room.submit(*(room.put(f"{name}.pdf", letter(name)) for name in ("one", "two")))


def test_a_narrow_list_of_documents_has_short_ids_that_tell_them_apart(
    waiting: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = terminal(monkeypatch, 80)
    assert list_documents() == 0
    head, *rows = lines(screen)
    assert head.split() == ["DOCUMENT", "STATUS", "FILE", "TYPE", "SURE"]
    shown = [row.split()[0] for row in rows]
    assert len(set(shown)) == 2
    assert all(any(each.startswith(short) and len(short) < len(each) for each in waiting) for short in shown)
    assert {row.split()[2] for row in rows} == {"one.pdf", "two.pdf"}
    told = capsys.readouterr().err
    assert "2 documents not done, and nobody works on them" in told
    assert "docmill worker" in told


def test_a_wide_list_of_documents_has_whole_ids_and_times(waiting: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, 160)
    assert list_documents() == 0
    head, *rows = lines(screen)
    assert head.split()[-1] == "CREATED"
    assert {row.split()[0] for row in rows} == set(waiting)


@pytest.mark.parametrize(
    ("status", "everything", "listed", "noted"),
    [
        (None, False, ["completed"], True),
        (None, True, ["completed", "duplicate", "duplicate"], False),
        (DocumentStatus.DUPLICATE, False, ["duplicate", "duplicate"], False),
        (DocumentStatus.COMPLETED, False, ["completed"], False),
    ],
)
def test_duplicates_are_counted_and_listed_only_if_they_are_asked_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: DocumentStatus | None,
    everything: bool,
    listed: list[str],
    noted: bool,
) -> None:
    with installed(tmp_path, monkeypatch) as app:
        original = new_id()
        copies = {"status": DocumentStatus.DUPLICATE, "duplicate_of": original}
        records = [
            DocumentRecord(
                id=original if each == 0 else new_id(),
                org_id=app.org_id,
                file_name=f"{each}.pdf",
                created_at=datetime(2026, 11, 16, each, tzinfo=UTC),
                **({"status": DocumentStatus.COMPLETED} if each == 0 else copies),
            )
            for each in range(3)
        ]
        with app.database.scoped(app.org_id).write() as connection:
            insert_new(connection, records)
    screen = terminal(monkeypatch, 80)
    assert list_documents(status=status, everything=everything) == 0
    assert sorted(row.split()[1] for row in lines(screen)[1:]) == listed
    assert ("2 duplicates left out; --all" in capsys.readouterr().err) is noted
    assert list_documents(status=status, everything=everything, json=True) == 0
    assert ("2 duplicates left out; --all" in capsys.readouterr().err) is noted


def test_a_check_is_told_to_its_end_on_as_many_lines_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, 60)
    message = "Subtotal and tax do not make the total. " * 3 + "Here: 1 + 2 = 4."
    documents._print_checks([{"name": "total_adds_up", "passed": False, "message": message}], [])
    first, *rest = lines(screen)
    assert first.startswith("fail total_adds_up: ")
    assert len(rest) >= 2
    assert all(line.startswith("     ") and len(line) <= 60 for line in rest)
    assert " ".join(" ".join([first, *rest]).split()) == f"fail total_adds_up: {message}"


def test_columns_that_do_not_fit_are_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = terminal(monkeypatch, 40)
    names = ["file_name", "seller_name", "invoice_number", "total"]
    answer = Answer(columns=tuple((name, "VARCHAR") for name in names), rows=(("x" * 30,) * 4,), complete=True)
    query._print(answer)
    heads = lines(screen)[0].split()
    left = [name for name in names if name.upper() not in [head.upper() for head in heads]]
    assert heads
    assert left
    assert all(len(line) <= 40 for line in lines(screen))
    assert f"too narrow for {', '.join(left)}" in capsys.readouterr().err


def test_an_empty_folder_is_told_with_what_is_passed_over(
    waiting: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".hidden.pdf").write_bytes(letter("nobody sees it"))
    assert process.process((str(tmp_path / "empty"),)) == 0
    assert "No files were found there. Hidden files are passed over unless they are named." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("visible", "failed", "threshold", "told"),
    [
        (
            0.975,
            0,
            0.9,
            "140 documents: 97.5% of the values that can be seen on the page are right, 90.0% of all labels; "
            "25% of the documents could pass untouched: from confidence 0.90 on, 99 % of the values that can be seen "
            "are right.",
        ),
        (
            None,
            1,
            None,
            "140 documents: 90.0% of the labels are right; 1 document could not be read; "
            "no confidence is high enough for 99 % of values to be right.",
        ),
    ],
)
def test_figures_are_told_in_words(visible: float | None, failed: int, threshold: float | None, told: str) -> None:
    summary = Summary(
        documents=140,
        failed=failed,
        exact_f1=0.9,
        loose_mean=0.9,
        micro=0.9,
        micro_visible=visible,
        by_field={"total": FieldSummary(n=40, exact=0.9, loose=0.9)},
        by_layout={},
        auroc=0.9,
        ece=0.03,
        straight_through_99=0.25,
        threshold_99=threshold,
    )
    assert evaluating._told(summary) == told


def summary(name: str, **about: object) -> ItemSummary:
    """An open item."""
    told: dict[str, object] = {field.name: None for field in fields(ItemSummary)}
    told |= {"id": new_id(), "file_name": name, "status": ReviewStatus.PENDING, "schema": "invoice"}
    told |= {"priority": Breakdown(priority=0.5, doubt=0.5, proximity=0, complexity=0, value=0)}
    told |= {"fields_total": 31, "fields_to_review": 4, "due_at": MOMENT, "sla_state": SlaState.ON_TRACK}
    return ItemSummary(**{**told, **about})  # type: ignore[arg-type]


MOMENT = datetime(2026, 11, 18, 12, tzinfo=UTC)


def test_a_narrow_list_of_items_names_them_by_their_files_and_says_how_long_is_left(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = terminal(monkeypatch, 80)
    busy = {"status": ReviewStatus.IN_REVIEW, "claimed_by": "ann", "claimed_by_name": "Ann Miller"}
    item_table(
        [summary("invoice-0001.pdf"), summary("a" * 60 + ".pdf", **busy), summary("c.pdf", due_at=None)],
        MOMENT - timedelta(hours=3),
    )
    head, *rows = lines(screen)
    assert head.split() == ["FILE", "STATUS", "PRIORITY", "TO", "LOOK", "AT", "DUE", "WHO"]
    assert all(len(line) <= 80 for line in (head, *rows))
    assert rows[0].split() == ["invoice-0001.pdf", "pending", "0.50", "4", "of", "31", "in", "3", "h"]
    assert rows[1].endswith("Ann Miller")
    assert rows[1].startswith("aaaaaaaaaaaaaaaaa")
    assert capsys.readouterr().err == "note: no room for SCHEMA and ITEM; widen the terminal, or take --json.\n"


def test_items_of_files_with_one_name_are_told_apart_by_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, 80)
    both = [summary("bill.pdf"), summary("bill.pdf")]
    item_table(both, MOMENT + timedelta(days=3))
    head, *rows = lines(screen)
    assert all(len(line) <= 80 for line in (head, *rows))
    assert [each.id.startswith(row.split()[-1]) for each, row in zip(both, rows, strict=True)] == [True, True]
    assert len({row.split()[-1] for row in rows}) == 2
    assert "3 d late" in rows[0]


def test_a_wide_list_of_items_has_whole_ids_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, 160)
    item = summary("bill.pdf")
    item_table([item], MOMENT)
    head, row = lines(screen)
    assert head.split()[-2:] == ["SCHEMA", "ITEM"]
    assert row.split()[-2:] == ["invoice", item.id]
