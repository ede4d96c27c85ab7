"""PDF files: opened, looked through, rendered. By PDFium, which runs no JavaScript here and follows no action."""

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from docmill.documents.faults import DamagedFile, EncryptedPdf, NoSuchPage, TooManyPages, TooMuchText
from docmill.documents.limits import Limits
from docmill.documents.lines import join_lines
from docmill.documents.pdf_sights import can_be_seen, has_ink, has_written_on, look_through
from docmill.documents.pdf_text import RawWord, TextLayer, mended, place
from docmill.documents.reading import Page, TextSource

_ENOUGH = 12
"""Letters and digits from which on the text layer of a page is believed though it has small pictures or drawings."""
_ENOUGH_ON_PICTURE = 120
"""The same when a picture covers most of the page: less is a stamp of the scanner, not the text of the scan."""
_COVERS = 0.5
_SMALL_PICTURE = 0.02
"""Share of the page that pictures cover at least if there may be text in them."""
_DRAWING = 150
"""Lines and curves of a drawing from which on it may be text that was turned into outlines."""
_SMALLEST, _LARGEST = 1.0, 20_000.0
"""Sides of a page, in points: beyond these it is broken (or an attack), not paper."""

_METADATA = ("Title", "Author", "Subject", "Keywords", "Creator", "Producer", "CreationDate")
_LONGEST_METADATA = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfOutline:
    """What a PDF says without OCR."""

    page_count: int
    pages: tuple[Page, ...]
    needs_ocr: tuple[int, ...]
    notes: tuple[str, ...]
    metadata: dict[str, str]
    cut: dict[str, int]
    """As of a reading."""


@contextmanager
def opened(file: str | bytes, limits: Limits) -> Iterator[Any]:
    """The document at a path, or of bytes; with the empty password if it has one that everybody has."""
    try:
        document = pdfium.PdfDocument(file)
    except pdfium.PdfiumError as error:
        if raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD or "password" in str(error).lower():
            raise EncryptedPdf("The PDF is locked by a password. Save it without one and upload it again.") from None
        raise DamagedFile(
            "The PDF is damaged: no page can be found in it. Ask for a new copy, or print it to a new PDF."
        ) from None
    try:
        count = len(document)
        if count > limits.max_pages:
            raise TooManyPages(
                f"The PDF has {count} pages; {limits.max_pages} are the limit. Split it, or raise documents.max_pages.",
                pages=count,
            )
        if count < 1:
            raise DamagedFile("The PDF has no pages. Ask for a new copy.")
        yield document
    finally:
        document.close()


def outline(document: Any, limits: Limits) -> PdfOutline:
    """Pages with text, the numbers of those that have only pictures of it, and what the file says about itself."""
    pages: list[Page] = []
    needs_ocr: list[int] = []
    notes: list[str] = []
    broken: list[int] = []
    cut: dict[str, int] = {}
    characters = 0
    for number in range(1, len(document) + 1):
        with _loaded(document, number) as page:
            if page is None:
                broken.append(number)
                pages.append(Page(number=number, width=1.0, height=1.0, source=TextSource.NONE))
                continue
            found = _page(page, number, limits, notes, cut)
        if found is None:
            needs_ocr.append(number)
            continue
        pages.append(found)
        # Not by `found.words`, which would be kept with the page and travel home with it.
        characters += sum(len(word.text) for line in found.lines for word in line.words)
        if characters > limits.max_characters:
            raise TooMuchText(
                f"The text of the PDF is longer than {limits.max_characters} characters. Split it into several files."
            )
    if len(broken) == len(document):
        raise DamagedFile("The PDF is damaged: none of its pages can be opened. Ask for a new copy.")
    if broken:
        notes.append(f"Pages that are damaged and were left empty: {', '.join(map(str, broken[:20]))}.")
    return PdfOutline(
        page_count=len(document),
        pages=tuple(pages),
        needs_ocr=tuple(needs_ocr),
        notes=tuple(notes),
        metadata=_metadata(document),
        cut=cut,
    )


