"""Words of a PDF stand where a person sees them, and only pages without readable text are given to OCR."""

import io
from collections.abc import Callable
from typing import Any

import pikepdf
import pytest
from PIL import Image

from docmill.documents.faults import DamagedFile, EncryptedPdf, TooManyPages, TooMuchText
from docmill.documents.limits import Limits
from docmill.documents.parsing import Outline, assemble, outline, read_whole
from docmill.documents.reading import Page, Reading, TextSource
from tests.unit.documents.making import CII, edited, pdf_page, saved, text_pdf, written

Store = Callable[[bytes], str]
LIMITS = Limits()
A4 = (595.28, 841.89)
PROSE = "The quick brown fox jumps over the lazy dog"
NOBODY = ("Page 1 has words that nobody can see, such as white on white; they are left out.",)
BLACK, WHITE = 0, 255


def page_of(path: str) -> Page:
    found = outline(path, LIMITS)
    assert not found.needs_ocr
    return found.pages[0]


def texts(page: Page) -> list[str]:
    return [line.text for line in page.lines]


def test_words_have_boxes_where_they_are_written(stored: Store) -> None:
    page = page_of(stored(text_pdf([(100, 200, "Total 118.00")])))
    assert (page.width, page.height, page.source, page.turned) == (*A4, TextSource.EMBEDDED, 0)
    total, amount = page.words
    assert (total.text, amount.text) == ("Total", "118.00")
    assert total.box.left * A4[0] == pytest.approx(100, abs=1)
    assert total.box.top * A4[1] < 200 - 6 < 200 <= total.box.bottom * A4[1] < 206
    assert total.box.right < amount.box.left < amount.box.right
    assert amount.box.right * A4[0] == pytest.approx(100 + 67, abs=4)
    assert total.score is None


def test_lines_end_at_wide_gaps_and_go_from_top_to_bottom(stored: Store) -> None:
    pieces = [(400.0, 120.0, "12.00"), (50.0, 120.0, "Two boxes"), (50.0, 90.0, "Item"), (400.0, 90.0, "Price")]
    assert texts(page_of(stored(text_pdf(pieces)))) == ["Item", "Price", "Two boxes", "12.00"]


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_that_the_file_rotates_is_read_as_it_is_shown(stored: Store, degrees: int) -> None:
    pdf = pdf_page()
    # Written so that it is upright once the page is rotated.
    with pdf.rotation(degrees, x=300, y=400):
        pdf.text(300, 400, PROSE)

    def rotate(opened: Any) -> None:
        opened.pages[0].Rotate = degrees

    page = page_of(stored(edited(bytes(pdf.output()), rotate)))
    assert texts(page) == [PROSE]
    assert page.turned == 0
    assert (page.width > page.height) is (degrees != 180)
    assert page.lines[0].box.width > 3 * page.lines[0].box.height


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_text_that_lies_on_its_side_is_turned_upright(stored: Store, degrees: int) -> None:
    pdf = pdf_page()
    with pdf.rotation(degrees, x=300, y=400):
        pdf.text(300, 400, PROSE)
        pdf.text(300, 420, "below")
    page = page_of(stored(bytes(pdf.output())))
    assert page.turned == degrees
    assert texts(page) == [PROSE, "below"]
    assert page.lines[0].box.bottom < page.lines[1].box.bottom


def test_what_lies_outside_of_the_crop_box_is_not_on_the_page(stored: Store) -> None:
    def crop(opened: Any) -> None:
        opened.pages[0].CropBox = pikepdf.Array([50, 600, 350, 800])

    page = page_of(stored(edited(text_pdf([(60, 100, "inside"), (60, 500, "outside")]), crop)))
    assert texts(page) == ["inside"]
    assert (page.width, page.height) == (300, 200)
    assert page.words[0].box.left == pytest.approx(10 / 300, abs=0.01)


def test_a_page_that_is_only_a_picture_needs_ocr_and_its_neighbours_do_not(stored: Store) -> None:
    pdf = pdf_page()
    pdf.text(72, 72, PROSE)
    pdf.add_page()
    pdf.image(written(["Scanned"]), x=0, y=0, w=595, h=841)
    pdf.text(72, 820, "Scanned with a phone")
    pdf.add_page()
    found = outline(stored(bytes(pdf.output())), LIMITS)
    assert (found.page_count, found.needs_ocr) == (3, (2,))
    assert [page.source for page in found.pages] == [TextSource.EMBEDDED, TextSource.NONE]


