"""From documents to data a person can use: processed, asked in SQL, exported, as the command line does it."""

import csv
import io
import json
from pathlib import Path

import pytest

from docmill.testing import papers
from tests.acceptance.mill import Mill, environment

INVOICE = papers.ubl_xml(3, language="de")
OTHER = papers.cii_xml(4, language="fr")


@pytest.fixture(scope="module")
def processed(tmp_path_factory: pytest.TempPathFactory) -> Mill:
    """Two e-invoices and a copy of the first, processed."""
    folder = tmp_path_factory.mktemp("outputs")
    # Without the plug-in of the other tests, which has documents of its own.
    mill = Mill(folder=folder, environment=environment(folder)).having(DOCMILL_PLUGINS=None)
    for paper in (INVOICE, OTHER):
        paper.write(folder / "inbox")
    answer = mill("process", "inbox")
    assert answer.code == 0, answer.err
    INVOICE.write(folder / "again")
    assert mill("process", "again").code == 0
    return mill


def test_where_nothing_was_processed_yet_it_is_said_what_to_do(bare: Mill) -> None:
    for command in (["query", "SELECT 1"], ["query"], ["export"]):
        answer = bare(*command)
        assert answer.code == 1
        assert "docmill process" in answer.err


def test_outputs_are_asked_in_sql(processed: Mill) -> None:
    answer = processed("query", "SELECT invoice_number, total FROM invoices ORDER BY total", "--json")
    rows = {(row["invoice_number"], row["total"]) for row in answer.data["rows"]}
    assert rows == {(paper.fields["invoice_number"], paper.fields["total"]) for paper in (INVOICE, OTHER)}
    table = processed("query", "SELECT seller_name FROM invoices").out
    assert table.splitlines()[0] == "seller_name"
    assert INVOICE.fields["seller_name"] in table


def test_what_can_be_asked_is_listed(processed: Mill) -> None:
    tables = {table["name"] for table in processed("query", "--json").data["tables"]}
    assert {"documents", "invoices", "receipts", "line_items", "fields"} <= tables
    assert "invoices" in processed("query").out


def test_a_question_with_a_mistake_is_wrong_use(processed: Mill) -> None:
    answer = processed("query", "SELECT toal FROM invoices", "--json")
    assert answer.code == 2
    assert answer.error["code"] == "query_invalid"
    assert "Traceback" not in answer.err


def test_documents_are_exported_to_a_file_that_appears_whole(processed: Mill) -> None:
    out = processed.folder / "books.csv"
    answer = processed("export", "--out", str(out), "--json")
    assert answer.data == {"file": str(out), "format": "csv", "rows": 2, "left_out": 1}
    rows = list(csv.DictReader(io.StringIO(out.read_bytes().decode(), newline="")))
    assert {row["total"] for row in rows} == {paper.fields["total"] for paper in (INVOICE, OTHER)}
    assert not [path for path in processed.folder.iterdir() if path.name.endswith(".tmp")]


def test_line_items_are_exported_to_stdout(processed: Mill) -> None:
    answer = processed("export", "--format", "jsonl", "--items", "--schema", "invoice")
    items = [json.loads(line) for line in answer.out.splitlines()]
    expected = [row["amount"] for paper in (INVOICE, OTHER) for row in paper.rows["line_items"]]
    assert sorted(item["item_amount"] for item in items) == sorted(expected)


def test_an_export_to_stdout_is_utf_8_in_any_locale(processed: Mill) -> None:
    plain, marked = (
        processed.having(PYTHONIOENCODING=encoding).fresh("export", "--excel").out for encoding in ("utf-8", "latin-1")
    )
    assert marked.startswith("\ufefffile_name,")
    assert marked == plain


def test_an_export_in_parquet_can_be_asked_again(processed: Mill, tmp_path: Path) -> None:
    import duckdb

    out = tmp_path / "books.parquet"
    assert processed("export", "--out", str(out), "--all").code == 0
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM '{out}'").fetchone() == (3,)


@pytest.mark.parametrize("words", [("--since", "yesterday"), ("--format", "parquet"), ("--schema", "invoise")])
def test_what_cannot_be_exported_is_wrong_use(processed: Mill, words: tuple[str, ...]) -> None:
    assert processed("export", *words).code == 2


def test_only_what_came_in_since_is_exported(processed: Mill) -> None:
    assert len(processed("export", "--since", "1h").out.splitlines()) == 3
    assert len(processed("export", "--since", "2999-01-01").out.splitlines()) == 1


def test_processing_again_changes_no_sum_and_failed_documents_are_listed(tmp_path: Path) -> None:
    mill = Mill(folder=tmp_path, environment=environment(tmp_path)).having(DOCMILL_PLUGINS=None)
    INVOICE.write(tmp_path / "inbox")
    (tmp_path / "inbox" / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    for _ in range(2):
        assert mill("process", "inbox").code == 1
    (tmp_path / "docmill.yaml").write_text("fields: {invoice: {total: {threshold: 0.5}}}\n")
    assert mill("process", "inbox").code == 1
    summed = "SELECT currency, sum(total) AS total FROM invoices GROUP BY ALL"
    assert [row["total"] for row in mill("query", summed, "--json").data["rows"]] == [INVOICE.fields["total"]]
    listed = "SELECT status, count(*) AS n, count(*) FILTER (current) AS counted FROM documents GROUP BY ALL"
    rows = {row["status"]: (row["n"], row["counted"]) for row in mill("query", listed, "--json").data["rows"]}
    assert rows == {"completed": (2, 1), "duplicate": (1, 0), "failed": (3, 0)}
    assert mill("query", "SELECT count(*) AS n FROM invoices", "--all", "--json").data["rows"] == [{"n": 3}]
    exported = mill("export")
    assert len(exported.out.splitlines()) == 2
    assert "--all" in exported.err
