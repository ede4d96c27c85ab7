"""Content decides what a file is, never its name."""

from pathlib import Path

import pytest

from docmill.documents.faults import EmptyFile, UnsupportedFile
from docmill.documents.reading import Format
from docmill.documents.sniffing import sniff, sniff_file
from tests.unit.documents.making import CII, chapter, epub, saved, text_pdf, written, zipped


def stored_pdf() -> bytes:
    """A zip archive with a PDF in it that is not compressed, so its signature can be seen from outside."""
    import io
    import zipfile

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as bundle:
        bundle.writestr("bill.pdf", text_pdf([(72, 72, "x")]))
    return archive.getvalue()


PICTURE = written(["x"], width=80)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (text_pdf([(72, 72, "x")]), Format.PDF),
        (b"junk\n" * 100 + text_pdf([(72, 72, "x")]), Format.PDF),
        (saved(PICTURE, "PNG"), Format.PNG),
        (saved(PICTURE, "JPEG"), Format.JPEG),
        (saved(PICTURE, "WEBP"), Format.WEBP),
        (saved(PICTURE, "GIF"), Format.GIF),
        (saved(PICTURE, "TIFF"), Format.TIFF),
        (saved(PICTURE, "TIFF", big_tiff=True), Format.TIFF),
        (saved(PICTURE, "BMP"), Format.BMP),
        (epub({"a.xhtml": chapter("A", "x")}), Format.EPUB),
        (zipped({"META-INF/container.xml": "x", "mimetype": "application/epub+zip"}), Format.EPUB),
        (CII.encode(), Format.XML),
        (b'\xef\xbb\xbf<?xml version="1.0"?>' + CII.encode(), Format.XML),
        (CII.encode("utf-16"), Format.XML),
        (CII.encode("utf-16-be"), Format.XML),
        (b"\n\n  " + CII.encode(), Format.XML),
    ],
)
def test_the_format_is_known_by_its_content(data: bytes, kind: Format) -> None:
    assert sniff(data) is kind


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<!DOCTYPE html><html><body>x</body></html>", "a web page"),
        (b"MZ\x90\x00" + bytes(100), "a program"),
        (b"Invoice 1, total 5", "plain text"),
        (b"\x00\x00\x00\x18ftypheic" + bytes(50), "a HEIC"),
        ("Rechnung 1, total 5".encode("utf-16"), "plain text"),
        (stored_pdf(), "a zip a"),
        (b"\x1f\x8b\x08\x00" + text_pdf([(72, 72, "x")]), "a gzip a"),
        (zipped({"word/document.xml": "<x/>"}), "a Word document.*; save it as PDF"),
        (zipped({"_rels/.rels": "<x/>", "xl/workbook.xml": "<x/>"}), "an Excel workbook"),
        (b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.opendocument.text", "an OpenDocument text"),
        (zipped({"march/word/bill.pdf": "word/"}), "a zip archive that is not an EPUB.*; unpack it"),
        (bytes(range(200, 256)) * 4, "not known"),
        (b"BM is how this text begins, which makes it no picture", "plain text"),
    ],
)
def test_what_is_not_read_here_is_refused_by_what_it_is(data: bytes, said: str) -> None:
    with pytest.raises(UnsupportedFile, match=said) as refused:
        sniff(data)
    assert refused.value.code == "unsupported_file"
    assert "PDF, PNG, JPEG" in refused.value.message


def test_an_empty_file_is_said_to_be_empty() -> None:
    with pytest.raises(EmptyFile):
        sniff(b"")


@pytest.mark.parametrize("behind", [0, 100, (1 << 16) - 40, (1 << 16) - 10, 3 << 16])
def test_an_archive_is_looked_through_piece_by_piece_for_what_makes_it_a_book(tmp_path: Path, behind: int) -> None:
    file = tmp_path / "any"
    file.write_bytes(b"PK\x03\x04" + bytes(behind) + b"META-INF/container.xml" + bytes(100))
    assert sniff_file(file) is Format.EPUB
    file.write_bytes(b"PK\x03\x04" + bytes(behind) + b"META-INF/contained.xml" + bytes(100))
    with pytest.raises(UnsupportedFile):
        sniff_file(file)
