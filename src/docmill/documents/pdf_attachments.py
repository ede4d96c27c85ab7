"""The e-invoice inside a PDF: every attachment is looked at by its content, whatever its name."""

import ctypes
import re
import zlib
from collections.abc import Iterator
from typing import Any

import pypdfium2.raw as raw

from docmill.documents.faults import DocumentFault
from docmill.documents.limits import Limits
from docmill.documents.reading import StructuredInvoice
from docmill.documents.xml_invoice import parse_invoice

_EMBEDDED = re.compile(rb"/EmbeddedFile\b|/Subtype\s*/(?:text|application)#2[fF]xml")
_STREAM = re.compile(rb"\bstream\r?\n")
_SEARCH = 2000
"""Bytes behind such a mark within which its stream begins."""


def find_invoice(document: Any, data: bytes, limits: Limits, notes: list[str]) -> StructuredInvoice | None:
    """The first attachment that is an e-invoice; broken ones leave a note."""
    for name, content in _attachments(document, limits, notes):
        found = _as_invoice(name, content, limits, notes)
        if found is not None:
            return found
    # Attached by /AF or an annotation alone, which PDFium does not list: the streams themselves say what they are.
    for content in _loose_streams(data, limits):
        found = _as_invoice("", content, limits, notes)
        if found is not None:
            return found
    return None


def _as_invoice(name: str, content: bytes, limits: Limits, notes: list[str]) -> StructuredInvoice | None:
    if b"<" not in content[:200]:
        return None
    try:
        xml = parse_invoice(content, limits)
    except DocumentFault as fault:
        if fault.code != "not_an_invoice_xml" and name.lower().endswith(".xml"):
            notes.append(f"The attachment {name!r} was not read: {fault.message}")
        return None
    return StructuredInvoice(xml=xml, attachment=name)


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
