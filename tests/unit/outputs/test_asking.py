"""Outputs can be asked in SQL and exported, and nothing else can be reached on the way."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from docmill.extraction.result import Extraction, Reader
from docmill.model.ids import DEFAULT_ORG
from docmill.outputs import gathering
from docmill.outputs.exporting import Choice, Export, ExportFormat
from docmill.outputs.gathering import Known, NothingYet, OutputDamaged, gather
from docmill.outputs.places import OutputSettings
from docmill.outputs.querying import Outputs, QueryInvalid
from docmill.outputs.writing import write
from docmill.testing import papers

from .samples import CAME_IN, INVOICE, RECEIPT, Facts, extraction, filled, found, one


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outputs]:
    with Outputs(filled(tmp_path_factory.mktemp("outputs"))) as outputs:
        yield outputs


def test_there_is_a_table_for_each_kind_of_question(outputs: Outputs) -> None:
    assert one(outputs, "SELECT count(*) FROM documents") == 3
    assert one(outputs, "SELECT sum(total) FROM invoices WHERE status = 'completed'") == INVOICE.fields["total"]
    assert one(outputs, "SELECT company FROM receipts") == RECEIPT.fields["company"]
    assert (
        one(outputs, "SELECT description FROM line_items WHERE document_id = 'a1' AND line = 2")
        == (INVOICE.rows["line_items"][1]["description"])
    )
    assert (
        one(outputs, "SELECT value FROM fields WHERE name = 'due_date' AND document_id = 'a1'")
        == (INVOICE.fields["due_date"])
    )
    assert one(outputs, "SELECT confidences['total'] FROM invoices LIMIT 1") == 0.9
    assert "tax_lines" in [view.name for view in outputs.views]


def test_a_schema_of_ones_own_has_a_table(settings: OutputSettings) -> None:
    write(replace(extraction(INVOICE), schema="parcel"), Facts(id="d4"), settings, CAME_IN)
    with Outputs(settings) as outputs:
        assert one(outputs, "SELECT seller_name FROM parcels") == INVOICE.fields["seller_name"]


def test_of_two_organisations_one_sees_only_its_own(settings: OutputSettings) -> None:
    theirs = "00000000-0000-7000-8000-0000000000aa"
    without: list[dict[str, Any]] = [
        {"id": f"w{number}", "org_id": org, "file_name": "bad.pdf", "status": "failed", "created_at": CAME_IN}
        for number, org in enumerate((DEFAULT_ORG, theirs))
    ]
    write(replace(extraction(INVOICE), schema="parcel"), Facts(id="d4", org_id=theirs), settings, CAME_IN)
    counted = "SELECT count(*) FROM "
    with Outputs(settings, known=Known(without=lambda: without), org_id=DEFAULT_ORG) as ours:
        assert one(ours, counted + "documents") == 4
        assert one(ours, counted + "documents WHERE org_id = '" + theirs + "'") == 0
        assert "parcels" not in [view.name for view in ours.views]
    with Outputs(settings, known=Known(without=lambda: without), org_id=theirs) as others:
        assert others.ask("SELECT id FROM documents ORDER BY id").rows == (("d4",), ("w1",))
        lines = one(others, counted + "line_items"), one(others, counted + "line_items WHERE document_id = 'd4'")
        assert lines[0] == lines[1] == len(INVOICE.rows["line_items"])
        assert one(others, counted + "fields WHERE document_id <> 'd4'") == 0


def test_tables_of_shipped_schemas_are_there_without_documents(tmp_path: Path) -> None:
    settings = OutputSettings(root=tmp_path)
    write(extraction(RECEIPT), Facts(id="b2"), settings, CAME_IN)
    with Outputs(settings) as outputs:
        assert outputs.ask("SELECT invoice_number, total FROM invoices").rows == ()


FORBIDDEN = (
    "COPY documents TO 'copied.csv'",
    "CREATE TABLE mine AS FROM documents",
    "DELETE FROM documents",
    "SET memory_limit = '64GB'",
    "INSTALL httpfs",
    "ATTACH 'other.db'",
    "SELECT 1; SELECT 2",
    "SELECT * FROM 'secret.csv'",
    "SELECT * FROM read_csv('secret.csv')",
    "SELECT * FROM read_text('secret.csv')",
    "SELECT * FROM glob('*')",
    "SELECT * FROM read_parquet('https://example.com/x.parquet')",
    "SELECT settings FROM settings",
    "PRAGMA enable_external_access",
)


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_nothing_but_the_outputs_can_be_reached(
    outputs: Outputs, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret.csv").write_text("secret\n1\n")
    with pytest.raises(QueryInvalid):
        outputs.ask(sql)
    assert not Path("copied.csv").exists()
    assert one(outputs, "SELECT count(*) FROM documents") == 3


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT toal FROM invoices", "total"),
        ("SELECT * FROM invoice", "invoices"),
        ("SELEC 1", "syntax error"),
        ("", "single SELECT"),
        ("SELECT now()", "Cast it"),
    ],
)
def test_a_mistake_is_told_with_its_remedy(outputs: Outputs, sql: str, told: str) -> None:
    with pytest.raises(QueryInvalid, match=told):
        outputs.ask(sql)


def test_more_rows_than_asked_for_are_noticed(outputs: Outputs) -> None:
    assert len(outputs.ask("FROM documents", limit=2).rows) == 2
    assert not outputs.ask("FROM documents", limit=2).complete
    assert outputs.ask("FROM documents", limit=3).complete


def test_where_there_is_nothing_yet_it_is_said_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NothingYet, match="docmill process"):
        gather(OutputSettings(root=tmp_path), None)


def test_a_damaged_file_is_named(settings: OutputSettings) -> None:
    damaged = next(settings.root.rglob("b2.parquet"))
    damaged.write_bytes(b"PAR1 no more")
    with pytest.raises(OutputDamaged, match=r"b2\.parquet"):
        gather(settings, None)


def test_what_was_read_before_is_not_read_again_and_changes_are_seen(
    settings: OutputSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "_WORTH_KEEPING", 2)
    monkeypatch.setattr(gathering, "_MOST_PARTS", 2)
    read: list[list[str]] = []
    pack = gathering._pack

    def watched(connection: Any, files: list[str], target: Path) -> None:
        read.append(files)
        pack(connection, files, target)

    monkeypatch.setattr(gathering, "_pack", watched)
    cache = tmp_path / "cache"

    def documents() -> list[tuple[str, str]]:
        with gather(settings, cache) as connection:
            rows = connection.execute("SELECT id, CAST(total AS varchar) FROM documents ORDER BY id").fetchall()
            return [(id, total) for id, total in rows]

    first = documents()
    assert documents() == first
    assert len(read) == 1
    for number in range(4):
        id = f"n{number}"
        write(extraction(INVOICE, total=found(f"{number}.5")), Facts(id=id), settings, CAME_IN)
        write(extraction(INVOICE, total=found(f"{number}.25")), Facts(id="a1"), settings, CAME_IN)
        now = dict(documents())
        assert (now["a1"], now[id]) == (f"{number}.2500", f"{number}.5000")
    next(settings.root.rglob("b2.parquet")).unlink()
    assert [id for id, _ in documents()] == ["a1", "c3", "n0", "n1", "n2", "n3"]
    assert len(list(cache.rglob("*.parquet"))) <= 3


def test_a_file_that_goes_while_it_is_looked_at_is_left_out(
    settings: OutputSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = gathering._listed

    def and_gone(settings: OutputSettings) -> dict[str, str]:
        found = listed(settings)
        for file in settings.root.rglob("b2.parquet"):
            file.unlink()
        return found

    monkeypatch.setattr(gathering, "_listed", and_gone)
    with gather(settings, None) as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (2,)


def test_each_document_counts_once_by_its_newest_result(tmp_path: Path) -> None:
    """Copies, and what a changed setting or schema made of the same bytes before, are not summed up again."""
    settings = OutputSettings(root=tmp_path)
    for day, (name, status, of) in enumerate(
        [("a1", "completed", None), ("a2", "duplicate", "a1"), ("a3", "completed", None), ("a4", "duplicate", "a3")]
    ):
        came = CAME_IN + timedelta(days=day)
        write(extraction(INVOICE), Facts(id=name, status=status, duplicate_of=of, created_at=came), settings, came)
    write(extraction(INVOICE), Facts(id="b1", sha256="cd" * 32), settings, CAME_IN)
    with Outputs(settings) as outputs:
        twice = str(2 * Decimal(INVOICE.fields["total"] or ""))
        assert one(outputs, "SELECT sum(total) FROM invoices") == twice
        for table in ("invoices", "line_items", "fields"):
            key = "id" if table == "invoices" else "document_id"
            rows = outputs.ask(f"SELECT DISTINCT {key} FROM {table} ORDER BY 1").rows
            assert rows == (("a3",), ("b1",)), table
        listed = outputs.ask("SELECT id, status, current FROM documents ORDER BY id").rows
        assert [row[0] for row in listed if row[2]] == ["a3", "b1"]
        assert len(listed) == 5
    with Outputs(settings, everything=True) as outputs:
        assert one(outputs, "SELECT count(*) FROM invoices") == 5
        assert one(outputs, "SELECT count(DISTINCT document_id) FROM line_items WHERE NOT current") == 3
    export = Export(gather(settings, None), Choice())
    assert (export.count(), export.left_out()) == (2, 3)


def test_the_result_whose_question_was_asked_last_counts(tmp_path: Path) -> None:
    """Settings that are taken back make a copy of what was read under them: that result is what holds again."""
    settings = OutputSettings(root=tmp_path)
    came = [("a1", None), ("a2", None), ("a3", "a1"), ("a4", "a2"), ("a5", "a1")]
    for day, (name, of) in enumerate(came):
        at, status = CAME_IN + timedelta(days=day), "duplicate" if of else "completed"
        write(extraction(INVOICE), Facts(id=name, status=status, duplicate_of=of, created_at=at), settings, at)
        with Outputs(settings) as outputs:
            rows = outputs.ask("SELECT id FROM documents WHERE current").rows
        assert rows == ((of or name,),), name
    # At the same moment the later id is the later document.
    write(extraction(INVOICE), Facts(id="a6", created_at=at), settings, at)
    with Outputs(settings) as outputs:
        assert one(outputs, "SELECT id FROM invoices") == "a6"


def test_a_copy_stands_for_a_result_that_lies_elsewhere(tmp_path: Path) -> None:
    """Processed before into another folder, all that is in this one are copies."""
    settings = OutputSettings(root=tmp_path)
    for name in ("c1", "c2"):
        write(extraction(INVOICE), Facts(id=name, status="duplicate", duplicate_of="a1"), settings, CAME_IN)
    with Outputs(settings) as outputs:
        assert one(outputs, "SELECT count(*) FROM invoices") == 1


def test_what_nothing_was_extracted_from_is_a_document_and_no_invoice(settings: OutputSettings) -> None:
    nothing = Extraction(schema="", schema_version="", reader=Reader.LOCAL, document_type="other")
    write(nothing, Facts(id="e5", sha256="ee" * 32), settings, CAME_IN)
    with Outputs(settings) as outputs:
        row = outputs.ask("SELECT status, document_type, schema, confidence FROM documents WHERE id = 'e5'").rows
        assert row == (("completed", "other", None, None),)
        assert one(outputs, "SELECT count(*) FROM invoices WHERE id = 'e5'") == 0
        assert one(outputs, "SELECT count(*) FROM receipts WHERE id = 'e5'") == 0
    assert Export(gather(settings, None), Choice()).count() == 2
    assert Export(gather(settings, None), Choice(duplicates=True)).count() == 4


def test_documents_that_failed_are_listed_too(settings: OutputSettings) -> None:
    failed = {"id": "f6", "status": "failed", "file_name": "broken.pdf", "error_code": "damaged_file"}
    done_again = {"id": "a1", "status": "processing", "file_name": "scan.pdf"}
    with Outputs(settings, known=Known(without=lambda: [failed, done_again])) as outputs:
        rows = outputs.ask("SELECT id, file_name, status, error_code, current FROM documents ORDER BY id").rows
    assert [row[0] for row in rows] == ["a1", "b2", "c3", "f6"]
    assert rows[-1] == ("f6", "broken.pdf", "failed", "damaged_file", False)
    assert rows[0][2] == "completed"


@pytest.mark.parametrize("kind", ["quote", "order", "delivery_note", "statement", "reminder"])
def test_what_nobody_owes_is_not_added_up(settings: OutputSettings, kind: str) -> None:
    promised = replace(extraction(papers.invoice_pdf(7, items=2)), document_type=kind)
    write(promised, Facts(id="q1", sha256="cd" * 32), settings, CAME_IN)
    write(replace(promised, schema="offer"), Facts(id="q2", sha256="ce" * 32), settings, CAME_IN)
    with Outputs(settings) as outputs:
        assert outputs.ask("SELECT id FROM invoices").rows == (("a1",),)
        assert outputs.ask("SELECT id FROM offers").rows == (("q2",),)
        assert one(outputs, "SELECT count(*) FROM line_items WHERE document_id = 'q1'") == 0
        assert one(outputs, "SELECT document_type FROM documents WHERE id = 'q1'") == kind
    with Outputs(settings, everything=True) as outputs:
        assert one(outputs, "SELECT count(*) FROM invoices WHERE id = 'q1'") == 1
    exported = Export(gather(settings, None), Choice(schema="invoice"))
    assert (exported.count(), exported.left_out()) == (1, 2)


def test_lines_are_added_up_by_the_query_in_the_manual_whatever_the_total(tmp_path: Path) -> None:
    settings = OutputSettings(root=tmp_path)
    papers_with_lines = (
        ("i1", "invoice", "100.00", ("110.00", "-10.00")),
        ("i2", "invoice", "0.00", ("5.00", "-5.00")),
        ("i3", "invoice", "", ("7.00",)),
        ("c1", "credit_note", "30.00", ("40.00", "-10.00")),
        ("c2", "credit_note", "-20.00", ("-25.00", "5.00")),
        ("c3", "credit_note", "", ("3.00",)),
    )
    for name, kind, total, amounts in papers_with_lines:
        read = replace(extraction(), document_type=kind, fields={"total": found(total)} if total else {})
        rows = [{"description": found(name), "amount": found(amount)} for amount in amounts]
        write(replace(read, rows={"line_items": rows}), Facts(id=name, sha256=name), settings, CAME_IN)
    (query,) = [text for text in _shown() if "THEN -amount" in text]
    with Outputs(settings) as outputs:
        sums = {str(row[0]): Decimal(str(row[-1])) for row in outputs.ask(query).rows}
    assert sums == {"i1": 100, "i2": 0, "i3": 7, "c1": -30, "c2": -20, "c3": -3}


def _shown() -> list[str]:
    """The queries that the manual shows."""
    manual = Path(__file__).parents[3] / "docs" / "reference" / "outputs.md"
    return [block.split("```")[0] for block in manual.read_text().split("```sql\n")[1:]]


def test_what_is_given_back_is_taken_off_sums_whichever_sign_was_printed(tmp_path: Path) -> None:
    settings = OutputSettings(root=tmp_path)
    # An invoice that is cancelled by one with a minus says what it says, and one without a total says nothing.
    printed = (
        ("i1", "invoice", "100.00"),
        ("c1", "credit_note", "30.00"),
        ("c2", "credit_note", "-20.00"),
        ("i2", "invoice", "-10.00"),
        ("i3", "invoice", ""),
    )
    for name, kind, total in printed:
        read = replace(extraction(), document_type=kind, fields={"total": found(total)} if total else {})
        write(read, Facts(id=name, sha256=name), settings, CAME_IN)
    with Outputs(settings) as outputs:
        assert one(outputs, "SELECT sum(signed_total) FROM invoices") == "40.00"
        assert outputs.ask(
            "SELECT id, total, signed_total FROM documents WHERE id IN ('c1', 'c2') ORDER BY id"
        ).rows == (
            ("c1", "30.00", "-30.00"),
            ("c2", "-20.00", "-20.00"),
        )
        assert one(outputs, "SELECT signed_total FROM invoices WHERE id = 'i3'") is None
    for choice in (Choice(), Choice(schema="invoice")):
        head = next(iter(Export(gather(settings, None), choice).text(ExportFormat.CSV))).splitlines()[0].split(",")
        assert head.index("signed_total") == head.index("total") + 1


def test_a_total_that_is_no_amount_has_no_sign(tmp_path: Path) -> None:
    settings = OutputSettings(root=tmp_path)
    own = replace(
        extraction(), schema="parcel", rows={}, fields={"total": found("two boxes"), "signed_total": found("x")}
    )
    write(own, Facts(id="p1"), settings, CAME_IN)
    with Outputs(settings) as outputs:
        assert outputs.ask("SELECT total, signed_total, field_signed_total FROM parcels").rows == (
            ("two boxes", None, "x"),
        )
