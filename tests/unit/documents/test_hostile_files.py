"""Files made to harm their reader, read in limited children: a named error or a reading, and the next one is served."""

import asyncio
import struct
import zlib
from collections.abc import Callable, Iterator

import pytest
from PIL import Image

from docmill.documents.faults import DocumentFault
from docmill.documents.limits import Limits
from docmill.documents.parsing import Outline, outline
from docmill.engine.children import ChildDied, Children, ChildSettings
from tests.unit.documents.making import chapter, epub, saved, text_pdf

Store = Callable[[bytes], str]
LIMITS = Limits()


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    made = Children(ChildSettings(count=1, memory_mb=1024, cpu_seconds=30))
    yield made
    made.close()


def read(children: Children, path: str, limits: Limits = LIMITS) -> Outline | str:
    """The outline, or the code of the error."""
    try:
        found: Outline = asyncio.run(children.run(outline, (path, limits), 60.0))
    except DocumentFault as fault:
        return fault.code
    return found


def pdf(*objects: bytes, root: int = 1, trailer: bytes = b"") -> bytes:
    """A PDF of these objects, numbered from 1."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for place in places:
        out += b"%010d 00000 n \n" % place
    out += b"trailer\n<< /Size %d /Root %d 0 R %s >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, root, trailer, start)
    return bytes(out)


def one_page(page: bytes, *more: bytes) -> bytes:
    return pdf(b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page, *more)


def png(width: int, height: int) -> bytes:
    """A PNG whose header declares this size and whose content is short."""

    def part(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(b"\0" * 100)) + part(b"IEND", b"")


def bomb(size: int) -> bytes:
    """A page whose content unpacks twice to operators that draw nothing."""
    packed = zlib.compress(zlib.compress(b"q Q " * (size // 4), 9), 9)
    stream = b"<< /Filter [/FlateDecode /FlateDecode] /Length %d >>\nstream\n%s\nendstream" % (len(packed), packed)
    return one_page(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R >>", stream)


def many_pages(count: int) -> bytes:
    kids = b"3 0 R " * count
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] >>",
    )


CYCLE = pdf(b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>")
CIRCULAR_XREF = one_page(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] >>").replace(
    b"/Root 1 0 R ", b"/Root 1 0 R /Prev 9 "
)
LAUNCHING = pdf(
    b"<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS (app.alert\\(1\\);) >> "
    b"/AA << /WC << /S /Launch /F (/bin/sh) >> >> >>",
    b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] >>",
)
HUGE = one_page(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 900000000 900000000] >>")
LAUGHS = b"<!DOCTYPE a [<!ENTITY a 'ha'>" + b"".join(
    b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10 if n > 1 else b"&a;" * 10) for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(png(100_000, 100_000), "too_many_pixels", id="giant image"),
        pytest.param(png(13_000, 13_000), "too_many_pixels", id="169 megapixels"),
        pytest.param(many_pages(100_000), "too_many_pages", id="100,000 pages"),
        pytest.param(HUGE, "damaged_file", id="giant page"),
        pytest.param(CYCLE, "damaged_file", id="circular pages"),
        pytest.param(text_pdf([(72, 72, "x")])[:400], "damaged_file", id="cut off"),
        pytest.param(epub({"a.xhtml": chapter("A", " " * 20_000_000)}), "archive_refused", id="zip bomb"),
        pytest.param(
            epub({}, **{"META-INF/container.xml": "<container/>", "big.xhtml": " " * 20_000_000}),
            "archive_refused",
            id="zip bomb that is no book",
        ),
        pytest.param(LAUGHS + b"]><a>&a9;</a>", "xml_refused", id="billion laughs"),
        pytest.param(b"\x00" * 1000, "unsupported_file", id="zeros"),
        pytest.param(b"", "empty_file", id="empty"),
    ],
)
def test_a_hostile_file_ends_in_a_named_error(children: Children, stored: Store, data: bytes, code: str) -> None:
    assert read(children, stored(data)) == code


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bomb(10_000_000), id="nested streams"),
        pytest.param(CIRCULAR_XREF, id="circular cross-reference"),
        pytest.param(LAUNCHING, id="javascript and launch"),
    ],
)
def test_a_hostile_pdf_is_read_for_what_is_on_it(children: Children, stored: Store, data: bytes) -> None:
    found = read(children, stored(data))
    assert isinstance(found, Outline)
    assert (found.page_count, found.needs_ocr) == (1, ())


def test_counting_frames_stops_at_the_limit(children: Children, stored: Store) -> None:
    frames = [Image.new("1", (4, 4))] * 400
    found = read(children, stored(saved(frames[0], "TIFF", save_all=True, append_images=frames[1:])))
    assert isinstance(found, Outline)
    assert (found.page_count, len(found.needs_ocr)) == (100, 100)
    assert "left out" in found.notes[0]


def test_a_file_too_large_is_refused_unopened(children: Children, stored: Store) -> None:
    assert read(children, stored(b"%PDF-" + bytes(2000)), Limits(max_bytes=1000)) == "file_too_large"


def test_what_takes_more_memory_than_allowed_is_named_too(stored: Store) -> None:
    small = Children(ChildSettings(count=1, memory_mb=256, cpu_seconds=30))
    try:
        outcome = read(small, stored(bomb(150_000_000)))
    except ChildDied as died:
        outcome = died.code
    finally:
        small.close()
    assert outcome in ("child_died", "reader_died", "damaged_file")
