"""E-invoices as XML: UBL and CII, in any encoding; no document type, no entity, nothing fetched."""

import re
from typing import Any

from lxml import etree

from docmill.documents.faults import DamagedFile, NotAnInvoice, XmlRefused
from docmill.documents.limits import Limits

INVOICE_ROOTS = (
    ("Invoice", "urn:oasis:names:specification:ubl:schema:xsd:Invoice-"),
    ("CreditNote", "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-"),
    ("CrossIndustryInvoice", "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:"),
    ("CrossIndustryDocument", "urn:ferd:CrossIndustryDocument:invoice:"),
)
"""Local name and how the namespace begins; the last is ZUGFeRD 1."""

_ENVELOPE = "StandardBusinessDocument"
"""Peppol sends an invoice inside of one."""

_LONGEST_REASON = 200

_PROLOG = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)


def parse_invoice(data: bytes, limits: Limits) -> str:
    """The invoice as text without a declaration of its encoding, or why these bytes are none."""
    root = _invoice_in(parse_xml(data, limits))
    if root is None:
        raise NotAnInvoice(
            "The XML is not an e-invoice that is read here (UBL Invoice, UBL CreditNote, CII CrossIndustryInvoice). "
            "Send it in one of these forms, or as a PDF."
        )
    text: str = etree.tostring(root, encoding="unicode", with_tail=False)
    return text


def _invoice_in(root: Any) -> Any:
    name = etree.QName(root)
    if any(name.localname == local and (name.namespace or "").startswith(space) for local, space in INVOICE_ROOTS):
        return root
    if name.localname == _ENVELOPE:
        return next(
            (found for child in root if isinstance(child.tag, str) and (found := _invoice_in(child)) is not None), None
        )
    return None


def parse_xml(data: bytes, limits: Limits, *, doctype: bool = False) -> Any:
    """The root element. Any document type is refused before the parser sees it, unless `doctype` allows a bare one."""
    if len(data) > limits.max_xml_bytes:
        raise XmlRefused(
            f"The XML has {len(data)} bytes; {limits.max_xml_bytes} are the limit. Take large attachments out of it."
        )
    if not doctype and has_doctype(data):
        raise XmlRefused(
            "The XML declares a document type (DOCTYPE), which no e-invoice needs and attacks use. "
            "Ask for the invoice without it."
        )
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        remove_pis=True,
        remove_comments=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        said = " ".join(str(error).split())[:_LONGEST_REASON]
        if any(sign in said.lower() for sign in ("huge", "depth", "entit")):
            raise XmlRefused(f"The XML goes beyond what is safe to read ({said}). Ask for a simpler copy.") from None
        raise DamagedFile(f"The XML is not well-formed ({said}). Ask for a new copy.") from None
    if root is None:
        raise DamagedFile("The XML has no content. Ask for a new copy.")
    if not doctype and root.getroottree().docinfo.internalDTD is not None:
        # Written in an encoding that hid it from the look at the beginning.
        raise XmlRefused("The XML declares a document type (DOCTYPE). Ask for the invoice without it.")
    return root


def has_doctype(data: bytes) -> bool:
    """Whether a document type stands before the root element, the only place where it may."""
    text = _as_text(data)
    prolog = _PROLOG.match(text)
    return text.startswith("<!DOCTYPE", prolog.end() if prolog else 0)


def _as_text(data: bytes) -> str:
    """The prolog is ASCII in every encoding that is not two bytes wide; what follows does not matter here."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in data[:4]:
        wide = "utf-16-be" if data.startswith((b"\xfe\xff", b"\x00")) else "utf-16-le"
        return data[: len(data) // 2 * 2].decode(wide, "replace").lstrip("\ufeff")
    return data.decode("latin-1").removeprefix("\xef\xbb\xbf")
