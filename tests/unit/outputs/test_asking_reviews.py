"""Queries and exports tell where the review of each document stands, at the moment they are asked."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from docmill.model.errors import InvalidInput
from docmill.outputs.duck import quoted
from docmill.outputs.exporting import ITEMS, Choice, Export, ExportFormat, asked_reviews
from docmill.outputs.gathering import Known, gather
from docmill.outputs.places import OutputSettings
from docmill.outputs.querying import Outputs
from docmill.outputs.writing import write

from .samples import CAME_IN, INVOICE, Facts, extraction, found, one


def stand(**items: str | None) -> Known:
    """Where reviews stand: `a1_2="rejected"` is the second item of a1."""
    rows: list[dict[str, Any]] = [
        {"document_id": name.split("_")[0], "round": int(name.split("_")[1]), "review": status}
        for name, status in items.items()
    ]
    return Known(reviews=lambda: rows)


def test_every_table_tells_where_the_review_of_its_document_stands(settings: OutputSettings) -> None:
    with Outputs(settings, known=stand(a1_2="rejected", a1_1="approved"), everything=True) as outputs:
        for table in ("documents", "invoices"):
            rows = outputs.ask(f"SELECT id, review FROM {table} ORDER BY id").rows
            # A copy has the item of its original; what has none has no status.
            assert [row for row in rows if row[0] != "b2"] == [("a1", "rejected"), ("c3", "rejected")]
        assert one(outputs, "SELECT review FROM receipts") is None
        assert "review" in dict(next(view.columns for view in outputs.views if view.name == "tax_lines"))
        for table in ("line_items", "fields"):
            found = outputs.ask(f"SELECT DISTINCT document_id, review FROM {table} WHERE document_id <> 'b2'").rows
            assert {review for _, review in found} == {"rejected"}


def test_an_item_that_stands_for_nothing_any_more_gives_no_status(settings: OutputSettings) -> None:
    with Outputs(settings, known=stand(a1_1="approved", a1_2=None, c3_1="pending"), everything=True) as outputs:
        rows = outputs.ask("SELECT id, review FROM documents ORDER BY id").rows
    assert rows == (("a1", None), ("b2", None), ("c3", "pending"))


def test_the_status_is_that_of_the_moment_and_never_kept(settings: OutputSettings, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for status in ("pending", "approved"):
        with Outputs(settings, cache, known=stand(a1_1=status)) as outputs:
            assert one(outputs, "SELECT review FROM invoices") == status
    with Outputs(settings, cache) as outputs:
        assert one(outputs, "SELECT review FROM invoices") is None


@pytest.mark.parametrize("form", ExportFormat)
def test_exports_tell_the_review_and_can_be_limited_to_it(
    settings: OutputSettings, tmp_path: Path, form: ExportFormat
) -> None:
    known = stand(a1_1="corrected")

    def rows(items: bool, reviews: tuple[str, ...]) -> list[tuple[str, str | None]]:
        choice = Choice(reviews=reviews, table=ITEMS if items else None)
        with gather(settings, None, known=known) as connection:
            export = Export(connection, choice)
            if form is ExportFormat.PARQUET:
                file = tmp_path / "some.parquet"
                export.parquet(file)
                return connection.execute(f"SELECT id, review FROM read_parquet('{file}')").fetchall()
            text = "".join(export.text(form))
        match form:
            case ExportFormat.CSV:
                return [(row["id"], row["review"] or None) for row in csv.DictReader(io.StringIO(text, newline=""))]
            case ExportFormat.JSONL:
                return [(row["id"], row["review"]) for row in map(json.loads, text.splitlines())]
            case _:
                return [(row["id"], row["review"]) for row in json.loads(text)]

    assert rows(False, ()) == [("a1", "corrected"), ("b2", None)]
    assert rows(True, ()) == [("a1", "corrected")] * 3
    for items, count in ((False, 1), (True, 3)):
        assert rows(items, ("approved", "corrected")) == [("a1", "corrected")] * count
        assert rows(items, ("rejected", "none")) == ([] if items else [("b2", None)])


def test_statuses_are_named_as_people_write_them() -> None:
    assert asked_reviews(["corrected, approved", "none"]) == ("approved", "corrected", "none")
    for wrong in ("aproved", "approved,", ""):
        with pytest.raises(InvalidInput, match="pending, in_review, approved, corrected, rejected, none"):
            asked_reviews([wrong])


def test_a_field_that_is_called_review_keeps_its_values(settings: OutputSettings, tmp_path: Path) -> None:
    said = replace(extraction(INVOICE, review=found("a fine book"), current=found("16 A")), schema="parcel")
    write(said, Facts(id="d4", sha256="d4"), settings, CAME_IN)
    # As a file has them that was written before there were such columns.
    write(said, Facts(id="e5", sha256="e5"), settings, CAME_IN)
    (path,) = settings.root.rglob("e5.parquet")
    before = tmp_path / "before.parquet"
    with duckdb.connect() as plain:
        names = "SELECT * RENAME (field_review AS review, field_current AS current)"
        plain.execute(
            f"COPY ({names} FROM read_parquet({quoted(str(path))})) TO {quoted(str(before))} (FORMAT parquet)"
        )
    before.replace(path)
    with Outputs(settings, known=stand(d4_1="approved")) as outputs:
        rows = outputs.ask("SELECT id, review, field_review, field_current, current FROM parcels ORDER BY id").rows
    assert rows == (("d4", "approved", "a fine book", "16 A", True), ("e5", None, "a fine book", "16 A", True))


def test_what_a_person_rejected_is_no_result_unless_it_is_asked_for(settings: OutputSettings) -> None:
    known = stand(a1_1="rejected")
    with Outputs(settings, known=known) as outputs:
        assert outputs.ask("SELECT id FROM invoices").rows == ()
        assert one(outputs, "SELECT review FROM documents WHERE id = 'a1'") == "rejected"
        assert one(outputs, "SELECT count(*) FROM line_items WHERE document_id = 'a1'") == 0
    with gather(settings, None, known=known) as connection:
        assert Export(connection, Choice()).count() == 1
        assert Export(connection, Choice()).left_out() == 2
        assert Export(connection, Choice(reviews=("rejected",))).count() == 1
