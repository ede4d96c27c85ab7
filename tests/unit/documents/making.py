"""Small documents for the tests of reading, each made to show one thing."""

import io
import zipfile
from collections.abc import Mapping

import pikepdf
from fpdf import FPDF
from PIL import Image, ImageDraw, ImageFont

CII = (
    '<rsm:CrossIndustryInvoice xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100">'
    "<rsm:ExchangedDocument/></rsm:CrossIndustryInvoice>"
)
UBL = '<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"><Note>Grüße</Note></Invoice>'


def pdf_page() -> FPDF:
    """An A4 page in points, to write on."""
    pdf = FPDF(unit="pt", format="A4")
    pdf.set_compression(False)
    pdf.set_auto_page_break(False)
    pdf.add_page()
    pdf.set_font("helvetica", size=12)
    return pdf


def text_pdf(*pages: list[tuple[float, float, str]]) -> bytes:
    """Pages with pieces of text at places (points from the top left, baseline)."""
    pdf = FPDF(unit="pt", format="A4")
    pdf.set_auto_page_break(False)
    pdf.set_font("helvetica", size=12)
    for pieces in pages:
        pdf.add_page()
        for x, y, text in pieces:
            pdf.text(x, y, text)
    return bytes(pdf.output())


def edited(data: bytes, change: "object", **saving: object) -> bytes:
    """A PDF changed by a function of the opened file."""
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(data)) as pdf:
        change(pdf)  # type: ignore[operator]
        pdf.save(out, **saving)  # type: ignore[arg-type]
    return out.getvalue()


def written(lines: list[str], *, size: int = 34, width: int = 900) -> Image.Image:
    """A picture with lines of text."""
    picture = Image.new("RGB", (width, 60 + len(lines) * size * 2), "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=size)
    for index, line in enumerate(lines):
        draw.text((40, 30 + index * size * 2), line, fill="black", font=font)
    return picture


def saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    """A picture as the bytes of a file."""
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def zipped(entries: Mapping[str, bytes | str], *, packed: bool = True) -> bytes:
    """An archive with these entries, in this order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def opf(*documents: str) -> str:
    """A package file whose spine has these documents in this order."""
    items = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(documents)
    )
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(documents)))
    return (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        "<dc:title>A Book</dc:title></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )


def epub(chapters: Mapping[str, str], **others: bytes | str) -> bytes:
    """A book with chapters by file name; other entries override or add."""
    entries: dict[str, bytes | str] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OPS/book.opf": opf(*chapters),
        **{f"OPS/{name}": text for name, text in chapters.items()},
        **others,
    }
    return zipped(entries)


def chapter(title: str, *paragraphs: str) -> str:
    """An XHTML document."""
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    return (
        f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head>'
        f"<body><h1>{title}</h1>{body}</body></html>"
    )
