"""Images: frames become pages, the camera's notes are honoured, and OCR turns what lies on its side."""

import io
from collections.abc import Callable

import pytest
from PIL import Image, ImageDraw, ImageFont

from docmill.documents.faults import DamagedFile, NoSuchPage, TooManyPixels
from docmill.documents.limits import Limits
from docmill.documents.parsing import outline, read_page, read_whole
from docmill.documents.pictures import picture, render_page, render_png
from docmill.documents.reading import TextSource
from tests.unit.documents.making import CII, saved, text_pdf, written

Store = Callable[[bytes], str]
LIMITS = Limits()
RECEIPT = ["CORNER SHOP LTD", "Coffee beans 12.50", "Milk 3.20", "TOTAL 15.70"]


@pytest.fixture(scope="module")
def receipt() -> Image.Image:
    return written(RECEIPT, width=640)


def test_ocr_reads_lines_with_a_box_for_every_word(stored: Store, receipt: Image.Image) -> None:
    reading = read_whole(stored(saved(receipt, "PNG")), LIMITS)
    (page,) = reading.pages
    assert (page.source, page.turned, page.width, page.height) == (TextSource.OCR, 0, *receipt.size)
    assert [line.text for line in page.lines] == RECEIPT
    coffee, beans, amount = page.lines[1].words
    assert amount.text == "12.50"
    assert coffee.box.left < coffee.box.right <= beans.box.left < beans.box.right <= amount.box.left
    assert coffee.box.left * receipt.width == pytest.approx(40, abs=12)
    assert amount.score is not None
    assert 0.8 < amount.score <= 1
    assert coffee.whole
    assert beans.whole


@pytest.mark.parametrize("degrees", [90, 180])
def test_a_page_that_lies_on_its_side_or_its_head_is_turned(stored: Store, receipt: Image.Image, degrees: int) -> None:
    # PIL turns to the left.
    page = read_page(stored(saved(receipt.rotate(degrees, expand=True), "PNG")), 1, LIMITS)
    assert page.turned == degrees
    assert (page.width, page.height) == receipt.size
    assert [line.text for line in page.lines] == RECEIPT
    shown = render_page(stored(saved(receipt.rotate(degrees, expand=True), "PNG")), 1, LIMITS, turned=page.turned)
    assert shown.size == receipt.size


def test_a_page_that_lies_askew_says_by_how_much_and_keeps_its_boxes(stored: Store) -> None:
    straight = written(["", *RECEIPT], width=1100)
    pen = ImageDraw.Draw(straight)
    for row, amount in ((2, "5 x 2.50"), (3, "2 x 1.60")):
        pen.text((880, 30 + row * 68), amount, fill="black", font=ImageFont.load_default(size=34))
    # PIL turns to the left, so that lines rise.
    page = read_page(stored(saved(straight.rotate(4, fillcolor="white"), "PNG")), 1, LIMITS)
    assert page.skew == pytest.approx(-4, abs=0.7)
    assert page.turned == 0
    texts = [line.text for line in page.lines]
    assert texts[1:3] == ["Coffee beans 12.50", "5 x 2.50"], (
        "row by row, though the amount stands higher than the row above"
    )
    beside = page.lines[2].words[0]
    # Where it stands on the page: higher than the row above it.
    assert beside.box.middle < page.lines[1].words[0].box.middle - 0.03


