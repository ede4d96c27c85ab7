"""Sample documents: the same seed gives the same bytes, and what the labels say stands on the paper."""

import io
import zipfile
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module

import pytest

from docmill.testing import papers
from docmill.testing.papers import LANGUAGES, LAYOUTS, Paper

MAKERS: dict[str, Callable[[int], Paper]] = {
    "invoice": papers.invoice_pdf,
    "composed": papers.composed_pdf,
    "receipt": papers.receipt_image,
    "ubl": papers.ubl_xml,
    "cii": papers.cii_xml,
    "facturx": papers.facturx_pdf,
    "epub": papers.epub,
    "broken": papers.broken_pdf,
    "truncated": papers.truncated_pdf,
    "locked": papers.locked_pdf,
    "nonsense": papers.nonsense,
    "scanned": lambda seed: papers.scanned(papers.invoice_pdf(seed), format="GIF", dpi=50),
    "scanned pdf": lambda seed: papers.scanned_pdf(papers.invoice_pdf(seed), dpi=50),
}
SIGNATURES = {
    "JPEG": b"\xff\xd8\xff",
    "PNG": b"\x89PNG",
    "TIFF": b"II*\0",
    "GIF": b"GIF8",
    "BMP": b"BM",
    "WEBP": b"RIFF",
}


def text_of(paper: Paper) -> str:
    """All text of a PDF, lines joined by blanks."""
    pdfium = import_module("pypdfium2")
    with pdfium.PdfDocument(paper.content) as document:
        return " ".join(" ".join(page.get_textpage().get_text_bounded() for page in document).split())


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(make: Callable[[int], Paper]) -> None:
    assert make(3) == make(3)
    assert make(3).content != make(4).content


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_labels_say_stands_on_the_invoice(language: str, layout: str) -> None:
    paper = papers.invoice_pdf(7, language=language, layout=layout, paid=True)
    text, spoken = text_of(paper), LANGUAGES[language]
    for name in ("invoice_number", "seller_name", "buyer_name"):
        assert paper.fields[name] in text
    for name in ("subtotal", "total", "amount_due"):
        assert spoken.amount(Decimal(paper.fields[name])) in text
    assert all(row["description"] in text for row in paper.rows["line_items"])


def test_invoices_composed_at_random_differ_in_words_and_places_and_say_what_their_labels_say() -> None:
    made = [papers.composed_pdf(seed) for seed in range(40)]
    for paper in made:
        text = text_of(paper)
        assert all(paper.fields[name] in text for name in ("invoice_number", "seller_name", "buyer_name"))
        whole, cents = paper.fields["total"].split(".")
        assert any(f"{whole[-3:]}{point}{cents}" in text for point in ".,")
        assert all(row["description"] in text for row in paper.rows["line_items"])
    assert len({paper.fields["seller_name"] for paper in made}) > 30
    assert len({frozenset(paper.fields) for paper in made}) > 5


@pytest.mark.parametrize("seed", range(20))
def test_the_labels_add_up(seed: int) -> None:
    for paper in (papers.invoice_pdf(seed), papers.ubl_xml(seed, credit=True)):
        amounts = {name: Decimal(paper.fields[name]) for name in ("subtotal", "tax", "total")}
        assert amounts["total"] == amounts["subtotal"] + amounts["tax"]
        assert sum(Decimal(row["amount"]) for row in paper.rows["line_items"]) == amounts["subtotal"]


@pytest.mark.parametrize("language", [code for code, language in LANGUAGES.items() if language.iban])
def test_account_numbers_have_right_check_digits(language: str) -> None:
    iban = papers.invoice_facts(4, language=language).iban
    assert iban is not None
    plain = iban.replace(" ", "")
    assert int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def test_many_items_go_on_to_further_pages() -> None:
    paper = papers.invoice_pdf(1, items=70)
    assert paper.pages == 3
    assert len(paper.rows["line_items"]) == 70
    assert papers.scanned(paper, format="TIFF", dpi=40).pages == 3
    assert papers.scanned(paper, format="BMP", dpi=40).pages == 1


@pytest.mark.parametrize("format", papers.FORMATS)
def test_images_are_what_their_names_say(format: str) -> None:
    assert papers.receipt_image(1, format=format).content.startswith(SIGNATURES[format])


def test_an_attachment_has_the_name_asked_for() -> None:
    pdfium = import_module("pypdfium2")
    paper = papers.facturx_pdf(2, attachment="0000000")
    with pdfium.PdfDocument(paper.content) as document:
        attachment = document.get_attachment(0)
        assert attachment.get_name() == "0000000"
        assert b"CrossIndustryInvoice" in bytes(attachment.get_data())


def test_a_page_can_disagree_with_its_xml() -> None:
    paper = papers.facturx_pdf(2, language="en-GB", printed_total=Decimal(5000))
    assert "5,000.0" in text_of(paper)
    assert paper.fields["total"] != "5000.00"


def test_a_locked_pdf_opens_with_its_password_only() -> None:
    pdfium = import_module("pypdfium2")
    content = papers.locked_pdf(1, password="open").content
    with pytest.raises(pdfium.PdfiumError):
        pdfium.PdfDocument(content)
    with pdfium.PdfDocument(content, password="open") as document:
        assert len(document) == 1


def test_the_chapters_of_a_book_are_not_stored_in_reading_order() -> None:
    with zipfile.ZipFile(io.BytesIO(papers.epub(chapters=3).content)) as archive:
        chapters = [name for name in archive.namelist() if "chapter" in name]
    assert chapters == sorted(chapters, reverse=True)
