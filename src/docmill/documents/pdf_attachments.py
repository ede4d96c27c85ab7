"""The e-invoice inside a PDF: every attachment is looked at by its content, whatever its name."""

import ctypes
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pypdfium2.raw as raw

from docmill.documents.faults import DocumentFault, NotAnInvoice
from docmill.documents.limits import Limits
from docmill.documents.pdf_relationships import OWN_RELATIONSHIPS, relationships
from docmill.documents.reading import StructuredInvoice
from docmill.documents.xml_invoice import looks_like_invoice, parse_invoice

_EMBEDDED = re.compile(rb"/EmbeddedFile\b|/Subtype\s*/(?:text|application)#2[fF]xml")
_STREAM = re.compile(rb"\bstream\r?\n")
_SHOWN = 5
"""Names of other invoices that a note lists."""
_SEARCH = 2000
"""Bytes behind such a mark within which its stream begins."""


_NAMES = frozenset({"factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml"})
"""Under which the standards attach the invoice of the document itself, in small letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What the attachments of a PDF say of it."""

    invoice: StructuredInvoice | None = None
    declared: str | None = None
    """What it is where that is no invoice: `order`."""
    cut: Mapping[str, int] = field(default_factory=dict)
    """As of a reading."""


def find_invoice(document: Any, data: bytes, limits: Limits, notes: list[str]) -> Carried:
    """The attachment that is the e-invoice of the document; broken ones and others leave a note.

    Of several, one with a name of the standards comes first, then one that is another form of the document by its
    relationship, then the first: invoices that are only enclosed, such as those of advance payments, come after.
    """
    count = raw.FPDFDoc_GetAttachmentCount(document.raw)
    related = relationships(data, limits.max_xml_bytes) if count > 1 else {}
    search = _Search(limits)
    for name, content in _attachments(document, limits, notes):
        own = related.get(name) in OWN_RELATIONSHIPS
        search.look_at(name, content, (name.casefold() not in _NAMES, not own))
    if search.invoice is None:
        # Attached by /AF or an annotation alone, which PDFium does not list: the streams themselves say what they are.
        for content in _loose_streams(data, limits):
            search.look_at("", content, (True, True))
    notes.extend(search.told())
    return Carried(
        invoice=search.invoice,
        declared=search.declared if search.invoice is None else None,
        cut={"max_attachments": limits.max_attachments} if count > limits.max_attachments else {},
    )


class _Search:
    """The best of the attachments so far: no more than one is held, however many there are."""

    def __init__(self, limits: Limits) -> None:
        self.invoice: StructuredInvoice | None = None
        self.declared: str | None = None
        self._limits = limits
        self._rank = (True, True)
        self._others: list[str] = []
        self._broken: dict[str, tuple[bool, str]] = {}
        """By name: whether it looks like an invoice, and what is wrong with it."""

    def look_at(self, name: str, content: bytes, rank: tuple[bool, bool]) -> None:
        """Take it if it is an invoice, and better than the one there is."""
        if b"<" not in content[:200]:
            return
        try:
            xml = parse_invoice(content, self._limits)
        except DocumentFault as fault:
            self.declared = self.declared or (str(kind) if (kind := fault.details.get("kind")) else None)
            likely = name.casefold() in _NAMES or looks_like_invoice(content)
            told = likely or name.lower().endswith(".xml")
            if fault.code != NotAnInvoice.code and told and (name or not self._broken):
                self._broken[name] = (likely, fault.message)
            return
        found = StructuredInvoice(xml=xml, attachment=name)
        if self.invoice is None:
            self.invoice, self._rank = found, rank
        elif found.xml != self.invoice.xml:
            better = rank < self._rank
            self._others.append(str(self.invoice.attachment if better else name))
            if better:
                self.invoice, self._rank = found, rank

    def told(self) -> Iterator[str]:
        """What a person may want to know."""
        for name, (likely, message) in self._broken.items():
            missed = likely and self.invoice is None
            yield f"{_called(name)} {'could not be read, so the page was' if missed else 'was not read'}: {message}"
        if self.invoice and self._others:
            yield (
                f"The PDF carries more than one e-invoice. {_called(self.invoice.attachment)} was read, "
                f"not {', '.join(repr(name) for name in self._others[:_SHOWN])}."
            )


def _called(name: str | None) -> str:
    return f"The attachment {name!r}" if name else "An attachment without a name"


def _attachments(document: Any, limits: Limits, notes: list[str]) -> Iterator[tuple[str, bytes]]:
    count = raw.FPDFDoc_GetAttachmentCount(document.raw)
    if count > limits.max_attachments:
        notes.append(f"The PDF has {count} attachments; only the first {limits.max_attachments} were looked at.")
    for index in range(min(count, limits.max_attachments)):
        attachment = raw.FPDFDoc_GetAttachment(document.raw, index)
        if not attachment:
            continue
        size = ctypes.c_ulong()
        if not raw.FPDFAttachment_GetFile(attachment, None, 0, ctypes.byref(size)):
            continue
        if not 0 < size.value <= limits.max_xml_bytes:
            continue
        buffer = ctypes.create_string_buffer(size.value)
        if raw.FPDFAttachment_GetFile(attachment, buffer, size.value, ctypes.byref(size)):
            yield _name(attachment), buffer.raw[: size.value]


def _name(attachment: Any) -> str:
    size = raw.FPDFAttachment_GetName(attachment, None, 0)
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFAttachment_GetName(attachment, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").replace("\x00", "")


def _loose_streams(data: bytes, limits: Limits) -> Iterator[bytes]:
    """Streams that call themselves embedded files, unpacked up to the limit; a stream is never inside of another."""
    for count, mark in enumerate(_EMBEDDED.finditer(data)):
        if count >= limits.max_attachments:
            return
        begin = _STREAM.search(data, mark.end(), mark.end() + _SEARCH)
        if begin is None:
            continue
        content = data[begin.end() : begin.end() + limits.max_xml_bytes]
        if content[:200].lstrip().startswith((b"<", b"\xef\xbb\xbf<")):
            end = content.find(b"endstream")
            yield content[:end].rstrip(b"\r\n") if end >= 0 else content
            continue
        unpacking = zlib.decompressobj()
        try:
            plain = unpacking.decompress(content, limits.max_xml_bytes)
        except zlib.error:
            continue
        yield plain