def test_a_white_picture_is_a_blank_page(stored: Store) -> None:
    pdf = pdf_page()
    pdf.image(Image.new("RGB", (100, 100), "white"), x=0, y=0, w=595, h=841)
    (page,) = read_whole(stored(bytes(pdf.output())), LIMITS).pages
    assert (page.source, page.lines) == (TextSource.NONE, ())


def test_a_page_with_nothing_but_some_rules_is_not_looked_at_in_vain(stored: Store) -> None:
    pdf = pdf_page()
    for y in (100, 200, 300):
        pdf.line(50, y, 500, y)
    found = outline(stored(bytes(pdf.output())), LIMITS)
    assert (found.needs_ocr, found.pages[0].source) == ((), TextSource.NONE)


def test_a_logo_beside_text_is_no_reason_for_ocr(stored: Store) -> None:
    pdf = pdf_page()
    pdf.text(72, 72, PROSE)
    pdf.image(written(["Logo"]), x=400, y=20, w=100)
    assert not outline(stored(bytes(pdf.output())), LIMITS).needs_ocr


def letter_by_letter(*lines: tuple[float, float, str]) -> bytes:
    """Each letter set by itself and no space among them, as browsers print. Where the lines are short and close, PDFium
    takes them for columns and breaks the line behind every letter."""
    pdf = pdf_page()
    for x, y, text in lines:
        for letter in text:
            if letter != " ":
                pdf.text(x, y, letter)
            x += pdf.get_string_width(letter)
    return bytes(pdf.output())


def test_letters_that_a_browser_set_one_by_one_are_words(stored: Store) -> None:
    written = ["Rechnung", "Maler Hofer", "Gartenweg 2", "Nummer: 2026-14", "Netto 1.000,00", "Summe 1.190,00 EUR"]
    lines = [(57.0, 80.0 + 13 * row, text) for row, text in enumerate(written)]
    page = page_of(stored(letter_by_letter(*lines, (500.0, 80.0, "Kopie"))))
    assert texts(page) == ["Rechnung", "Kopie", *written[1:]]
    assert [word.text for word in page.lines[4].words] == ["Nummer:", "2026-14"]


@pytest.mark.parametrize("degrees", [0, 90])
def test_words_that_nobody_can_see_are_left_out_with_a_note(stored: Store, degrees: int) -> None:
    pdf = pdf_page()
    pdf.text(57, 80, "Invoice number 2026-14")
    pdf.set_fill_color(20, 30, 60)
    pdf.rect(50, 190, 400, 20, style="F")
    pdf.set_text_color(255, 255, 255)
    pdf.text(57, 110, "Invoice number HACK-1")
    pdf.text(57, 205, "Description Amount")
    pdf.set_text_color(170, 170, 170)
    pdf.text(57, 240, "Thank you")

    def rotate(opened: Any) -> None:
        opened.pages[0].Rotate = degrees

    found = outline(stored(edited(bytes(pdf.output()), rotate)), LIMITS)
    assert sorted(word.text for word in found.pages[0].words) == sorted(
        ["Invoice", "number", "2026-14", "Description", "Amount", "Thank", "you"]
    )
    assert found.notes == NOBODY


def in_colours(pdf: Any, x: float, y: float, *pieces: tuple[int, str]) -> None:
    """One word, of pieces right behind each other."""
    for grey, text in pieces:
        pdf.set_text_color(grey)
        pdf.text(x, y, text)
        x += pdf.get_string_width(text)


def test_of_a_word_only_the_letters_that_are_seen_are_read(stored: Store) -> None:
    pdf = pdf_page()
    in_colours(pdf, 57, 80, (BLACK, "100"), (WHITE, "000"))
    in_colours(pdf, 57, 110, (WHITE, "9"), (BLACK, "200"))
    in_colours(pdf, 57, 140, (BLACK, "3"), (WHITE, "000"), (BLACK, "00"))
    found = outline(stored(bytes(pdf.output())), LIMITS)
    assert [[word.text for word in line.words] for line in found.pages[0].lines] == [["100"], ["200"], ["3"], ["00"]]
    assert found.notes == NOBODY


def test_letters_that_nobody_can_see_are_not_joined_to_others(stored: Store) -> None:
    pdf = pdf_page()
    written = ["Rechnung", "Maler Hofer", "Gartenweg 2", "Nummer: 2026-14", "Netto 1.000,00"]
    for row, text in enumerate(written):
        in_colours(pdf, 57, 80 + 13 * row, *((BLACK, letter) for letter in text if letter != " "))
    in_colours(pdf, 57, 145, *((BLACK, letter) for letter in "11"), *((WHITE, letter) for letter in "90,00"))
    in_colours(pdf, 500, 80, *((BLACK, letter) for letter in "Kopie"))
    found = outline(stored(bytes(pdf.output())), LIMITS)
    assert texts(found.pages[0])[-1] == "11"
    assert found.notes == NOBODY


