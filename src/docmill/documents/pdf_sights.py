"""What there is to see on a PDF page besides its text: whether OCR would find anything there."""

import ctypes
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as raw

_OBJECTS = 2000
"""Objects of a page that are looked at; who has more has certainly something to see."""
_DEPTH = 4
_GLANCE = 400
"""Pixels of the longer side of the rendering that tells whether a page is blank."""
_EVEN = 24
"""Steps of grey that a blank page may differ by."""

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
    width, height = raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page)
    scale = _GLANCE / max(width, height)
    across, down = max(4, round(width * scale) // 4 * 4), max(1, round(height * scale))
    bitmap = raw.FPDFBitmap_CreateEx(across, down, raw.FPDFBitmap_Gray, None, 0)
    if not bitmap:
        return True
    try:
        raw.FPDFBitmap_FillRect(bitmap, 0, 0, across, down, 0xFFFFFFFF)
        raw.FPDF_RenderPageBitmap(bitmap, page, 0, 0, across, down, 0, raw.FPDF_ANNOT | raw.FPDF_GRAYSCALE)
        grey = ctypes.string_at(raw.FPDFBitmap_GetBuffer(bitmap), raw.FPDFBitmap_GetStride(bitmap) * down)
    finally:
        raw.FPDFBitmap_Destroy(bitmap)
    return max(grey) - min(grey) >= _EVEN


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
