"""How much of a document is taken on: limits that are checked before the work they guard.

The limits of a child (memory, CPU, wall) stand behind these: what these miss ends the child, not the worker.
"""

from dataclasses import dataclass

_MB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one document. The defaults hold a 2,000-page book and any photograph a camera takes."""

    max_bytes: int = 50 * _MB
    max_pages: int = 2000
    """Of a PDF; more are refused."""
    max_frames: int = 100
    """Of a TIFF, GIF or WebP; more are left out, with a note."""
    max_pixels: int = 100_000_000
    """Of one image as stored; more are refused before decoding."""
    render_pixels: int = 12_000_000
    """Of one page as rendered for a person or a model; larger ones are rendered smaller."""
    max_characters: int = 20_000_000
    """Of the text of a whole document."""
    page_characters: int = 400_000
    """Of the text of one page."""
    max_xml_bytes: int = 20 * _MB
    max_xml_elements: int = 1_000_000
    """An element takes some hundred bytes of memory, however few it has in the file."""
    max_xml_depth: int = 256
    max_attachments: int = 50
    """Of a PDF; more are not looked at, with a note."""
    archive_entries: int = 10_000
    archive_bytes: int = 200 * _MB
    """Of all entries that are read, unpacked."""
    archive_entry_bytes: int = 50 * _MB
    archive_ratio: int = 200
    """Most that an entry of more than a megabyte may grow by when it is unpacked."""
    ocr_side: int = 2000
    """OCR looks at no more pixels than a square of this side has: those of an A4 page at 200 dpi."""
    dpi: int = 200
    """At which pages of a PDF are rendered for OCR."""
    cpu_seconds: int = 25
    """CPU time of each call of `outline` and `read_page` in a child. What bounds a file that keeps its reader busy: the
    same on a machine with much to do, where wall time says nothing about the file."""
    outline_seconds: float = 300.0
    """Wall time of `outline` in a child, for whoever calls it there; for what waits instead of computing."""
    page_seconds: float = 300.0
    """Wall time of `read_page` in a child."""
