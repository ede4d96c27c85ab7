"""Parquet files of a few rows, written without a library.

Docmill writes one small file per document. DuckDB takes about 0.1 ms for each leaf column of each file, most of it for
planning: 8 ms for an invoice, beside loading 60 MB of it into every worker. This takes a tenth. Only what such files
need is here: one row group, one plain page per column, optional columns, lists of flat records; every reader of the
format knows all of it. See ADR 0045.
"""

import struct as packing
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import assert_never

from docmill.outputs.thrift import BINARY, BOOL_FALSE, I32, I64, LIST, STRUCT, array, struct, text, zigzag

_MAGIC = b"PAR1"
_REQUIRED, _OPTIONAL, _REPEATED = 0, 1, 2
_PLAIN, _RLE = 0, 3
_EPOCH = date(1970, 1, 1)
_DIGITS = 18
"""Of a decimal: the most that fit 64 bits."""


class ColumnType(StrEnum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    """Floating point, for what was computed: probabilities."""
    AMOUNT = "amount"
    """Exact, four digits behind the point."""
    QUANTITY = "quantity"
    """Exact, six digits behind the point: counts, rates, weights."""
    FLAG = "flag"
    DAY = "day"
    MOMENT = "moment"
    """In UTC, without saying so: DuckDB's times with zones need a further package in Python."""


SCALES = {ColumnType.AMOUNT: 4, ColumnType.QUANTITY: 6}


class Compression(StrEnum):
    """Of the pages of a file."""

    NONE = "none"
    GZIP = "gzip"


_CODECS = {Compression.NONE: 0, Compression.GZIP: 2}


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or with `parts` a list of records, each with these columns."""

    name: str
    type: ColumnType = ColumnType.TEXT
    parts: tuple["Column", ...] = ()


Record = Mapping[str, object]
"""Column name -> value; a missing one is null. The value of a column with parts is a sequence of records."""


def write_rows(
    columns: tuple[Column, ...], rows: Sequence[Record], compression: Compression = Compression.NONE
) -> bytes:
    """The whole file. The same rows give the same bytes."""
    body = bytearray(_MAGIC)
    chunks = []
    for column in columns:
        values = [row.get(column.name) for row in rows]
        if column.parts:
            for part in column.parts:
                levels, leaves = _spread(part.name, values)
                chunks.append(
                    _chunk(body, (column.name, "list", "element", part.name), part.type, levels, leaves, compression)
                )
        else:
            leaves = [value for value in values if value is not None]
            levels = ([], [0 if value is None else 1 for value in values])
            chunks.append(_chunk(body, (column.name,), column.type, levels, leaves, compression))
    group = struct(
        (1, LIST, array(STRUCT, chunks)),
        (2, I64, zigzag(len(body) - len(_MAGIC))),
        (3, I64, zigzag(len(rows))),
    )
    footer = struct(
        (1, I32, zigzag(1)),
        (2, LIST, _schema(columns)),
        (3, I64, zigzag(len(rows))),
        (4, LIST, array(STRUCT, [group])),
        (6, BINARY, text("docmill")),
    )
    body += footer
    body += packing.pack("<I", len(footer))
    body += _MAGIC
    return bytes(body)


Levels = tuple[list[int], list[int]]
"""Repetition (0: a new row) and definition (how much of the path is there) of every place in a column."""


def _spread(name: str, lists: Sequence[object]) -> tuple[Levels, list[object]]:
    """One part of the records in lists, as Parquet wants it: flat, with levels that tell where lists begin and end."""
    repetition: list[int] = []
    definition: list[int] = []
    leaves: list[object] = []
    for records in lists:
        if not records:
            repetition.append(0)
            definition.append(0 if records is None else 1)
            continue
        assert isinstance(records, Sequence)
        for place, record in enumerate(records):
            value = record.get(name)
            repetition.append(1 if place else 0)
            definition.append(3 if value is None else 4)
            if value is not None:
                leaves.append(value)
    return (repetition, definition), leaves


def _chunk(
    body: bytearray,
    path: tuple[str, ...],
    kind: ColumnType,
    levels: Levels,
    leaves: list[object],
    compression: Compression,
) -> bytes:
    """Append a column's only page to the body; returns its entry in the footer."""
    repetition, definition = levels
    plain = _ENCODERS[kind](leaves)
    # Width of a level in bits: 1 for 0 to 1, 3 for 0 to 4; both fit the one byte that a run of it takes.
    page = (_runs(repetition) if repetition else b"") + _runs(definition) + plain
    packed = page if compression is Compression.NONE else _gzip(page)
    count, full, less = zigzag(len(definition)), len(page), len(packed)
    header = b"".join((_PAGE, zigzag(full), _SAME, zigzag(less), _COUNTED, count, _ENCODED))
    offset = len(body)
    body += header
    body += packed
    at, of_header = zigzag(offset), len(header)
    # After the fields 1 to 3 of the struct: codec, values, sizes with the header, and once more where the page begins.
    return b"".join(
        (
            _BEGINS,
            at,
            _chunk_start(kind, path, compression),
            count,
            _LARGE,
            zigzag(of_header + full),
            _LARGE,
            zigzag(of_header + less),
            _PLACED,
            at,
            _ENDS,
        )
    )


# Heads of fields that stand between the numbers of every column: written out, because `struct` would put the same bytes
# together anew for each of them. A head is the difference to the number of the field before it, and its type.
_PAGE = bytes((1 << 4 | I32, 0, 1 << 4 | I32))
_SAME = bytes((1 << 4 | I32,))
_COUNTED = bytes((2 << 4 | STRUCT, 1 << 4 | I32))
_ENCODED = struct((1, I32, zigzag(_PLAIN)), (2, I32, zigzag(_RLE)), (3, I32, zigzag(_RLE))) + b"\0"
_BEGINS = bytes((2 << 4 | I64,))
_LARGE = bytes((1 << 4 | I64,))
_PLACED = bytes((2 << 4 | I64,))
_ENDS = b"\0\0"


@lru_cache(maxsize=4096)
def _chunk_start(kind: ColumnType, path: tuple[str, ...], compression: Compression) -> bytes:
    """Fields 1 to 4 of a column's entry in the footer, and the head of the fifth: the same in every file."""
    start = struct(
        (1, I32, zigzag(_PHYSICAL[kind])),
        (2, LIST, array(I32, [zigzag(_PLAIN), zigzag(_RLE)])),
        (3, LIST, array(BINARY, [text(part) for part in path])),
        (4, I32, zigzag(_CODECS[compression])),
    )
    return bytes((1 << 4 | STRUCT,)) + start[:-1] + _LARGE


_ONE_RUN = {level: packing.pack("<IBB", 2, 2, level) for level in range(5)}
"""Of one level: what nearly every column of a file of one document has."""


def _runs(levels: Sequence[int]) -> bytes:
    """Levels as runs of equal ones, after their length in bytes."""
    if len(levels) == 1:
        return _ONE_RUN[levels[0]]
    out = bytearray()
    current, count = -1, 0
    for level in [*levels, -1]:
        if level == current:
            count += 1
            continue
        if count:
            # A run: how many, shifted by the bit that says it is one, then the level itself.
            rest = count << 1
            while rest >= 0x80:
                out.append(rest & 0x7F | 0x80)
                rest >>= 7
            out.append(rest)
            out.append(current)
        current, count = level, 1
    return packing.pack("<I", len(out)) + out


def _gzip(data: bytes) -> bytes:
    # 31: with the header of gzip, which has no time in it here.
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _texts(values: list[object]) -> bytes:
    parts: list[bytes] = []
    for value in values:
        data = str(value).encode("utf-8", "replace")
        parts += (packing.pack("<I", len(data)), data)
    return b"".join(parts)


def _integers(values: list[object]) -> bytes:
    return packing.pack(f"<{len(values)}q", *values)


def _numbers(values: list[object]) -> bytes:
    return packing.pack(f"<{len(values)}d", *values)


def _flags(values: list[object]) -> bytes:
    bits = sum(1 << place for place, value in enumerate(values) if value)
    return bits.to_bytes((len(values) + 7) // 8, "little")


def _days(values: list[object]) -> bytes:
    return packing.pack(f"<{len(values)}i", *((value - _EPOCH).days for value in values))  # type: ignore[operator]


def _moments(values: list[object]) -> bytes:
    return packing.pack(f"<{len(values)}q", *(_micros(value) for value in values))  # type: ignore[arg-type]


def _micros(moment: datetime) -> int:
    assert moment.tzinfo is not None
    return int(Decimal(str(moment.timestamp())) * 1_000_000)


def _decimals(scale: int) -> Callable[[list[object]], bytes]:
    def encode(values: list[object]) -> bytes:
        return packing.pack(f"<{len(values)}q", *(int(value.scaleb(scale)) for value in values))  # type: ignore[attr-defined]

    return encode


_ENCODERS: Mapping[ColumnType, Callable[[list[object]], bytes]] = {
    ColumnType.TEXT: _texts,
    ColumnType.INTEGER: _integers,
    ColumnType.NUMBER: _numbers,
    ColumnType.AMOUNT: _decimals(SCALES[ColumnType.AMOUNT]),
    ColumnType.QUANTITY: _decimals(SCALES[ColumnType.QUANTITY]),
    ColumnType.FLAG: _flags,
    ColumnType.DAY: _days,
    ColumnType.MOMENT: _moments,
}
_PHYSICAL = {
    ColumnType.TEXT: 6,
    ColumnType.INTEGER: 2,
    ColumnType.NUMBER: 5,
    ColumnType.AMOUNT: 2,
    ColumnType.QUANTITY: 2,
    ColumnType.FLAG: 0,
    ColumnType.DAY: 1,
    ColumnType.MOMENT: 2,
}


def fitting(value: Decimal, kind: ColumnType) -> Decimal | None:
    """The value rounded to the digits of its column; None if it has too many before the point."""
    scale = SCALES[kind]
    rounded = round(value, scale)
    return rounded if abs(rounded) < Decimal(10) ** (_DIGITS - scale) else None


@lru_cache(maxsize=256)
def _schema(columns: tuple[Column, ...]) -> bytes:
    """The tree of columns, flattened."""
    elements = [struct((4, BINARY, text("document")), (5, I32, zigzag(len(columns))))]
    for column in columns:
        if not column.parts:
            elements.append(_leaf(column))
            continue
        elements.append(
            struct(
                (3, I32, zigzag(_OPTIONAL)),
                (4, BINARY, text(column.name)),
                (5, I32, zigzag(1)),
                (6, I32, zigzag(3)),
                (10, STRUCT, struct((3, STRUCT, struct()))),
            )
        )
        elements.append(struct((3, I32, zigzag(_REPEATED)), (4, BINARY, text("list")), (5, I32, zigzag(1))))
        elements.append(
            struct((3, I32, zigzag(_OPTIONAL)), (4, BINARY, text("element")), (5, I32, zigzag(len(column.parts))))
        )
        elements += [_leaf(part) for part in column.parts]
    return array(STRUCT, elements)


def _leaf(column: Column) -> bytes:
    """One column, with both the old and the new way of saying what its bytes mean."""
    fields: list[tuple[int, int, bytes]] = [
        (1, I32, zigzag(_PHYSICAL[column.type])),
        (3, I32, zigzag(_OPTIONAL)),
        (4, BINARY, text(column.name)),
    ]
    match column.type:
        case ColumnType.TEXT:
            fields += [(6, I32, zigzag(0)), (10, STRUCT, struct((1, STRUCT, struct())))]
        case ColumnType.DAY:
            fields += [(6, I32, zigzag(6)), (10, STRUCT, struct((6, STRUCT, struct())))]
        case ColumnType.MOMENT:
            unit = struct((2, STRUCT, struct()))
            meaning = struct((1, BOOL_FALSE, b""), (2, STRUCT, unit))
            fields += [(10, STRUCT, struct((8, STRUCT, meaning)))]
        case ColumnType.AMOUNT | ColumnType.QUANTITY:
            scale = SCALES[column.type]
            meaning = struct((1, I32, zigzag(scale)), (2, I32, zigzag(_DIGITS)))
            fields += [
                (6, I32, zigzag(5)),
                (7, I32, zigzag(scale)),
                (8, I32, zigzag(_DIGITS)),
                (10, STRUCT, struct((5, STRUCT, meaning))),
            ]
        case ColumnType.INTEGER | ColumnType.NUMBER | ColumnType.FLAG:
            pass
        case _:
            assert_never(column.type)
    return struct(*fields)
