"""Every format that is promised goes in as a file and comes out as data, all in one run of `docmill process`."""

from decimal import Decimal
from pathlib import Path

import pytest

from docmill.testing.papers.einvoices import cii_xml, facturx_pdf, ubl_xml
from docmill.testing.papers.invoices import invoice_pdf
from docmill.testing.papers.oddities import epub
from docmill.testing.papers.paper import Paper
from docmill.testing.papers.scans import receipt_image, scanned_pdf
from tests.acceptance.mill import Mill

PICTURES = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP")
"""With PDF the seven formats of the specification."""


def _papers() -> dict[str, Paper]:
    pictures = {f"{kind.lower()}.bin": receipt_image(seed, format=kind) for seed, kind in enumerate(PICTURES)}
    return {
        **pictures,
        "pdf.bin": invoice_pdf(3),
        "scan.bin": scanned_pdf(invoice_pdf(4)),
        "ubl.bin": ubl_xml(5),
        "cii.bin": cii_xml(6),
        "facturx.bin": facturx_pdf(7),
    }


def _format(name: str) -> str:
    return {"scan": "pdf", "facturx": "pdf", "ubl": "xml", "cii": "xml"}.get(name, name)


@pytest.fixture(scope="module")
def papers() -> dict[str, Paper]:
    return _papers()


def test_each_format_is_known_by_its_content_and_read(bare: Mill, papers: dict[str, Paper]) -> None:
    folder = bare.folder / "papers"
    for name, paper in papers.items():
        paper.write(folder, name)
    epub().write(folder, "book.bin")
    mill = bare.having(DOCMILL_PLUGINS="")
    answer = mill("process", "papers", "--json")
    rows = {Path(row["file"]).name: row for row in answer.data}
    assert {name: (row["status"], row["error"]) for name, row in rows.items()} == dict.fromkeys(
        [*papers, "book.bin"], ("completed", None)
    )
    assert {name: row["format"] for name, row in rows.items()} == {
        **{name: _format(name.removesuffix(".bin")) for name in papers},
        "book.bin": "epub",
    }
    for name, paper in papers.items():
        row = rows[name]
        day = "date" if row["schema"] == "receipt" else "issue_date"
        found = {key: row["fields"].get(key, {}).get("value") for key in ("total", day)}
        assert Decimal(found["total"]) == Decimal(paper.fields["total"]), (name, found, paper.fields)
        assert found[day] == paper.fields[day], (name, found, paper.fields)
    assert {name.removesuffix(".bin") for name, row in rows.items() if row["reader"] == "einvoice"} == {
        "ubl",
        "cii",
        "facturx",
    }
    assert "Chapter 2" in mill("documents", "show", "book.bin").out
    chapters = mill("documents", "show", "book.bin", "--json").data["sections"]
    assert [(each["number"], each["title"]) for each in chapters] == [(n, f"Chapter {n}") for n in (1, 2, 3)]
    assert "the miller weighed 3 sacks & wrote it down" in chapters[2]["text"]
    assert mill("documents", "show", "pdf.bin", "--json").data["sections"] == []