def _page(page: Any, number: int, limits: Limits, notes: list[str], cut: dict[str, int]) -> Page | None:
    """The page as its text layer has it; None when it must be looked at."""
    box = _box(page)
    stored = raw.FPDFPage_GetRotation(page) * 90
    layer = TextLayer(page, limits.page_characters)
    try:
        words = _seen(page, number, layer, notes)
        usable = layer.usable()
        if usable < _ENOUGH_ON_PICTURE:
            seen = look_through(page, box)
            garbled = bool(layer.text.strip()) or seen.texts > 0
            hidden = seen.covered > _SMALL_PICTURE or seen.strokes > _DRAWING or (garbled and not usable)
            # Pictures may be costly to draw, so whether one is white is left to whoever draws it for OCR.
            if seen.covered > _COVERS or (usable < _ENOUGH and hidden and (seen.covered or has_ink(page))):
                return None
        turn = layer.direction() if usable else stored
        placed = place(words, box, turn)
        if layer.cut:
            cut["page_characters"] = limits.page_characters
            notes.append(f"Page {number} has more text than {limits.page_characters} characters; the rest is left out.")
    finally:
        layer.close()
    width, height = box[2] - box[0], box[3] - box[1]
    if turn in (90, 270):
        width, height = height, width
    return Page(
        number=number,
        width=round(width, 2),
        height=round(height, 2),
        source=TextSource.EMBEDDED if placed else TextSource.NONE,
        lines=join_lines(placed, width, height),
        turned=(turn - stored) % 360,
    )


def _seen(page: Any, number: int, layer: TextLayer, notes: list[str]) -> Iterable[RawWord]:
    """The words without those that a person does not see: what nobody saw, nobody has agreed to.

    Those count for nothing else either: neither as text that makes OCR needless, nor for how the page lies.
    """
    pieces = list(layer.pieces())
    torn = layer.torn()
    if layer.pale:
        seen = can_be_seen(page, [pieces[index][1:5] for index in layer.pale])
        hidden = {index: span for (index, span), found in zip(layer.pale.items(), seen, strict=True) if not found}
        if hidden:
            notes.append(f"Page {number} has words that nobody can see, such as white on white; they are left out.")
            layer.hide(hidden.values())
            pieces = [piece for index, piece in enumerate(pieces) if index not in hidden]
    return mended(pieces) if torn else pieces


@contextmanager
def _loaded(document: Any, number: int) -> Iterator[Any]:
    """The raw page, or None when it cannot be opened or has no size."""
    page = raw.FPDF_LoadPage(document.raw, number - 1)
    if page and has_written_on(page) and raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS:
        # What was filled in or stamped on is part of the page now (in memory), so its words are found like others.
        raw.FPDF_ClosePage(page)
        page = raw.FPDF_LoadPage(document.raw, number - 1)
    try:
        sane = page and all(
            _SMALLEST <= side <= _LARGEST for side in (raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page))
        )
        yield page if sane else None
    finally:
        if page:
            raw.FPDF_ClosePage(page)


def _box(page: Any) -> tuple[float, float, float, float]:
    """What is visible of the page: left, bottom, right, top in its own coordinates."""
    rect = raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(page, ctypes.byref(rect))
    return rect.left, rect.bottom, rect.right, rect.top


def _metadata(document: Any) -> dict[str, str]:
    said = {}
    for key in _METADATA:
        value = " ".join(str(document.get_metadata_value(key)).replace("\x00", " ").split())
        if value:
            said[key.lower()] = value[:_LONGEST_METADATA]
    return said


def render(
    document: Any,
    number: int,
    limits: Limits,
    *,
    dpi: float | None = None,
    max_side: int | None = None,
    max_pixels: int | None = None,
) -> tuple[Any, float, float]:
    """One page as a PIL image (RGB), as the file says it stands, and its size in points."""
    if not 1 <= number <= len(document):
        raise NoSuchPage(f"The document has {len(document)} pages; there is no page {number}.")
    with _loaded(document, number) as sane:
        if sane is None:
            raise DamagedFile(f"Page {number} is damaged or of an impossible size. Ask for a new copy.")
    page = document[number - 1]
    try:
        width, height = page.get_size()
        scale = (dpi or limits.dpi) / 72
        if max_side is not None:
            fitting = max_side / max(width, height)
            scale = min(scale, fitting) if dpi else fitting
        most = min(limits.render_pixels, max_pixels or limits.render_pixels)
        scale = min(scale, (most / (width * height)) ** 0.5)
        picture = page.render(scale=max(scale, 0.01), may_draw_forms=True, draw_annots=True).to_pil().convert("RGB")
        return picture, round(width, 2), round(height, 2)
    finally:
        page.close()