@pytest.mark.parametrize("kind", ["JPEG", "TIFF", "PNG", "WEBP"])
def test_the_orientation_that_a_camera_noted_is_honoured(stored: Store, kind: str) -> None:
    marked = Image.new("RGB", (60, 40), "white")
    marked.paste((0, 0, 0), (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6
    image, width, height = picture(stored(saved(marked, kind, exif=exif)), 1, LIMITS)
    assert (image.size, width, height) == ((40, 60), 40, 60)
    # Its upper left corner has come to the upper right.
    assert max(image.getpixel((35, 5))) < 60
    assert min(image.getpixel((5, 5))) > 200


@pytest.mark.parametrize(
    "made",
    [
        Image.new("1", (50, 50), 1),
        Image.new("L", (50, 50), 255),
        Image.new("LA", (50, 50), (0, 0)),
        Image.new("RGBA", (50, 50), (0, 0, 0, 0)),
        Image.new("P", (50, 50)).convert("RGB").convert("P"),
        Image.new("I;16", (50, 50), 65535),
    ],
    ids=lambda made: made.mode,
)
def test_every_kind_of_pixel_is_read(stored: Store, made: Image.Image) -> None:
    path = stored(saved(made, "PNG"))
    assert picture(path, 1, LIMITS)[0].mode == "RGB"
    assert read_page(path, 1, LIMITS).source is TextSource.NONE


def test_a_transparent_page_is_white_paper(stored: Store) -> None:
    image, _, _ = picture(stored(saved(Image.new("RGBA", (50, 50), (0, 0, 0, 0)), "PNG")), 1, LIMITS)
    assert image.getpixel((10, 10)) == (255, 255, 255)


@pytest.mark.parametrize("kind", ["TIFF", "GIF", "WEBP"])
def test_frames_are_pages_up_to_the_limit(stored: Store, kind: str) -> None:
    frames = [Image.new("RGB", (40, 30), (shade, 0, 0)) for shade in (10, 90, 170, 250)]
    path = stored(saved(frames[0], kind, save_all=True, append_images=frames[1:]))
    whole = outline(path, LIMITS)
    assert (whole.page_count, whole.needs_ocr) == (4, (1, 2, 3, 4))
    some = outline(path, Limits(max_frames=2))
    assert some.needs_ocr == (1, 2)
    assert "more than 2 frames" in some.notes[-1]
    assert picture(path, 3, LIMITS)[0].getpixel((5, 5))[0] == pytest.approx(170, abs=12)
    with pytest.raises(NoSuchPage):
        picture(path, 5, LIMITS)


def test_a_large_photograph_is_made_smaller_before_it_is_looked_at(stored: Store) -> None:
    path = stored(saved(Image.new("L", (3000, 2000), 255), "JPEG"))
    image, width, height = picture(path, 1, LIMITS, max_pixels=600_000)
    assert (width, height) == (3000, 2000)
    assert image.size == (949, 632)
    assert picture(path, 1, LIMITS, max_side=300)[0].size == (300, 200)


def test_too_many_pixels_are_refused_by_the_header(stored: Store) -> None:
    tall = Image.new("1", (3000, 3000))
    with pytest.raises(TooManyPixels, match=r"3000 x 3000 pixels, more than [\d,]+ in all.*documents\.max_pixels"):
        outline(stored(saved(tall, "PNG")), Limits(max_pixels=1_000_000))


def test_a_photograph_may_be_larger_since_it_is_decoded_smaller(stored: Store) -> None:
    photograph = stored(saved(Image.new("L", (3000, 3000), 255), "JPEG"))
    assert picture(photograph, 1, Limits(max_pixels=3_000_000), max_side=500)[0].size == (500, 500)
    with pytest.raises(TooManyPixels):
        picture(photograph, 1, Limits(max_pixels=2_000_000))


def test_a_cut_off_image_is_named_damaged(stored: Store, receipt: Image.Image) -> None:
    with pytest.raises(DamagedFile):
        read_page(stored(saved(receipt, "PNG")[:2000]), 1, LIMITS)


def test_a_page_can_be_looked_at(stored: Store) -> None:
    path = stored(text_pdf([(72, 72, "x")]))
    assert render_page(path, 1, LIMITS, dpi=72).size == (596, 842)
    assert render_page(path, 1, LIMITS, max_side=400).size[1] == pytest.approx(400, abs=1)
    assert Image.open(io.BytesIO(render_png(path, 1, LIMITS, dpi=36, turned=90))).size == (421, 298)
    with pytest.raises(NoSuchPage):
        render_page(path, 2, LIMITS)
    with pytest.raises(NoSuchPage):
        render_page(stored(CII.encode()), 1, LIMITS)