def test_white_letters_with_a_dark_outline_are_seen(stored: Store) -> None:
    pdf = pdf_page()
    with pdf.local_context(text_mode="FILL_STROKE", text_color=(255, 255, 255), draw_color=(0, 0, 0)):
        pdf.text(57, 80, "Outlined")
    found = outline(stored(bytes(pdf.output())), LIMITS)
    assert (texts(found.pages[0]), found.notes) == (["Outlined"], ())


def test_words_that_nobody_can_see_do_not_stand_in_for_a_picture_of_text(stored: Store) -> None:
    pdf = pdf_page()
    pdf.image(written(["Invoice 2026-14"]), x=50, y=200, w=400)
    in_colours(pdf, 57, 80, (WHITE, "some thirty letters of hidden prose"))
    found = outline(stored(bytes(pdf.output())), LIMITS)
    assert (found.needs_ocr, found.notes) == ((1,), NOBODY)


def test_words_that_nobody_can_see_do_not_turn_the_page(stored: Store) -> None:
    pdf = pdf_page()
    pdf.text(57, 80, "Invoice number 2026-14")
    pdf.set_text_color(WHITE)
    for row in range(20):
        with pdf.rotation(90, x=300, y=400):
            pdf.text(200, 300 + 12 * row, "Unquestionably longer than anything else")
    page = page_of(stored(bytes(pdf.output())))
    assert (page.turned, texts(page)) == (0, ["Invoice number 2026-14"])


def test_what_is_drawn_across_a_white_word_does_not_make_it_seen(stored: Store) -> None:
    pdf = pdf_page()
    pdf.line(50, 106, 300, 106)
    pdf.text(57, 80, "Invoice total 100.00")
    pdf.set_text_color(WHITE)
    pdf.text(57, 110, "HACK-1")
    pdf.text(57.5, 80, "Invoice total 900.00")
    found = outline(stored(bytes(pdf.output())), LIMITS)
    assert sorted(word.text for word in found.pages[0].words) == ["100.00", "Invoice", "total"]
    assert found.notes == NOBODY


@pytest.mark.parametrize("ground", [20, 120, 200])
@pytest.mark.parametrize("size", [6, 9, 20])
def test_white_words_on_a_ground_that_is_darker_are_seen(stored: Store, ground: int, size: int) -> None:
    pdf = pdf_page()
    pdf.set_fill_color(ground)
    pdf.rect(50, 100 - 1.2 * size, 400, 1.6 * size, style="F")
    pdf.set_font("helvetica", style="B", size=size)
    pdf.set_text_color(WHITE)
    pdf.text(57, 100, "Description WWW 1 Amount - .")
    assert texts(page_of(stored(bytes(pdf.output())))) == ["Description WWW 1 Amount - ."]


def test_text_in_a_font_without_a_table_of_its_characters_needs_ocr(stored: Store) -> None:
    """The codes of such a font mean glyphs; what they give as text is signs of no alphabet."""

    def garble(opened: Any) -> None:
        table = (
            b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def 1 begincodespacerange "
            b"<00> <ff> endcodespacerange 1 beginbfrange <21> <7e> <e021> endbfrange endcmap end end"
        )
        fonts = opened.pages[0].Resources.Font
        for name in fonts:
            fonts[name].ToUnicode = opened.make_stream(table)

    found = outline(stored(edited(text_pdf([(72, 72, PROSE)]), garble)), LIMITS)
    assert found.needs_ocr == (1,)


def test_filled_in_fields_of_a_form_are_read(stored: Store) -> None:
    found = outline(stored(_form("Acme Ltd, invoice 4711")), LIMITS)
    assert "4711" in assemble(found, ()).text


def _form(value: str) -> bytes:
    pdf = pdf_page()
    pdf.text(72, 72, PROSE)

    def fill(opened: Any) -> None:
        look = opened.make_stream(
            f"/Tx BMC q BT /F1 12 Tf 2 5 Td ({value}) Tj ET Q EMC".encode(),
            Type=pikepdf.Name.XObject,
            Subtype=pikepdf.Name.Form,
            BBox=pikepdf.Array([0, 0, 300, 20]),
            Resources=opened.pages[0].Resources,
        )
        field = opened.make_indirect(
            pikepdf.Dictionary(
                Type=pikepdf.Name.Annot,
                Subtype=pikepdf.Name.Widget,
                FT=pikepdf.Name.Tx,
                T="number",
                V=value,
                F=4,
                Rect=pikepdf.Array([72, 600, 372, 620]),
                AP=pikepdf.Dictionary(N=look),
            )
        )
        opened.pages[0].Annots = pikepdf.Array([field])
        opened.Root.AcroForm = pikepdf.Dictionary(Fields=pikepdf.Array([field]))

    return edited(bytes(pdf.output()), fill)


