"""`docmill eval`, `docmill show` and `docmill learn`, as a person meets them."""

import json
from pathlib import Path

import pytest
from PIL import Image

from docmill.testing import papers
from docmill.testing.papers import Paper
from tests.acceptance.mill import Mill


@pytest.fixture
def bare(bare: Mill) -> Mill:
    """An installation that nobody has used, without plug-ins: those of other tests have documents of their own."""
    return bare.having(DOCMILL_PLUGINS=None)


def labelled(folder: Path, *made: Paper, **false: str) -> Path:
    """A folder with these papers and their labels; `false` labels replace true ones."""
    rows = []
    for paper in made:
        paper.write(folder)
        row = paper.label()
        row["fields"] = {**row["fields"], **false}  # type: ignore[dict-item]
        rows.append(json.dumps(row))
    (folder / "labels.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return folder


def test_a_labelled_folder_is_scored_and_nothing_of_it_is_kept(bare: Mill, tmp_path: Path) -> None:
    folder = labelled(tmp_path / "labelled", papers.ubl_xml(1), papers.facturx_pdf(2), papers.nonsense(3))
    answer = bare("eval", str(folder), "--json")
    assert answer.code == 0, answer
    figures = answer.data
    assert (figures["documents"], figures["failed"]) == (3, 1)
    assert figures["by_field"]["total"] == {"n": 2, "exact": 1.0, "loose": 1.0}
    assert not (tmp_path / "home" / "docmill.db").exists()
    assert bare("documents", "list", "--json").data == []


def test_wrong_values_are_listed_with_what_was_expected_and_found(bare: Mill, tmp_path: Path) -> None:
    paper = papers.ubl_xml(1)
    folder = labelled(tmp_path / "labelled", paper, total="7.77")
    told = bare("eval", str(folder), "--wrong")
    assert told.code == 0, told
    line = next(line for line in told.out.splitlines() if "7.77" in line)
    assert line.split()[:4] == [paper.name, "total", "7.77", paper.fields["total"]]


@pytest.mark.parametrize(
    ("labels", "code", "told"),
    [
        (None, "labels_invalid", "has no labels.jsonl"),
        ("", "labels_invalid", "holds no labels"),
        ('{"file": "a.pdf"}', "labels_invalid", "labels.jsonl:1"),
        ('{"file": "gone.pdf", "fields": {"total": "1"}}', "labels_invalid", "gone.pdf"),
        ('{"file": "a.pdf", "fields": {"totl": "1"}}', "labels_invalid", "did you mean 'total'?"),
        ('{"file": "a.pdf", "fields": {}, "visible": {"isue_date": true}}', "labels_invalid", "'issue_date'?"),
        ('{"file": "a.pdf", "fields": {"mood": "x"}, "schema": "receipt"}', "labels_invalid", "there are address, "),
        (
            '{"file": "a.pdf", "fields": {"iban": "x"}, "schema": "receipt"}',
            "labels_invalid",
            "no field 'iban' can be found",
        ),
    ],
)
def test_a_folder_that_cannot_be_scored_says_what_to_mend(
    bare: Mill, tmp_path: Path, labels: str | None, code: str, told: str
) -> None:
    folder = tmp_path / "labelled"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(b"nothing to read")
    if labels is not None:
        (folder / "labels.jsonl").write_text(labels, encoding="utf-8")
    answer = bare("eval", str(folder), "--json")
    assert (answer.code, answer.error["code"]) == (2, code)
    assert told in answer.error["message"]


def test_a_folder_that_is_not_there_is_told(bare: Mill) -> None:
    assert bare("eval", "nowhere").code == 2


def test_a_page_is_drawn_with_the_evidence_of_its_values(bare: Mill, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    papers.facturx_pdf(2).write(folder, "a.pdf")
    papers.ubl_xml(1).write(folder, "b.xml")
    printed, bare_xml = bare("process", str(folder), "--json").data
    answer = bare("show", printed["id"], "--output", "page.png", "--json")
    assert answer.code == 0, answer
    with Image.open(bare.folder / "page.png") as picture:
        assert picture.format == "PNG"
        assert picture.width > 1000
    drawn = {mark["field"]: mark["boxes"] for mark in answer.data["marks"]}
    assert drawn["total"]
    assert bare("show", printed["id"], "--page", "9").code == 2
    refused = bare("show", bare_xml["id"], "--json")
    assert (refused.code, refused.error["code"]) == (2, "invalid_input")


def test_too_few_documents_teach_nothing(bare: Mill, tmp_path: Path) -> None:
    folder = labelled(tmp_path / "labelled", papers.ubl_xml(1), papers.ubl_xml(2))
    answer = bare("learn", str(folder), "--json")
    assert (answer.code, answer.error["code"]) == (2, "too_little_to_learn")


def test_learning_can_be_taken_back(bare: Mill) -> None:
    assert bare("learn", "--reset").code == 0
    assert bare("learn").code == 2
    assert bare("learn", "somewhere", "--reset").code == 2


def test_what_was_learned_is_installed_and_used_until_it_is_taken_back(bare: Mill, tmp_path: Path) -> None:
    folder = labelled(tmp_path / "labelled", *(papers.invoice_pdf(seed) for seed in range(7, 13)))
    paper = papers.invoice_pdf(20)
    paper.write(tmp_path / "in", "a.pdf")

    def processed() -> dict[str, object]:
        answer = bare("process", str(tmp_path / "in" / "a.pdf"), "--json")
        assert answer.code == 0, answer
        (row,) = answer.data
        found: dict[str, object] = row
        return found

    shipped = processed()
    tried = bare("learn", str(folder), "--dry-run", "--json")
    assert (tried.code, tried.data["installed"]) == (0, None), tried
    answer = bare("learn", str(folder), "--json")
    assert answer.code == 0, answer
    assert (answer.data["documents"], answer.data["worse"]) == (6, None)
    models = tmp_path / "home" / "models"
    assert answer.data["installed"] == str(models / "0001")
    assert {path.name for path in (models / "0001").iterdir()} == {"about.json", "calibration.json", "invoice.json"}
    # Another set of models is another question: the same bytes are read again, and believed as was learned.
    learned = processed()
    assert (learned["status"], learned["duplicate_of"]) == ("completed", None)
    assert learned["confidence"] != shipped["confidence"]
    assert bare("learn", "--reset").code == 0
    back = processed()
    assert (back["status"], back["duplicate_of"]) == ("duplicate", shipped["id"])
    assert back["confidence"] == shipped["confidence"]
