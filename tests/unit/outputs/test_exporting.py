"""Chosen rows are written as one file, in the format and the spelling that were asked for."""

import csv
import io
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from docmill.extraction.result import Extraction, Reader
from docmill.model.errors import InvalidInput, NotFound
from docmill.outputs.exporting import Choice, Export, ExportFormat, asked_table, style_for
from docmill.outputs.gathering import gather
from docmill.outputs.places import OutputSettings
from docmill.outputs.writing import write

from .samples import CAME_IN, INVOICE, Facts, extraction, found


def exported(settings: OutputSettings, form: ExportFormat, choice: Choice) -> str:
    with gather(settings, None) as connection:
        return "".join(Export(connection, choice).text(form))


def test_a_csv_has_a_row_for_each_document_and_no_copies(settings: OutputSettings) -> None:
    text = exported(settings, ExportFormat.CSV, Choice())
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["id"] for row in rows] == ["a1", "b2"]
    assert rows[0]["total"] == INVOICE.fields["total"]
    assert text.count("\r\n") == 3
    assert "line_items" not in rows[0]


def test_line_items_are_rows_with_the_fields_of_their_document(settings: OutputSettings) -> None:
    text = exported(settings, ExportFormat.CSV, Choice(schema="invoice", table="line_items", duplicates=True))
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(row["id"], row["line"]) for row in rows] == [(id, str(n)) for id in ("a1", "c3") for n in (1, 2, 3)]
    assert [row["item_amount"] for row in rows[:3]] == [item["amount"] for item in INVOICE.rows["line_items"]]
    assert {row["invoice_number"] for row in rows} == {INVOICE.fields["invoice_number"]}


def test_any_table_of_any_schema_is_exported(settings: OutputSettings) -> None:
    """Also one of a schema of one's own, and one whose name something else has."""
    mine = Extraction(
        schema="mine",
        schema_version="1",
        reader=Reader.LOCAL,
        document_type="other",
        fields={"weight": found("12")},
        rows={"parcels": [{"code": found("A")}, {"code": found("B")}], "status": [{"word": found("late")}]},
    )
    write(mine, Facts(id="d4", sha256="dd" * 32), settings, CAME_IN)
    taxed = replace(extraction(INVOICE), rows={"tax_lines": [{"rate": found("19")}, {"rate": found("7")}]})
    write(taxed, Facts(id="e5", sha256="ee" * 32), settings, CAME_IN)
    for schema, table, cells in (
        (None, "tax_lines", ["19", "7"]),
        ("mine", "parcels", ["A", "B"]),
        (None, "status", ["late"]),
    ):
        records = json.loads(exported(settings, ExportFormat.JSON, Choice(schema=schema, table=table)))
        column = {"tax_lines": "tax_lines_rate", "parcels": "parcels_code", "status": "status_word"}[table]
        assert [record[column] for record in records] == cells, table
        assert [record["line"] for record in records] == list(range(1, len(cells) + 1))


@pytest.mark.parametrize("form", [ExportFormat.CSV, ExportFormat.JSON, ExportFormat.JSONL])
def test_a_field_keeps_its_name_and_a_cell_of_that_name_has_another(
    settings: OutputSettings, form: ExportFormat
) -> None:
    names = ("line", "record", "each", "documents", "parcels_code", "Parcels_Size")
    mine = Extraction(
        schema="mine",
        schema_version="1",
        reader=Reader.LOCAL,
        document_type="other",
        fields={name: found(f"of {name}") for name in names},
        rows={"parcels": [{"code": found("A"), "size": found("1"), "line": found("x")}]},
    )
    write(mine, Facts(id="d4", sha256="dd" * 32), settings, CAME_IN)
    text = exported(settings, form, Choice(schema="mine", table="parcels"))
    if form is ExportFormat.CSV:
        head, cells = csv.reader(io.StringIO(text, newline=""))
        assert len(set(head)) == len(head)
        record = dict(zip(head, cells, strict=True))
    else:
        (record,) = json.loads(text) if form is ExportFormat.JSON else [json.loads(text)]
    assert [record[name] for name in names] == [f"of {name}" for name in names]
    assert (record["row_parcels_code"], record["row_parcels_size"], record["parcels_line"]) == ("A", "1", "x")
    assert str(record["row_line"]) == "1"


@pytest.mark.parametrize(
    ("schema", "table", "told"),
    [
        (None, "parcels", "the documents have: line_items, tax_lines"),
        ("receipt", "tax_lines", "the schema 'receipt' has: line_items"),
        (None, "total", "There is no table 'total'"),
        (None, "fields", "There is no table 'fields'"),
    ],
)
def test_a_table_that_there_is_not_is_named_with_those_there_are(
    settings: OutputSettings, schema: str | None, table: str, told: str
) -> None:
    with pytest.raises(NotFound, match=told):
        exported(settings, ExportFormat.CSV, Choice(schema=schema, table=table))


def test_tables_are_named_as_their_schema_has_them(settings: OutputSettings) -> None:
    mine = replace(extraction(INVOICE), schema="mine", rows={"status": [{"word": found("late")}]})
    write(mine, Facts(id="d4", sha256="dd" * 32), settings, CAME_IN)
    with pytest.raises(NotFound, match="the schema 'mine' has: status\\."):
        exported(settings, ExportFormat.CSV, Choice(schema="mine", table="parcels"))


def test_items_is_short_for_one_table() -> None:
    assert asked_table(items=True, table=None) == asked_table(items=True, table="line_items") == "line_items"
    assert asked_table(items=False, table="tax_lines") == "tax_lines"
    with pytest.raises(InvalidInput, match="ask for one"):
        asked_table(items=True, table="tax_lines")


