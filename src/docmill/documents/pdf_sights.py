"""What there is to see on a PDF page besides its text: whether OCR would find anything there."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pypdfium2.raw as raw

_OBJECTS = 2000
"""Objects of a page that are looked at; who has more has certainly something to see."""
_DEPTH = 4
_GLANCE = 400
"""Pixels of the longer side of the rendering that tells whether a page is blank."""
_LOOK = 900
"""The same where single words are looked for."""
_EVEN = 24
"""Steps of grey that a blank page may differ by."""
_GROUND = 0.4
"""Share of the box of a word that is ground at least, whatever its letters."""

_ANNOTATIONS = 200
_WRITTEN_ON = (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP)

Sides = tuple[float, float, float, float]


@dataclass(slots=True)
class Sights:
    """A tally of a page's objects."""

    covered: float = 0.0
    """Share of the page that lies under pictures."""
    strokes: int = 0
    """Lines and curves of drawings."""
    texts: int = 0
    """Pieces of text, readable or not."""


def look_through(page: Any, box: Sides) -> Sights:
    """Count what is on the visible part of the page, in drawings within drawings too."""
    seen = Sights()
    area = (box[2] - box[0]) * (box[3] - box[1])
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for index in range(min(_OBJECTS, raw.FPDFPage_CountObjects(page))):
        item = raw.FPDFPage_GetObject(page, index)
        kind = raw.FPDFPageObj_GetType(item)
        if _count(item, kind, seen, _DEPTH) and raw.FPDFPageObj_GetBounds(item, left, bottom, right, top):
            width = min(right.value, box[2]) - max(left.value, box[0])
            height = min(top.value, box[3]) - max(bottom.value, box[1])
            if width > 0 and height > 0:
                seen.covered += width * height / area
    if raw.FPDFPage_GetAnnotCount(page) > 0:
        # A stamp or a filled-in field: drawn, and not part of the text.
        seen.texts += 1
    return seen


def _count(item: Any, kind: int, seen: Sights, depth: int) -> bool:
    """Add an object to the tally; whether it is or holds a picture."""
    match kind:
        case raw.FPDF_PAGEOBJ_IMAGE | raw.FPDF_PAGEOBJ_SHADING:
            return bool(kind == raw.FPDF_PAGEOBJ_IMAGE)
        case raw.FPDF_PAGEOBJ_TEXT:
            seen.texts += 1
        case raw.FPDF_PAGEOBJ_PATH:
            seen.strokes += max(0, raw.FPDFPath_CountSegments(item))
        case raw.FPDF_PAGEOBJ_FORM if depth:
            pictures = False
            for index in range(min(_OBJECTS, max(0, raw.FPDFFormObj_CountObjects(item)))):
                inner = raw.FPDFFormObj_GetObject(item, index)
                pictures |= _count(inner, raw.FPDFPageObj_GetType(inner), seen, depth - 1)
            return pictures
    return False


def has_ink(page: Any) -> bool:
    """Whether a small rendering of the page shows anything at all."""
    picture = _greys(page, _GLANCE)
    return picture is None or max(picture.grey) - min(picture.grey) >= _EVEN


def can_be_seen(page: Any, boxes: Sequence[Sides]) -> list[bool]:
    """Of pale words, by their boxes in the page's own coordinates, whether a person sees them: one in white is seen on
    a dark heading, and not on paper, whatever else is drawn there."""
    picture = _greys(page, _LOOK)
    return [picture is None or picture.stands_out(page, box) for box in boxes]


class _Greys(NamedTuple):
    """A page, rendered in shades of grey."""

    across: int
    down: int
    stride: int
    grey: bytes

    def stands_out(self, page: Any, box: Sides) -> bool:
        """Whether something within a box is lighter than the ground that it is on: than most of it, and of its edges.

        Neither is dark where a line crosses the box, or where darker letters stand in it.
        """
        corners = [self._pixel(page, x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
        left, right = min(x for x, _ in corners), max(x for x, _ in corners)
        top, bottom = min(y for _, y in corners), max(y for _, y in corners)
        rows = [self.grey[row * self.stride + left : row * self.stride + right + 1] for row in range(top, bottom + 1)]
        within = sorted(b"".join(rows))
        edges = sorted(rows[0] + rows[-1] + bytes(row[0] for row in rows) + bytes(row[-1] for row in rows))
        light = within[-1] - _EVEN
        return within[round(_GROUND * (len(within) - 1))] <= light and edges[len(edges) // 2] <= light

    def _pixel(self, page: Any, x: float, y: float) -> tuple[int, int]:
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(page, 0, 0, self.across, self.down, 0, x, y, ctypes.byref(across), ctypes.byref(down))
        return min(max(across.value, 0), self.across - 1), min(max(down.value, 0), self.down - 1)


def _greys(page: Any, longest: int) -> _Greys | None:
    """The page in so many pixels; None if there is no memory for them."""
    width, height = raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page)
    scale = longest / max(width, height)
    across, down = max(4, round(width * scale) // 4 * 4), max(1, round(height * scale))
    bitmap = raw.FPDFBitmap_CreateEx(across, down, raw.FPDFBitmap_Gray, None, 0)
    if not bitmap:
        return None
    try:
        raw.FPDFBitmap_FillRect(bitmap, 0, 0, across, down, 0xFFFFFFFF)
        raw.FPDF_RenderPageBitmap(bitmap, page, 0, 0, across, down, 0, raw.FPDF_ANNOT | raw.FPDF_GRAYSCALE)
        stride = raw.FPDFBitmap_GetStride(bitmap)
        return _Greys(across, down, stride, ctypes.string_at(raw.FPDFBitmap_GetBuffer(bitmap), stride * down))
    finally:
        raw.FPDFBitmap_Destroy(bitmap)


def has_written_on(page: Any) -> bool:
    """Whether fields were filled in or notes stamped on: drawn over the page, and no part of its text."""
    for index in range(min(_ANNOTATIONS, raw.FPDFPage_GetAnnotCount(page))):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if annotation:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            raw.FPDFPage_CloseAnnot(annotation)
            if kind in _WRITTEN_ON:
                return True
    return False
