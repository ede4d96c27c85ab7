"""The XML of an e-invoice, parsed safely: no entities, no DTD, no network."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from docmill.model.errors import PermanentError

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_PROLOG = re.compile(r"(?:\s|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")

_LONG = 10_000_000
"""Bytes of a text from which on the parser refuses it, unless it is told that the tree may be huge."""


class EInvoiceInvalid(PermanentError):
    """The XML is not an e-invoice that can be read; the message says why."""

    code = "einvoice_invalid"


def parsed(xml: str) -> "Element":
    """The root element; EInvoiceInvalid for what is not well-formed or brings a document type of its own."""
    from lxml import etree

    text = xml.lstrip("\ufeff")
    prolog = _PROLOG.match(text)
    if prolog and text.startswith("<!DOCTYPE", prolog.end()):
        raise EInvoiceInvalid("The XML declares a document type, which no e-invoice needs; remove the <!DOCTYPE …>.")
    # The text is decoded already, so whatever encoding it declares no longer holds.
    data = _DECLARATION.sub("", text, count=1).encode("utf-8", errors="replace")
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        # An attachment may be as long as the file; entities that could multiply are refused above.
        huge_tree=len(data) > _LONG and b"<!DOCTYPE" not in data and b"<!ENTITY" not in data,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise EInvoiceInvalid(f"The XML is not well-formed: {error.msg}. Ask the sender for the file anew.") from None


@lru_cache(maxsize=512)
def _anywhere(path: str) -> str:
    """A path of names without namespaces, as lxml finds it in any namespace: versions differ in nothing else."""
    return "/".join(part if part in (".", "..", "*") else "{*}" + part for part in path.split("/"))


def one(node: "Element | None", *paths: str) -> "Element | None":
    """The first element that one of the paths leads to."""
    if node is not None:
        for path in paths:
            found = node.find(_anywhere(path))
            if found is not None:
                return found
    return None


def every(node: "Element | None", path: str) -> "Iterator[Element]":
    """All elements that a path leads to."""
    if node is not None:
        yield from node.iterfind(_anywhere(path))


def said(node: "Element | None", *paths: str) -> str | None:
    """The text at the first of the paths that has any, trimmed; None if none has."""
    if node is None:
        return None
    for path in paths or (".",):
        for found in [node] if path == "." else every(node, path):
            text = "".join(found.itertext()).strip()
            if text:
                return text
    return None


def name_of(node: "Element") -> str:
    """The name of an element without its namespace."""
    tag = str(node.tag)
    return tag.rpartition("}")[2]
