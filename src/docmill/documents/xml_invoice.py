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

ORDER_ROOTS = (
    ("SCRDMCCBDACIOMessageStructure", "urn:un:unece:uncefact:data:standard:SCRDMCCBDACIOMessageStructure:"),
    ("Order", "urn:oasis:names:specification:ubl:schema:xsd:Order-"),
    ("OrderChange", "urn:oasis:names:specification:ubl:schema:xsd:OrderChange-"),
    ("OrderResponse", "urn:oasis:names:specification:ubl:schema:xsd:OrderResponse-"),
)
"""The same of orders, the first of them Order-X: nothing is owed by them."""

_ENVELOPE = "StandardBusinessDocument"
"""Peppol sends an invoice inside of one."""

_LONGEST_REASON = 200
_HEAD = 4000

_PROLOG = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)

_LONG = 10_000_000
"""Bytes of a text from which on the parser refuses it, unless it is told that the tree may be huge."""
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_WIDE = re.compile(rb"(\xff\xfe(?!\x00\x00)|(?:[ \t\r\n]\x00)*<\x00[^\x00])|(?:\xfe\xff|(?:\x00[ \t\r\n])*\x00<\x00)")
_DECLARED = re.compile(rb"(<\?xml[^>]{0,200}?\bencoding\s*=\s*[\"'])([A-Za-z0-9._-]{1,40})")
_TWO_BYTES = re.compile(rb"utf-?16|ucs-?2|iso-10646-ucs-2|unicode", re.IGNORECASE)
_TRANSPARENT = re.compile(rb"utf-?8|us-ascii|ascii|iso-?8859-\d+|latin-?1|windows-125\d|cp125\d", re.IGNORECASE)
"""Encodings in which ASCII is ASCII, so that a document type cannot hide."""


def parse_invoice(data: bytes, limits: Limits) -> str:
    """The invoice as text without a declaration of its encoding, or why these bytes are none."""
    whole = parse_xml(data, limits)
    root = _invoice_in(whole)
    if root is None and _is_one_of(whole, ORDER_ROOTS):
        raise NotAnInvoice("The XML is an order, which is not read here. Send the invoice for it.", kind="order")
    if root is None:
        raise NotAnInvoice(
            "The XML is not an e-invoice that is read here (UBL Invoice, UBL CreditNote, CII CrossIndustryInvoice). "
            "Send it in one of these forms, or as a PDF."
        )
    text: str = etree.tostring(root, encoding="unicode", with_tail=False)
    return text


def looks_like_invoice(data: bytes) -> bool:
    """Whether XML that cannot be parsed begins as an invoice does."""
    head = data[:_HEAD].replace(b"\x00", b"")
    return any(local.encode() in head and space.encode() in head for local, space in INVOICE_ROOTS)


def _is_one_of(root: Any, known: tuple[tuple[str, str], ...]) -> bool:
    name = etree.QName(root)
    return any(name.localname == local and (name.namespace or "").startswith(space) for local, space in known)


def _invoice_in(root: Any) -> Any:
    if _is_one_of(root, INVOICE_ROOTS):
        return root
    if etree.QName(root).localname == _ENVELOPE:
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
    data = tidied(data)
    if data.count(b"<") - data.count(b"</") > limits.max_xml_elements:
        raise XmlRefused(f"The XML has more than {limits.max_xml_elements} elements. Ask for a simpler copy.")
    if not doctype and has_doctype(data):
        raise XmlRefused(
            "The XML declares a document type (DOCTYPE), which no e-invoice needs and attacks use. "
            "Ask for the invoice without it."
        )
    huge = not doctype and _may_be_huge(data)
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=huge,
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
    if root.xpath(f"boolean({'/*' * (limits.max_xml_depth + 1)})"):
        raise XmlRefused(f"The XML is nested more than {limits.max_xml_depth} deep. Ask for a simpler copy.")
    return root


def _may_be_huge(data: bytes) -> bool:
    """Whether texts may be as long as the file, as attachments of an XRechnung are.

    The parser then also stops guarding against entities that multiply and trees that are deep: only for what is long
    enough to need it, and shows that it declares none.
    """
    if len(data) <= _LONG or b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return False
    if declared := _DECLARED.match(data):
        return _TRANSPARENT.fullmatch(declared[2]) is not None
    return not data.startswith(b"<?xml") or b"encoding" not in data[: data.find(b"?>")]


def tidied(data: bytes) -> bytes:
    """The same XML without what does no harm and yet stops the parser.

    White space or byte order marks before it, white space and NULs behind, and a declared encoding of two bytes where
    there is one, or the reverse: what the bytes are is plain to see. Anything else stays as it is.
    """
    if wide := _WIDE.match(data):
        try:
            text = data[: len(data) // 2 * 2].decode("utf-16-le" if wide[1] else "utf-16-be")
        except UnicodeDecodeError:
            return data
        return _DECLARED.sub(rb"\1UTF-8", text.strip("\ufeff\x00 \t\r\n").encode(), count=1)
    kept = data
    while kept.startswith((_BOM, b" ", b"\t", b"\r", b"\n")):
        kept = kept.removeprefix(_BOM).lstrip(_BLANK)
    kept = kept.rstrip(_BLANK + b"\x00")
    declared = _DECLARED.match(kept)
    if declared and _TWO_BYTES.match(declared[2]):
        return declared[1] + b"UTF-8" + kept[declared.end() :]
    return kept


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