def test_a_pdf_with_an_owner_password_only_is_read(stored: Store) -> None:
    locked = edited(text_pdf([(72, 72, "open")]), lambda _: None, encryption=pikepdf.Encryption(owner="o", user=""))
    assert texts(page_of(stored(locked))) == ["open"]


def test_a_pdf_with_a_password_says_so(stored: Store) -> None:
    locked = edited(text_pdf([(72, 72, "x")]), lambda _: None, encryption=pikepdf.Encryption(owner="o", user="u"))
    with pytest.raises(EncryptedPdf, match="without one"):
        outline(stored(locked), LIMITS)


def test_more_pages_than_the_limit_are_refused(stored: Store) -> None:
    many = text_pdf(*([[(72.0, 72.0, "x")]] * 3))
    with pytest.raises(TooManyPages, match="3 pages; 2 are the limit"):
        outline(stored(many), Limits(max_pages=2))


def test_more_text_than_the_limit_is_refused(stored: Store) -> None:
    with pytest.raises(TooMuchText):
        outline(stored(text_pdf([(72, 72, PROSE)])), Limits(max_characters=10))


def test_a_page_with_too_much_text_is_cut_with_a_note(stored: Store) -> None:
    found = outline(stored(text_pdf([(72, 72, PROSE)])), Limits(page_characters=20))
    assert found.pages[0].text == "The quick brown fox"
    assert "Page 1" in found.notes[0]


def test_a_damaged_pdf_is_named_so(stored: Store) -> None:
    with pytest.raises(DamagedFile):
        outline(stored(b"%PDF-1.7\nnothing but a header"), LIMITS)


@pytest.mark.parametrize("name", ["factur-x.xml", "0000000", "beleg.bin"])
def test_an_attached_invoice_is_found_by_its_content(stored: Store, name: str) -> None:
    def attach(opened: Any) -> None:
        opened.attachments["notes.txt"] = b"no invoice"
        opened.attachments[name] = CII.encode()

    found = outline(stored(edited(text_pdf([(72, 72, "x")]), attach)), LIMITS)
    assert found.invoice is not None
    assert (found.invoice.attachment, found.invoice.xml) == (name, CII)


@pytest.mark.parametrize("packed", [True, False])
def test_an_invoice_that_only_the_catalogue_points_to_is_found(stored: Store, packed: bool) -> None:
    def attach(opened: Any) -> None:
        stream = opened.make_stream(CII.encode(), Type=pikepdf.Name.EmbeddedFile, Subtype=pikepdf.Name("/text/xml"))
        spec = pikepdf.Dictionary(Type=pikepdf.Name.Filespec, F="x.xml", EF=pikepdf.Dictionary(F=stream))
        opened.Root.AF = pikepdf.Array([opened.make_indirect(spec)])

    data = edited(text_pdf([(72, 72, "x")]), attach, compress_streams=packed)
    found = outline(stored(data), LIMITS)
    assert found.invoice is not None
    assert found.invoice.xml == CII


def test_an_attachment_with_a_document_type_is_left_alone_with_a_note(stored: Store) -> None:
    def attach(opened: Any) -> None:
        opened.attachments["factur-x.xml"] = b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"

    found = outline(stored(edited(text_pdf([(72, 72, "x")]), attach)), LIMITS)
    assert found.invoice is None
    assert "DOCTYPE" in found.notes[0]


def test_an_outline_survives_its_checkpoint(stored: Store) -> None:
    pdf = pdf_page()
    pdf.text(72, 72, PROSE)
    pdf.add_page()
    pdf.image(io.BytesIO(saved(written(["Scanned"]), "PNG")), x=0, y=0, w=595, h=841)
    found = outline(stored(bytes(pdf.output())), LIMITS)
    kept = Outline.from_json(found.as_json())
    assert (kept.page_count, kept.needs_ocr, kept.sha256) == (2, (2,), found.sha256)
    assert kept.as_json() == found.as_json()
    whole = assemble(kept, [Page(number=2, width=1, height=1, source=TextSource.OCR)])
    assert isinstance(whole, Reading)
    assert [page.number for page in whole.pages] == [1, 2]
