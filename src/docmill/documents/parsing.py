"""Reading a file, in functions that run inside the engine's limited children: arguments and results can be pickled.

`outline` is the only call a document with embedded text needs; `read_page` does one page that needs OCR, so that each
is a checkpoint of its own; `assemble` puts them together.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar, assert_never

from docmill.documents.faults import DamagedFile, ReaderDied
from docmill.documents.limits import Limits
from docmill.documents.loading import load
from docmill.documents.reading import (
    Format,
    Page,
    Reading,
    Section,
    StructuredInvoice,
    TextSource,
)
from docmill.documents.sniffing import sniff
from docmill.model.errors import DocmillError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A document as far as it can be read without OCR."""

    sha256: str
    format: Format
    page_count: int
    pages: tuple[Page, ...] = ()
    """Those that are read, in order."""
    needs_ocr: tuple[int, ...] = ()
    """Numbers of the others, each for `read_page`."""
    sections: tuple[Section, ...] = ()
    invoice: StructuredInvoice | None = None
    declared: str | None = None
    notes: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    cut: Mapping[str, int] = field(default_factory=dict)
    """As of a reading."""

    def as_json(self) -> dict[str, object]:
        """For a checkpoint."""
        kept = assemble(self, ()).as_json()
        return {**kept, "page_count": self.page_count, "needs_ocr": list(self.needs_ocr)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        kept = dict(data)
        count, needs = kept.pop("page_count"), kept.pop("needs_ocr")
        read = Reading.from_json(kept)
        return cls(
            sha256=read.sha256,
            format=read.format,
            page_count=count,
            pages=read.pages,
            needs_ocr=tuple(needs),
            sections=read.sections,
            invoice=read.invoice,
            declared=read.declared,
            notes=read.notes,
            metadata=read.metadata,
            cut=read.cut,
        )


def assemble(outline: Outline, pages: Iterable[Page]) -> Reading:
    """The whole document: what the outline has, and the pages that were read by OCR."""
    together = sorted((*outline.pages, *pages), key=lambda page: page.number)
    return Reading(
        sha256=outline.sha256,
        format=outline.format,
        pages=tuple(together),
        sections=outline.sections,
        invoice=outline.invoice,
        declared=outline.declared,
        notes=outline.notes,
        metadata=outline.metadata,
        cut=outline.cut,
    )


def _named(function: Callable[P, T]) -> Callable[P, T]:
    """Whatever a parser stumbles over becomes an error with a name: the same bytes would make it stumble again."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except DocmillError:
            raise
        except (MemoryError, RecursionError) as error:
            raise ReaderDied(
                f"Reading the file takes more memory than a reader may use ({type(error).__name__}). "
                "Split it, or save it smaller."
            ) from None
        except OSError:
            # The disk, not the document: worth another attempt.
            raise
        except Exception as error:
            raise DamagedFile(
                f"The file could not be read ({type(error).__name__}: {error}). Ask for a new copy, or save it again."
            ) from error

    return call


@_named
def outline(path: str, limits: Limits) -> Outline:
    """Open a file and read all that needs no OCR."""
    data = load(path, limits)
    kind = sniff(data)
    sha256 = hashlib.sha256(data).hexdigest()
    match kind:
        case Format.PDF:
            return _outline_pdf(data, sha256, limits)
        case Format.EPUB:
            from docmill.documents.epub import read_epub

            sections, notes, metadata = read_epub(data, limits)
            return Outline(sha256=sha256, format=kind, page_count=0, sections=sections, notes=notes, metadata=metadata)
        case Format.XML:
            from docmill.documents.xml_invoice import parse_invoice

            invoice = StructuredInvoice(xml=parse_invoice(data, limits), attachment=None)
            return Outline(sha256=sha256, format=kind, page_count=0, invoice=invoice)
        case Format.PNG | Format.JPEG | Format.WEBP | Format.GIF | Format.TIFF | Format.BMP:
            return _outline_image(data, kind, sha256, limits)
        case _:
            assert_never(kind)


def _outline_pdf(data: bytes, sha256: str, limits: Limits) -> Outline:
    from docmill.documents import pdf
    from docmill.documents.pdf_attachments import find_invoice

    notes: list[str] = []
    with pdf.opened(data, limits) as document:
        carried = find_invoice(document, data, limits, notes)
        found = pdf.outline(document, limits)
    return Outline(
        sha256=sha256,
        format=Format.PDF,
        page_count=found.page_count,
        pages=found.pages,
        needs_ocr=found.needs_ocr,
        invoice=carried.invoice,
        declared=carried.declared,
        notes=(*notes, *found.notes),
        metadata=found.metadata,
        cut={**carried.cut, **found.cut},
    )


def _outline_image(data: bytes, kind: Format, sha256: str, limits: Limits) -> Outline:
    from docmill.documents import images

    with images.opened(data, kind) as image:
        images.check_size(image, kind, limits)
        frames, more = images.count_frames(image, kind, limits)
    notes = (f"The image has more than {frames} frames; the others were left out.",) if more else ()
    if frames > 1 and kind in (Format.GIF, Format.WEBP):
        notes = ("The image is animated; each frame was read as a page.", *notes)
    return Outline(
        sha256=sha256,
        format=kind,
        page_count=frames,
        needs_ocr=tuple(range(1, frames + 1)),
        notes=notes,
        cut={"max_frames": frames} if more else {},
    )


@_named
def read_page(path: str, number: int, limits: Limits) -> Page:
    """Render one page (or take one frame) and read it by OCR; numbers are from 1."""
    from docmill.documents.ocr import recognise
    from docmill.documents.pictures import picture

    image, width, height = picture(path, number, limits, max_pixels=limits.ocr_side**2)
    read = recognise(image)
    if read.turned in (90, 270):
        width, height = height, width
    return Page(
        number=number,
        width=width,
        height=height,
        source=TextSource.OCR if read.lines else TextSource.NONE,
        lines=read.lines,
        turned=read.turned,
        skew=read.skew,
    )


def read_whole(path: str, limits: Limits) -> Reading:
    """Everything at once, for tools and tests: without checkpoints and without the limits of a child."""
    seen = outline(path, limits)
    return assemble(seen, [read_page(path, number, limits) for number in seen.needs_ocr])
