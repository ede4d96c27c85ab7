"""What the attachments of a PDF are to it (`/AFRelationship`), which PDFium does not tell: by the bytes themselves.

Names stand in them as they are unless the file is encrypted; then nothing is found, and nothing is lost but an order.
"""

import re
import zlib
from collections.abc import Iterator
from itertools import islice

OWN_RELATIONSHIPS = frozenset({"Alternative", "Source", "Data"})
"""Of attachments that are the document itself in another form; others come with it."""
_RELATIONSHIP = re.compile(rb"/AFRelationship\s*/([A-Za-z]{1,40})")
_NAME = re.compile(rb"/(?:UF|F)\s*(?:\(((?:\\.|[^\\()]){0,500})\)|<([0-9A-Fa-f\s]{0,2000})>)", re.DOTALL)
_OBJECTS = re.compile(rb"/ObjStm\b")
_STREAM = re.compile(rb"\bstream\r?\n")
_BRACKET = re.compile(rb"<<|>>")
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_NEAR = 2000
"""Bytes on either side of a relationship within which the dictionary that it stands in begins and ends."""
_MOST = 200
"""Relationships, and streams of objects, that are looked at."""


def relationships(data: bytes, most: int) -> dict[str, str]:
    """By the names of the attachments; no more than `most` bytes are unpacked."""
    found: dict[str, str] = {}
    marks = ((part, mark) for part in _parts(data, most) for mark in _RELATIONSHIP.finditer(part))
    for part, mark in islice(marks, _MOST):
        for name in _NAME.finditer(_around(part, mark.start(), mark.end())):
            found.setdefault(_text(name), mark[1].decode("ascii"))
    return found


def _parts(data: bytes, most: int) -> Iterator[bytes]:
    """The file, and the objects that are packed into streams in it."""
    yield data
    whole = memoryview(data)
    for mark in islice(_OBJECTS.finditer(data), _MOST):
        begin = _STREAM.search(data, mark.end(), mark.end() + _NEAR)
        if begin is None or most <= 0:
            continue
        try:
            plain = zlib.decompressobj().decompress(whole[begin.end() :], most)
        except zlib.error:
            continue
        most -= len(plain)
        yield plain


def _around(data: bytes, start: int, end: int) -> bytes:
    """The dictionary around a place: back to the bracket that opens it, on to the one that closes it."""
    depth, first = 0, max(0, start - _NEAR)
    for bracket in reversed([*_BRACKET.finditer(data, first, start)]):
        depth += 1 if bracket[0] == b">>" else -1
        if depth < 0:
            first = bracket.end()
            break
    depth, last = 0, min(len(data), end + _NEAR)
    for bracket in _BRACKET.finditer(data, end, last):
        depth += 1 if bracket[0] == b"<<" else -1
        if depth < 0:
            last = bracket.start()
            break
    return data[first:last]


def _text(name: "re.Match[bytes]") -> str:
    if name[2] is not None:
        digits = b"".join(name[2].split())
        written = bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))
    else:
        written = _ESCAPED.sub(rb"\1", name[1])
    if written.startswith(b"\xfe\xff"):
        return written[2:].decode("utf-16-be", "replace")
    return written.decode("latin-1")
