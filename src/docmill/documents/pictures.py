"""A page as a picture, whatever the format: for OCR, for a person, for a model that looks."""

import io
from typing import Any

from docmill.documents.faults import NoSuchPage
from docmill.documents.limits import Limits
from docmill.documents.loading import load
from docmill.documents.reading import Format
from docmill.documents.sniffing import sniff


def picture(
    path: str,
    number: int,
    limits: Limits,
    *,
    dpi: float | None = None,
    max_side: int | None = None,
    max_pixels: int | None = None,
) -> tuple[Any, float, float]:
    """The page as the file says it stands (PIL image, RGB), and its size: points of a PDF, pixels of an image."""
    data = load(path, limits)
    kind = sniff(data)
    if kind is Format.PDF:
        from docmill.documents import pdf

        with pdf.opened(path, limits) as document:
            return pdf.render(document, number, limits, dpi=dpi, max_side=max_side, max_pixels=max_pixels)
    if kind in (Format.EPUB, Format.XML):
        raise NoSuchPage("The document flows or holds data only: it has no pages to look at.")
    from docmill.documents import images

    with images.opened(data, kind) as image:
        found, width, height = images.frame(image, kind, number, limits, max_side=max_side, max_pixels=max_pixels)
    return found, float(width), float(height)


def render_page(
    path: str,
    number: int,
    limits: Limits,
    *,
    dpi: float | None = None,
    max_side: int | None = None,
    turned: int = 0,
) -> Any:
    """The page as a person should see it (PIL image, RGB): boxes of a reading fit on it.

    `turned` is that of the `Page`: by how much it must be turned besides what the file itself says. `dpi` is for PDFs;
    `max_side` bounds the longer side in pixels.
    """
    image, _, _ = picture(path, number, limits, dpi=dpi, max_side=max_side)
    return image.rotate(-turned, expand=True) if turned else image


def render_png(
    path: str,
    number: int,
    limits: Limits,
    *,
    dpi: float | None = None,
    max_side: int | None = None,
    turned: int = 0,
) -> bytes:
    """`render_page` as the bytes of a PNG, which can leave a child."""
    written = io.BytesIO()
    render_page(path, number, limits, dpi=dpi, max_side=max_side, turned=turned).save(written, "PNG", compress_level=3)
    return written.getvalue()


def page_png(path: str, number: int, limits: Limits, max_side: int, turned: int) -> bytes:
    """`render_png` for a caller that has no keywords: a child is given its arguments by position."""
    return render_png(path, number, limits, max_side=max_side, turned=turned)
