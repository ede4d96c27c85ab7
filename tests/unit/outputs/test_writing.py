"""Output files: where they are told to be, whole, the document's own, and cheap to ask as one table."""

import fcntl
import gzip
import os
import time
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from docmill.extraction.result import Extraction
from docmill.outputs.files import OutputUnwritable, replacing
from docmill.outputs.places import OutputFormat, OutputSettings, PathRefused
from docmill.outputs.writing import write
from docmill.testing import papers

from .samples import CAME_IN, Facts, extraction, found


@pytest.fixture
def settings(tmp_path: Path) -> OutputSettings:
    return OutputSettings(root=tmp_path / "out")


def rows(paths: list[Path]) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        result = connection.execute(
            f"SELECT * FROM read_parquet({[str(path) for path in paths]}, union_by_name = true)"
        )
        names = [name for name, *_ in result.description or []]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def test_files_lie_where_the_day_and_the_id_say(settings: OutputSettings) -> None:
    paths = write(extraction(), Facts(id="a1"), settings, CAME_IN)
    assert [str(path.relative_to(settings.root)) for path in paths] == [
        "json/2026/11/16/a1.json",
        "parquet/2026/11/16/a1.parquet",
    ]


def test_the_json_holds_the_document_and_all_that_was_read(settings: OutputSettings) -> None:
    given = extraction()
    path, _ = write(given, Facts(id="a1"), settings, CAME_IN)
    content = orjson.loads(path.read_bytes())
    assert content.pop("form") == "docmill.document/1"
    facts = content.pop("document")
    assert (facts["id"], facts["status"], facts["created_at"]) == ("a1", "completed", "2026-11-16T23:30:00+00:00")
    assert Extraction.from_json(content) == given


def test_the_parquet_row_is_typed(settings: OutputSettings) -> None:
    given = extraction()
    _, path = write(given, Facts(id="a1"), settings, CAME_IN)
    (row,) = rows([path])
    assert row["total"] == Decimal(given.fields["total"].value)
    assert row["issue_date"] == date.fromisoformat(given.fields["issue_date"].value)
    assert row["created_at"].isoformat() == "2026-11-16T23:30:00"
    assert row["delivery_date"] is None
    assert [item["amount"] for item in row["line_items"]] == [
        Decimal(item["amount"].value) for item in given.rows["line_items"]
    ]
    total = next(field for field in row["fields"] if field["name"] == "total")
    assert (total["raw"], total["confidence"], total["grounded"], total["page"]) == (
        f" {given.fields['total'].value}",
        0.9,
        True,
        1,
    )


def test_documents_of_different_schemas_are_one_table(settings: OutputSettings) -> None:
    _, invoice = write(extraction(), Facts(id="a1"), settings, CAME_IN)
    _, receipt = write(extraction(papers.receipt_image(1)), Facts(id="b2"), settings, CAME_IN)
    first, second = rows([invoice, receipt])
    assert set(first) == set(second)
    assert (first["company"], second["invoice_number"]) == (None, None)
    assert first["invoice_number"] != second["company"]
    assert second["line_items"] == []


def test_columns_do_not_depend_on_what_was_found(settings: OutputSettings) -> None:
    _, full = write(extraction(), Facts(id="a1"), settings, CAME_IN)
    _, bare = write(replace(extraction(), fields={}, rows={}), Facts(id="b2"), settings, CAME_IN)
    assert list(rows([full])[0]) == list(rows([bare])[0])


def test_a_value_that_is_none_of_its_type_is_null_and_its_text_is_kept(settings: OutputSettings) -> None:
    _, path = write(extraction(issue_date=found("soon"), tax=found("1e99")), Facts(id="a1"), settings, CAME_IN)
    (row,) = rows([path])
    assert row["issue_date"] is None
    assert row["tax"] is None
    assert {"soon", "1e99"} <= {field["value"] for field in row["fields"]}


def test_a_field_that_is_called_like_a_fact_has_a_column_of_its_own(settings: OutputSettings) -> None:
    _, path = write(extraction(status=found("paid")), Facts(id="a1"), settings, CAME_IN)
    (row,) = rows([path])
    assert (row["status"], row["field_status"]) == ("completed", "paid")


def test_without_its_schema_an_extraction_is_written_as_text(settings: OutputSettings) -> None:
    _, path = write(replace(extraction(), schema="gone"), Facts(id="a1"), settings, CAME_IN)
    (row,) = rows([path])
    assert isinstance(row["total"], str)


def test_writing_again_replaces_the_documents_own_files_with_the_same_bytes(settings: OutputSettings) -> None:
    first = [path.read_bytes() for path in write(extraction(), Facts(id="a1"), settings, CAME_IN)]
    write(extraction(), Facts(id="b2"), settings, CAME_IN)
    paths = write(extraction(), Facts(id="a1"), settings, CAME_IN)
    assert [path.read_bytes() for path in paths] == first
    assert len(list(settings.root.rglob("*.parquet"))) == 2
    assert not list(settings.root.rglob(".*"))


