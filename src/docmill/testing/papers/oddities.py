"""What arrives besides invoices: a book, a file that is damaged, one that is locked, one that is nothing at all."""

import io
import zipfile

from docmill.testing.papers.facts import invoice_facts
from docmill.testing.papers.invoices import draw, invoice_pdf
from docmill.testing.papers.paper import Paper

_CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>
"""
_THEN = (2026, 1, 1, 0, 0, 0)


def epub(seed: int = 0, *, chapters: int = 3) -> Paper:
    """A small book. Its files stand in the archive in another order than its spine."""
    names = [f"chapter-{number}.xhtml" for number in range(1, chapters + 1)]
    items = "".join(
        f'<item id="c{place}" href="{name}" media-type="application/xhtml+xml"/>' for place, name in enumerate(names, 1)
    )
    spine = "".join(f'<itemref idref="c{place}"/>' for place in range(1, chapters + 1))
    package = (
        '<?xml version="1.0"?>\n<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">urn:docmill:sample'
        f"</dc:identifier><dc:title>The Mill, volume {seed}</dc:title><dc:language>en</dc:language></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>\n"
    )
    texts = {
        f"OEBPS/{name}": '<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Chapter '
        f"{number}</title></head><body><h1>Chapter {number}</h1><p>On day {seed + number} the miller weighed {number} "
        "sacks &amp; wrote it down.</p><p>Then he slept.</p></body></html>\n"
        for number, name in enumerate(names, 1)
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo("mimetype", _THEN), "application/epub+zip")
        parts = {"META-INF/container.xml": _CONTAINER, "OEBPS/book.opf": package, **dict(reversed(texts.items()))}
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name, _THEN), text, compress_type=zipfile.ZIP_DEFLATED)
    return Paper(name=f"book-{seed:04}.epub", content=stream.getvalue(), pages=0)


def broken_pdf(seed: int = 0) -> Paper:
    """Begins like a PDF and is none."""
    return Paper(
        name=f"broken-{seed:04}.pdf", content=b"%PDF-1.7\n" + b"this is no document\n" * (3 + seed % 5), pages=0
    )


def truncated_pdf(seed: int = 0) -> Paper:
    """An invoice of which only the first third arrived."""
    whole = invoice_pdf(seed).content
    return Paper(name=f"truncated-{seed:04}.pdf", content=whole[: len(whole) // 3], pages=0)


def locked_pdf(seed: int = 0, *, password: str = "sesame") -> Paper:
    """An invoice that opens only with a password."""
    facts = invoice_facts(seed)
    content, pages = draw(facts, password=password)
    return Paper(name=f"locked-{seed:04}.pdf", content=content, fields=facts.fields(), rows=facts.rows(), pages=pages)


def nonsense(seed: int = 0) -> Paper:
    """Bytes of no known format, whatever the name says."""
    return Paper(
        name=f"nonsense-{seed:04}.pdf", content=bytes((seed + place * 7) % 251 for place in range(512)), pages=0
    )