def test_no_cell_of_a_csv_is_a_formula(settings: OutputSettings) -> None:
    evil = '=HYPERLINK("http://example.com")'
    names = {"seller_name": evil, "buyer_name": "@SUM(A1)", "order_number": "-1+1", "total": "-5.00"}
    fields = {name: found(value) for name, value in names.items()}
    write(extraction(INVOICE, **fields), Facts(id="d4", file_name="+cmd.pdf"), settings, CAME_IN)
    text = exported(settings, ExportFormat.CSV, Choice(schema="invoice"))
    row = next(row for row in csv.DictReader(io.StringIO(text, newline="")) if row["id"] == "d4")
    assert row["seller_name"] == f"'{evil}"
    assert (row["buyer_name"], row["order_number"], row["file_name"]) == ("'@SUM(A1)", "'-1+1", "'+cmd.pdf")
    assert row["total"] == "-5.00"


@pytest.mark.parametrize(
    ("asked", "delimiter", "total", "begins"),
    [
        ({}, ",", "-1234.50", "file_name,"),
        ({"excel": True}, ",", "-1234.50", "\ufefffile_name,"),
        ({"excel": True, "decimal": ","}, ";", "-1234,50", "\ufefffile_name;"),
        ({"decimal": ",", "delimiter": "tab"}, "\t", "-1234,50", "file_name\t"),
        ({"delimiter": "|"}, "|", "-1234.50", "file_name|"),
    ],
)
def test_csv_is_spelled_as_the_spreadsheet_expects_it(
    settings: OutputSettings, asked: dict[str, Any], delimiter: str, total: str, begins: str
) -> None:
    """Only numbers have the asked mark; text keeps its own, and is no formula in any spelling."""
    fields = {"total": found("-1234.5"), "seller_name": found("=1.5;2"), "buyer_name": found('A "1.5", B;\tC|')}
    write(extraction(INVOICE, **fields), Facts(id="d4", sha256="dd" * 32), settings, CAME_IN)
    style = style_for(ExportFormat.CSV, **({"excel": False, "delimiter": None, "decimal": None} | asked))
    with gather(settings, None) as connection:
        text = "".join(Export(connection, Choice()).text(ExportFormat.CSV, style))
    assert text.startswith(begins)
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter)
    row = next(row for row in rows if row["id"] == "d4")
    assert (row["total"], row["confidence"]) == (total, f"0{style.decimal}8")
    assert (row["seller_name"], row["buyer_name"]) == ("'=1.5;2", 'A "1.5", B;\tC|')
    assert (row["issue_date"], row["created_at"]) == (INVOICE.fields["issue_date"], "2026-11-16T23:30:00")


@pytest.mark.parametrize(
    ("form", "asked", "field"),
    [
        ("csv", {"decimal": ",", "delimiter": ","}, "delimiter"),
        ("csv", {"delimiter": "="}, "delimiter"),
        ("csv", {"decimal": "'"}, "decimal"),
        ("jsonl", {"excel": True}, "excel"),
        ("json", {"decimal": "."}, "decimal"),
    ],
)
def test_a_spelling_that_cannot_be_is_refused_by_its_name(form: str, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as told:
        style_for(ExportFormat(form), **({"excel": False, "delimiter": None, "decimal": None} | asked))
    assert told.value.details["field"] == field


def test_json_and_lines_of_json_hold_tables_too(settings: OutputSettings) -> None:
    records = json.loads(exported(settings, ExportFormat.JSON, Choice()))
    lines = [json.loads(line) for line in exported(settings, ExportFormat.JSONL, Choice()).splitlines()]
    assert records == lines
    assert records[0]["line_items"][0]["description"] == INVOICE.rows["line_items"][0]["description"]
    assert records[0]["confidences"]["total"] == 0.9
    assert exported(settings, ExportFormat.JSON, Choice(since=CAME_IN + timedelta(days=9))) == "[]\n"


def test_only_what_came_in_since_is_exported(settings: OutputSettings) -> None:
    records = json.loads(exported(settings, ExportFormat.JSON, Choice(since=CAME_IN + timedelta(hours=1))))
    assert [record["id"] for record in records] == ["b2"]


def test_a_schema_that_no_document_has_is_named(settings: OutputSettings) -> None:
    with pytest.raises(NotFound, match="There are: invoice, receipt"):
        exported(settings, ExportFormat.CSV, Choice(schema="invoise"))


def test_what_people_look_for_comes_before_what_machines_need(settings: OutputSettings) -> None:
    for choice in (Choice(), Choice(schema="invoice")):
        head = next(iter(Export(gather(settings, None), choice).text(ExportFormat.CSV))).splitlines()[0].split(",")
        assert head[0] == "file_name"
        for name in ("invoice_number", "total"):
            assert head.index(name) < min(head.index(machine) for machine in ("id", "org_id", "sha256", "schema"))


def test_a_schema_that_came_from_a_file_has_its_own_columns_alone(settings: OutputSettings) -> None:
    parcel = Extraction(
        schema="mine", schema_version="1", reader=Reader.LOCAL, document_type="other", fields={"weight": found("12")}
    )
    write(parcel, Facts(id="d4", sha256="dd" * 32), settings, CAME_IN)
    text = "".join(Export(gather(settings, None), Choice(schema="mine")).text(ExportFormat.CSV))
    head = text.splitlines()[0].split(",")
    assert "weight" in head
    assert not {"invoice_number", "company", "seller_name"} & set(head)