@pytest.mark.parametrize("id", ["../../etc/passwd", "a/b", "", ".", "..", "a\0b"])
def test_an_id_cannot_lead_out_of_the_folder(settings: OutputSettings, id: str) -> None:
    with pytest.raises(PathRefused):
        write(extraction(), Facts(id=id), settings, CAME_IN)
    assert not settings.root.exists()


@pytest.mark.parametrize("template", ["../{id}.json", "/tmp/{id}.json", "a//{id}.json", "./{id}.json"])
def test_a_template_cannot_lead_out_of_the_folder(settings: OutputSettings, template: str) -> None:
    with pytest.raises(PathRefused):
        write(extraction(), Facts(id="a1"), replace(settings, json_path=template), CAME_IN)


def test_compressed_files_say_the_same(settings: OutputSettings) -> None:
    plain = write(extraction(), Facts(id="a1"), settings, CAME_IN)
    for method in ("gzip", "zstd"):
        packed = replace(settings, json_compression="gzip", parquet_compression=method, root=settings.root / method)
        json, parquet = write(extraction(), Facts(id="a1"), packed, CAME_IN)
        assert json.name == "a1.json.gz"
        assert gzip.decompress(json.read_bytes()) == plain[0].read_bytes()
        assert rows([parquet]) == rows([plain[1]])


def test_only_the_formats_asked_for_are_written(settings: OutputSettings) -> None:
    paths = write(extraction(), Facts(id="a1"), replace(settings, formats=(OutputFormat.PARQUET,)), CAME_IN)
    assert [path.suffix for path in paths] == [".parquet"]
    assert write(extraction(), Facts(id="a1"), replace(settings, formats=()), CAME_IN) == ()


def test_a_failure_half_way_leaves_what_was_there(settings: OutputSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write(extraction(), Facts(id="a1"), settings, CAME_IN)
    before = [path.read_bytes() for path in paths]

    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(OutputUnwritable, match="No space left"):
        write(extraction(total=found("1.00")), Facts(id="a1"), settings, CAME_IN)
    assert [path.read_bytes() for path in paths] == before
    assert sorted(path for path in settings.root.rglob("*") if path.is_file()) == sorted(paths)


def test_files_are_on_disk_before_they_have_their_names(
    settings: OutputSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def watch(name: str) -> None:
        real = getattr(os, name)

        def watched(*given: object) -> object:
            done.append(name)
            return real(*given)

        monkeypatch.setattr(os, name, watched)

    for name in ("fdatasync", "replace", "fsync"):
        watch(name)
    write(extraction(), Facts(id="a1"), settings, CAME_IN)
    assert done[:4] == ["fdatasync", "fdatasync", "replace", "replace"]
    assert set(done[4:]) == {"fsync"}


def test_a_place_that_is_taken_is_named(settings: OutputSettings) -> None:
    settings.root.parent.mkdir(exist_ok=True)
    settings.root.write_text("a file")
    with pytest.raises(OutputUnwritable, match=r"out.* cannot be written"):
        write(extraction(), Facts(id="a1"), settings, CAME_IN)


def test_two_that_write_one_document_do_not_trample_each_other(
    settings: OutputSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.fdatasync
    begun: list[int] = []

    def fdatasync(handle: int) -> None:
        # An attempt that was given up is still at it when the next one writes the same files.
        begun.append(handle)
        if len(begun) == 1:
            write(extraction(), Facts(id="a1"), settings, CAME_IN)
        really(handle)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    paths = write(extraction(), Facts(id="a1"), settings, CAME_IN)
    assert len(begun) == 4
    assert orjson.loads(paths[0].read_bytes())["document"]["id"] == "a1"
    assert sorted(path for path in settings.root.rglob("*") if path.is_file()) == sorted(paths)


def test_a_file_that_cannot_be_written_leaves_nothing_beside_it(
    settings: OutputSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(OutputUnwritable, match="No space left"):
        write(extraction(), Facts(id="a1"), settings, CAME_IN)
    assert [path for path in settings.root.rglob("*") if path.is_file()] == []


def test_what_a_killed_process_left_beside_an_output_is_swept(settings: OutputSettings) -> None:
    folder = settings.path(OutputFormat.JSON, id="a1", org_id="o1", at=CAME_IN).parent
    folder.mkdir(parents=True)
    for name, written in ((".a1.json.00.tmp", time.time()), (".x.csv.0.part", 0.0), (".x.csv.1.part", time.time())):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (written, written))
    with (folder / ".a1.json.01.tmp").open("wb") as others:
        fcntl.flock(others, fcntl.LOCK_EX)
        write(extraction(), Facts(id="a1"), settings, CAME_IN)
        # What is locked is somebody's who lives; so may be what a library wrote a moment ago.
        left = sorted(path.name for path in folder.iterdir())
    assert left == [".a1.json.01.tmp", ".x.csv.1.part", "a1.json"]


def test_a_large_file_takes_its_place_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "export.csv"
    target.write_text("old")

    def fail() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    with replacing(target) as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["export.csv"]
    assert target.read_text() == "whole"
