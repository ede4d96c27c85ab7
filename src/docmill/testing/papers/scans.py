"""Pages as images: receipts drawn by a till, PDFs that went through a scanner, and the formats they are kept in."""

import io
from random import Random
from typing import TYPE_CHECKING, Any

from docmill.testing.papers.drawing import library
from docmill.testing.papers.facts import ReceiptFacts, receipt_facts
from docmill.testing.papers.paper import Paper

if TYPE_CHECKING:
    from PIL.Image import Image

_SUFFIXES = {"JPEG": "jpg", "PNG": "png", "TIFF": "tiff", "GIF": "gif", "BMP": "bmp", "WEBP": "webp"}
FORMATS = tuple(_SUFFIXES)
"""Of images, as PIL calls them."""
_MANY_PAGES = ("TIFF", "GIF")


def receipt_image(
    seed: int = 0, *, format: str = "JPEG", items: int | None = None, noise: float = 6.0, tilt: float | None = None
) -> Paper:
    """A receipt as a camera or a scanner sees it: noise (grey levels) and a slight tilt (degrees; none: drawn)."""
    facts = receipt_facts(seed, items=items)
    random = Random(f"scan {seed}")
    angle = random.uniform(-1.2, 1.2) if tilt is None else tilt
    image = worn(draw_receipt(facts), random, noise=noise, tilt=angle)
    return Paper(
        name=f"receipt-{seed:04}.{_SUFFIXES[format]}",
        content=encoded([image], format),
        schema="receipt",
        fields=facts.fields(),
        layout="receipt",
    )


def scanned(paper: Paper, *, format: str = "JPEG", dpi: int = 150, noise: float = 5.0, tilt: float = 0.4) -> Paper:
    """A PDF printed and scanned: the same labels, pixels instead of text. Formats of one page keep the first page."""
    pypdfium2 = library("pypdfium2")
    random = Random(f"scan {paper.name}")
    with pypdfium2.PdfDocument(paper.content) as document:
        pages = [document[number].render(scale=dpi / 72).to_pil().convert("L") for number in range(len(document))]
    kept = pages if format in _MANY_PAGES else pages[:1]
    images = [worn(page, random, noise=noise, tilt=tilt) for page in kept]
    return Paper(
        name=f"{paper.name.rpartition('.')[0]}.{_SUFFIXES[format]}",
        content=encoded(images, format),
        schema=paper.schema,
        fields=paper.fields,
        rows=paper.rows,
        pages=len(images),
        layout="scanned",
    )


def scanned_pdf(paper: Paper, *, dpi: int = 150) -> Paper:
    """A PDF whose pages are pictures, as scanners make them."""
    pypdfium2 = library("pypdfium2")
    random = Random(f"scan {paper.name}")
    with pypdfium2.PdfDocument(paper.content) as document:
        pages = [document[number].render(scale=dpi / 72).to_pil().convert("L") for number in range(len(document))]
    first, *rest = [worn(page, random, noise=4.0, tilt=0.3) for page in pages]
    stream = io.BytesIO()
    # Without the times PIL would write the present one.
    first.save(stream, "PDF", resolution=dpi, save_all=True, append_images=rest, creationDate=None, modDate=None)
    return Paper(
        name=f"{paper.name.rpartition('.')[0]}-scan.pdf",
        content=stream.getvalue(),
        schema=paper.schema,
        fields=paper.fields,
        rows=paper.rows,
        pages=len(pages),
        layout="scanned",
    )


def draw_receipt(facts: ReceiptFacts) -> "Image":
    """The receipt, clean, black on white."""
    from PIL import Image, ImageDraw, ImageFont

    width, step = 640, 36
    rows = _receipt_rows(facts)
    image = Image.new("L", (width, 80 + step * len(rows)), 255)
    pen = ImageDraw.Draw(image)
    y = 40
    for left, right, size in rows:
        font: Any = ImageFont.load_default(size=size)
        if right is None:
            pen.text((width / 2, y), left, fill=0, font=font, anchor="ma")
        else:
            pen.text((40, y), left, fill=0, font=font)
            pen.text((width - 40, y), right, fill=0, font=font, anchor="ra")
        y += step
    return image


def _receipt_rows(facts: ReceiptFacts) -> list[tuple[str, str | None, int]]:
    """Left text, right text (None: the left one is centred), and size."""

    def money(value: object) -> str:
        return f"{value:,.2f}"

    rows: list[tuple[str, str | None, int]] = [(facts.company, None, 28)]
    rows.append((f"({facts.registration})", None, 20))
    rows += [(line, None, 22) for line in facts.address]
    rows += [("", None, 20), ("RECEIPT", None, 24)]
    rows += [
        (f"No: {facts.number}", f"Date: {facts.day.strftime(facts.day_form)} {facts.time}", 22),
        ("-" * 60, None, 20),
    ]
    for item in facts.items:
        rows.append((f"{item.quantity} x {item.description}", money(item.amount), 22))
    rows += [
        ("-" * 60, None, 20),
        ("TOTAL", f"{facts.symbol} {money(facts.total)}", 28),
        (f"Tax included {facts.rate}%", money(facts.tax), 20),
        ("CASH", money(facts.cash), 22),
        ("CHANGE", money(facts.cash - facts.total), 22),
        ("", None, 20),
        ("THANK YOU", None, 22),
    ]
    return rows


def worn(image: "Image", random: Random, *, noise: float, tilt: float) -> "Image":
    """As a scanner or camera would have it: tilted, unevenly lit, grainy."""
    import numpy
    from PIL import Image

    turned = image.rotate(tilt, resample=Image.Resampling.BICUBIC, expand=True, fillcolor=255)
    pixels = numpy.asarray(turned, dtype=numpy.float32)
    grain = numpy.random.default_rng(random.randrange(1 << 32)).normal(0.0, noise, pixels.shape)
    light = numpy.linspace(0, 12 * min(1.0, noise), pixels.shape[0])[:, None]
    return Image.fromarray(numpy.clip(pixels - light + grain, 0, 255).astype(numpy.uint8))


def encoded(images: "list[Image]", format: str) -> bytes:
    """The images in one file."""
    stream = io.BytesIO()
    first, *rest = images
    options: dict[str, Any] = {"quality": 88} if format == "JPEG" else {}
    if format == "TIFF":
        options["compression"] = "tiff_deflate"
    if rest:
        options = {**options, "save_all": True, "append_images": rest}
    first.save(stream, format, **options)
    return stream.getvalue()
