"""A stored document as a picture of one of its pages, with the evidence drawn on it."""

import asyncio
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docmill.model.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from docmill.documents.blobs import Blobs
    from docmill.documents.records import DocumentRecord
    from docmill.services.documents import Documents

_LONGEST = 2200
"""Pixels of the longer side as it is rendered: the drawing is smaller, so letters come out smooth."""
_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The picture, and what is on it."""

    png: bytes
    pages: int
    marks: list[dict[str, Any]]
    """Number, field, value, confidence and boxes of each value, as drawn."""


def draw(documents: "Documents", record: "DocumentRecord", blobs: "Blobs", *, page: int) -> Drawing:
    """Draw a page of a document; NotFound, Conflict or InvalidInput if that cannot be."""
    from docmill.services.documents import original_gone

    reading, extraction = documents.reading(record), documents.extraction(record)
    if reading is None or extraction is None:
        reason = f": {record.error_message}" if record.error_message else f"; its status is {record.status.value}"
        raise Conflict(f"Document {record.id} has nothing to show yet{reason}", document_id=record.id)
    if not reading.pages:
        raise InvalidInput(
            f"Document {record.id} is {reading.format.value.upper()} and has no pages to look at; "
            f"`docmill documents show {record.id}` lists its fields."
        )
    chosen = next((each for each in reading.pages if each.number == page), None)
    if chosen is None:
        count = len(reading.pages)
        read = "1 page that was read" if count == 1 else f"{count} pages that were read"
        raise InvalidInput(f"Document {record.id} has {read}, and no page {page}.")
    if record.original_key is None or not blobs.has(record.original_key):
        raise original_gone(record.id)
    picture = _rendered(str(blobs.path_of(record.original_key)), page, chosen.turned)
    return _drawn(picture, reading, extraction, page=page, title=record.file_name)


def _rendered(path: str, page: int, turned: int) -> bytes:
    """The page as a picture, made in a limited child: these are foreign bytes."""
    from docmill.engine.children import Children, ChildSettings

    children = Children(ChildSettings(count=1))
    try:
        answer: bytes = asyncio.run(children.run(page_as_png, (path, page, turned), _SECONDS))
        return answer
    finally:
        children.close()


def page_as_png(path: str, page: int, turned: int) -> bytes:
    """What the child does."""
    from docmill.documents.limits import Limits
    from docmill.documents.pictures import render_png

    return render_png(path, page, Limits(), dpi=160, max_side=_LONGEST, turned=turned)


def _drawn(picture: bytes, reading: Any, extraction: Any, *, page: int, title: str) -> Drawing:
    from PIL import Image

    from docmill.extraction.drawing import draw_page, marks_of

    canvas = draw_page(Image.open(io.BytesIO(picture)), extraction, page=page, pages=len(reading.pages), title=title)
    written = io.BytesIO()
    canvas.save(written, "PNG", optimize=True)
    marks = [
        {
            "number": mark.number,
            "field": mark.name,
            "value": mark.found.value,
            "confidence": round(mark.found.confidence, 4),
            "boxes": [[box.left, box.top, box.right, box.bottom] for box in mark.boxes],
        }
        for mark in marks_of(extraction, page)
    ]
    return Drawing(png=written.getvalue(), pages=len(reading.pages), marks=marks)
