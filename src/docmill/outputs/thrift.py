"""The little of Thrift's compact protocol that the headers and the footer of a Parquet file need."""

from collections.abc import Sequence

BOOL_FALSE = 2
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


_SHORT = tuple(bytes((value,)) for value in range(0x80))
"""What takes one byte, ready made: nearly every number in a file of one document does, or two."""


def varint(value: int) -> bytes:
    """A number of no fixed length, seven bits at a time."""
    if value < 0x80:
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    """A signed number."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def text(value: str) -> bytes:
    """Bytes after their length."""
    data = value.encode()
    return varint(len(data)) + data


def array(kind: int, items: Sequence[bytes]) -> bytes:
    """A list whose items are encoded already."""
    head = bytes((len(items) << 4 | kind,)) if len(items) < 15 else bytes((0xF0 | kind,)) + varint(len(items))
    return head + b"".join(items)


def struct(*fields: tuple[int, int, bytes]) -> bytes:
    """A struct from (id, type, encoded value), ids rising by less than 16. Booleans are all in their type."""
    out = bytearray()
    before = 0
    for number, kind, value in fields:
        out.append((number - before) << 4 | kind)
        out += value
        before = number
    out.append(0)
    return bytes(out)
