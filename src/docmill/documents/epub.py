"""EPUB books: the spine's documents in order, as sections with their titles. Text only, no scripts, nothing fetched."""

import html
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from lxml import etree

from docmill.documents.archive import Archive, resolve
from docmill.documents.faults import DamagedFile, EncryptedEpub, TooMuchText, XmlRefused
from docmill.documents.limits import Limits
from docmill.documents.reading import Section
from docmill.documents.xml_invoice import parse_xml

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_TEXT_TYPES = ("application/xhtml+xml", "text/html", "application/xml", "text/xml", "text/x-oeb1-document")
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "caption",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
_SILENT = frozenset(["head", "script", "style", "template"])
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LONGEST_TITLE = 300
_ENTITY_DECLARATION = re.compile(rb"<!ENTITY|<\0!\0E\0N\0T\0I\0T\0Y|\0<\0!\0E\0N\0T\0I\0T\0Y")
_NAMED_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,31});")
_XML_ENTITIES = {b"amp", b"lt", b"gt", b"quot", b"apos"}
_METADATA = ("title", "creator", "language", "publisher", "date", "identifier")


def read_epub(data: bytes, limits: Limits) -> tuple[tuple[Section, ...], tuple[str, ...], dict[str, str]]:
    """Sections in the order of the spine, notes, and what the book says about itself."""
    archive = Archive(data, limits)
    package_name = _package_name(archive, limits)
    package = _parse(archive.read(package_name), limits)
    _refuse_locked(archive, limits)
    items = {}
    for item in _named(package, "item"):
        path = resolve(package_name, unquote(item.get("href", "").split("#")[0]))
        if path is not None:
            items[item.get("id")] = (path, item.get("media-type", ""), item.get("properties") or "")
    titles = _titles(archive, package, items, limits)
    sections: list[Section] = []
    missing: list[str] = []
    characters = 0
    for reference in _named(package, "itemref"):
        path, media_type, properties = items.get(reference.get("idref"), (None, "", ""))
        if path is None or media_type not in _TEXT_TYPES or "nav" in properties.split():
            continue
        if path not in archive:
            missing.append(path)
            continue
        root = _parse(archive.read(path), limits)
        text = _text(root)
        characters += len(text)
        if characters > limits.max_characters:
            raise TooMuchText(
                f"The book is longer than {limits.max_characters} characters. Split it into several files."
            )
        if text:
            sections.append(Section(path=path, title=titles.get(path) or _title(root), text=text))
    if not sections:
        raise DamagedFile("The EPUB has no readable chapter. Ask for a new copy.")
    notes = (f"Chapters that the book names but does not hold: {', '.join(missing[:10])}.",) if missing else ()
    return tuple(sections), notes, _metadata(package)


def _package_name(archive: Archive, limits: Limits) -> str:
    if _CONTAINER not in archive:
        archive.refuse_bombs()
        raise DamagedFile("The EPUB has no META-INF/container.xml. Ask for a new copy.")
    container = _parse(archive.read(_CONTAINER), limits)
    for rootfile in _named(container, "rootfile"):
        path = resolve("", unquote(rootfile.get("full-path", "")))
        if path is not None and path in archive:
            return path
    archive.refuse_bombs()
    raise DamagedFile("The EPUB does not say where its contents are listed. Ask for a new copy.")


def _refuse_locked(archive: Archive, limits: Limits) -> None:
    """A book under DRM: its chapters, not only its fonts, are encrypted."""
    if _ENCRYPTION not in archive:
        return
    listed = _parse(archive.read(_ENCRYPTION), limits)
    for reference in _named(listed, "CipherReference"):
        if reference.get("URI", "").lower().endswith((".xhtml", ".html", ".htm", ".xml")):
            raise EncryptedEpub("The book is locked by its seller (DRM). Use a copy that is not locked.")


def _parse(data: bytes, limits: Limits) -> Any:
    """A document of the book. A document type may be named (old books do), but declares no entity."""
    if _ENTITY_DECLARATION.search(data):
        raise XmlRefused("The book declares XML entities of its own, which attacks use. Ask for a copy without them.")
    try:
        return parse_xml(_NAMED_ENTITY.sub(_numbered, data), limits, doctype=True)
    except DamagedFile:
        parser = etree.HTMLParser(no_network=True, huge_tree=False, remove_comments=True, remove_pis=True)
        root = etree.fromstring(data, parser) if data.strip() else None
        if root is None:
            raise DamagedFile("A part of the book is empty or damaged. Ask for a new copy.") from None
        return root


def _numbered(match: "re.Match[bytes]") -> bytes:
    """`&nbsp;` as `&#160;`: the names are declared in a file that is not fetched."""
    if match[1] in _XML_ENTITIES:
        return match[0]
    meaning = html.unescape(match[0].decode("ascii"))
    return (
        "".join(f"&#{ord(letter)};" for letter in meaning).encode()
        if not meaning.startswith("&")
        else b"&amp;" + match[0][1:]
    )


def _named(root: Any, name: str) -> Iterator[Any]:
    """Elements by local name, in whatever namespace."""
    for element in root.iter():
        if isinstance(element.tag, str) and _local(element) == name:
            yield element


def _local(element: Any) -> str:
    tag: str = element.tag
    return tag.rsplit("}", 1)[-1].lower() if tag.isascii() and tag.islower() else tag.rsplit("}", 1)[-1]


def _titles(archive: Archive, package: Any, items: dict[str, tuple[str, str, str]], limits: Limits) -> dict[str, str]:
    """Titles by path, from the table of contents: that of EPUB 3, else that of EPUB 2."""
    titles: dict[str, str] = {}
    for path, media_type, properties in items.values():
        if path not in archive:
            continue
        if "nav" in properties.split():
            for link in _named(_parse(archive.read(path), limits), "a"):
                _note(titles, resolve(path, unquote((link.get("href") or "").split("#")[0])), _text(link))
        elif media_type == "application/x-dtbncx+xml" and not titles:
            for point in _named(_parse(archive.read(path), limits), "navPoint"):
                label = next((_text(found) for found in _named(point, "text")), "")
                source = next((found.get("src", "") for found in _named(point, "content")), "")
                _note(titles, resolve(path, unquote(source.split("#")[0])), label)
    return titles


def _note(titles: dict[str, str], path: str | None, title: str) -> None:
    if path is not None and title:
        titles.setdefault(path, " ".join(title.split())[:_LONGEST_TITLE])


def _title(root: Any) -> str | None:
    """The first heading, else what the document calls itself."""
    for heading in (*_HEADINGS, "title"):
        for element in _named(root, heading):
            text = " ".join("".join(element.itertext()).split())
            if text:
                return text[:_LONGEST_TITLE]
    return None


def _text(root: Any) -> str:
    """What a reader sees: one line for each block."""
    pieces: list[str] = []
    silent = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        name = _local(element) if isinstance(element.tag, str) else ""
        if event == "start":
            silent += name in _SILENT
            if name in _BLOCKS:
                pieces.append("\n")
            if element.text and not silent and name:
                pieces.append(element.text if name == "pre" else element.text.replace("\n", " "))
        else:
            silent -= name in _SILENT
            if name in _BLOCKS:
                pieces.append("\n")
            if element.tail and not silent and element is not root:
                pieces.append(element.tail.replace("\n", " "))
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _metadata(package: Any) -> dict[str, str]:
    said: dict[str, str] = {}
    for name in _METADATA:
        for element in _named(package, name):
            text = " ".join("".join(element.itertext()).split())
            if text:
                said.setdefault(name, text[:_LONGEST_TITLE])
    return said
