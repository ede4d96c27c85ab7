"""What kind of file this is, by its content: nine formats with signatures of their own. The name is never asked."""

import re
from pathlib import Path

from docmill.documents.faults import EmptyFile, UnsupportedFile
from docmill.documents.reading import Format

_SIGNATURES: tuple[tuple[bytes, Format], ...] = (
    (b"\x89PNG\r\n\x1a\n", Format.PNG),
    (b"\xff\xd8\xff", Format.JPEG),
    (b"GIF87a", Format.GIF),
    (b"GIF89a", Format.GIF),
    (b"II*\x00", Format.TIFF),
    (b"MM\x00*", Format.TIFF),
    (b"II+\x00", Format.TIFF),
    (b"MM\x00+", Format.TIFF),
)

_PDF_SEARCH = 1024
"""Readers accept a header this far into the file, so some writers put junk before it."""

_XML_START = re.compile(
    rb"(?:\xef\xbb\xbf|\s)*<|(?:\xff\xfe)?(?:[ \t\r\n]\x00)*<\x00|(?:\xfe\xff)?(?:\x00[ \t\r\n])*\x00<"
)

_HTML_STARTS = ("<!doctype html", "<html", "<head", "<body", "<script")

_ZIP = b"PK\x03\x04"
_CONTAINER = b"META-INF/container.xml"
_ENTRY = rb"PK(?:\x03\x04.{26}|\x01\x02.{42})"
"""The header of an entry, in its place or in the list at the end; its name follows."""
_HEAD = 1 << 16
_ARCHIVES = (_ZIP, b"PK\x05\x06", b"PK\x07\x08", b"\x1f\x8b", b"7z\xbc\xaf", b"Rar!")
_WHAT_IT_IS: tuple[tuple[bytes, str], ...] = (
    (_ZIP, "a zip archive that is not an EPUB"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"PK\x07\x08", "a zip archive in parts"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"MZ", "a program"),
    (b"\x7fELF", "a program"),
    (b"{\\rtf", "a rich text document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"%!PS", "PostScript"),
)

SUPPORTED = "PDF, PNG, JPEG, WebP, GIF, TIFF, BMP, EPUB and e-invoice XML (UBL, CII)"


_OFFICE: tuple[tuple[bytes, str], ...] = (
    (b"word/", "a Word document"),
    (b"xl/", "an Excel workbook"),
    (b"ppt/", "a PowerPoint presentation"),
    (b"application/vnd.oasis.opendocument.text", "an OpenDocument text"),
    (b"application/vnd.oasis.opendocument.spreadsheet", "an OpenDocument spreadsheet"),
)
"""By the names of entries, which stand uncompressed in the archive, or by the first entry of an OpenDocument."""


def sniff(data: bytes) -> Format:
    """The format of a file that begins so; refuses what is read by nobody here."""
    if not data:
        raise EmptyFile("The file is empty. Upload it again; perhaps the transfer was cut off.")
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Format.WEBP
    if _is_bmp(data):
        return Format.BMP
    if data.startswith(_ARCHIVES):
        # Whatever lies in an archive is not what the file is: a PDF that is only stored in it can be seen from outside.
        if data.startswith(_ZIP) and _is_epub(data):
            return Format.EPUB
    elif b"%PDF-" in data[: _PDF_SEARCH + 5]:
        return Format.PDF
    if _is_xml(data):
        return Format.XML
    raise _unsupported(data)


def sniff_file(file: Path) -> Format:
    """The same of a file, however large it is: a part of it is held at a time."""
    with file.open("rb") as stream:
        head = stream.read(_HEAD)
        try:
            return sniff(head)
        except UnsupportedFile:
            if not head.startswith(_ZIP):
                raise
            # An archive that keeps the names of its entries further behind.
            kept = head
            while more := stream.read(_HEAD):
                if _CONTAINER in (kept := kept[-len(_CONTAINER) :] + more):
                    return Format.EPUB
            # Of a large one the names that tell are in the list at its end.
            raise _unsupported(head + kept) from None


def _unsupported(data: bytes) -> UnsupportedFile:
    if office := _office(data):
        return UnsupportedFile(f"This is {office}. Docmill reads {SUPPORTED}; save it as PDF.")
    remedy = "unpack it first" if data.startswith(_ARCHIVES) else "convert the file to one of them"
    return UnsupportedFile(f"This is {_described(data)}. Docmill reads {SUPPORTED}; {remedy}.")


def _office(data: bytes) -> str | None:
    """Which kind of Office document a zip archive is. Names of entries follow their headers; text that is merely stored
    in some archive is no such name."""
    if not data.startswith(_ZIP):
        return None
    for name, what in _OFFICE:
        if name.startswith(b"application/"):
            if data[30:38] == b"mimetype" and data[38:].startswith(name):
                return what
        elif re.search(_ENTRY + re.escape(name), data, re.DOTALL):
            return what
    return None


def _is_bmp(data: bytes) -> bool:
    """BM alone would be a poor signature: the size of the header behind it must be one that exists."""
    header = int.from_bytes(data[14:18], "little")
    return data[:2] == b"BM" and len(data) >= 26 and header in (12, 40, 52, 56, 64, 108, 124)


def _is_epub(data: bytes) -> bool:
    """By the first entry, as the standard demands, or by its container file, since not every writer obeys.

    Names stand uncompressed in an archive, so there is no need to open it (and nothing to be bombed by).
    """
    return data[30:58] == b"mimetypeapplication/epub+zip" or _CONTAINER in data


def _is_xml(data: bytes) -> bool:
    if not _XML_START.match(data[:512]):
        return False
    return not _text(data[:512].lstrip()).lower().lstrip().startswith(_HTML_STARTS)


def _text(start: bytes) -> str:
    if b"\x00" in start[:4]:
        return start.replace(b"\x00", b"").decode("latin-1").lstrip("\xff\xfe")
    return start.decode("latin-1").removeprefix("\xef\xbb\xbf")


def _described(data: bytes) -> str:
    for signature, what in _WHAT_IT_IS:
        if data.startswith(signature):
            return what
    if data[4:8] == b"ftyp":
        return "a HEIC or AVIF photograph, or a film"
    start = data[:512].lstrip()
    if _text(start).lower().startswith(_HTML_STARTS):
        return "a web page"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "plain text"
    try:
        data[:400].decode("utf-8")
    except UnicodeDecodeError:
        return "of a kind that is not known here"
    return "plain text"
