"""Files of our own writer say to DuckDB what they were given."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmill.outputs.duck import recompressed
from docmill.outputs.parquet import Column, ColumnType, Compression, fitting, write_rows

ITEM = (Column("text"), Column("amount", ColumnType.AMOUNT), Column("ok", ColumnType.FLAG))
COLUMNS = (
    Column("text"),
    Column("whole", ColumnType.INTEGER),
    Column("number", ColumnType.NUMBER),
    Column("amount", ColumnType.AMOUNT),
    Column("quantity", ColumnType.QUANTITY),
    Column("flag", ColumnType.FLAG),
    Column("day", ColumnType.DAY),
    Column("moment", ColumnType.MOMENT),
    Column("items", parts=ITEM),
)


def read(content: bytes, folder: Path) -> list[dict[str, Any]]:
    file = folder / "x.parquet"
    file.write_bytes(content)
    with duckdb.connect() as connection:
        result = connection.execute(f"SELECT * FROM read_parquet('{file}')")
        names = [name for name, *_ in result.description or []]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def decimals(places: int) -> st.SearchStrategy[Decimal]:
    return st.decimals(min_value=-(10**11), max_value=10**11, places=places, allow_nan=False)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ITEMS = st.fixed_dictionaries({"text": optional(TEXTS), "amount": optional(decimals(4)), "ok": optional(st.booleans())})
ROWS = st.fixed_dictionaries(
    {
        "text": optional(TEXTS),
        "whole": optional(st.integers(-(1 << 63), (1 << 63) - 1)),
        "number": optional(st.floats(allow_nan=False)),
        "amount": optional(decimals(4)),
        "quantity": optional(decimals(6)),
        "flag": optional(st.booleans()),
        "day": optional(st.dates(date(1600, 1, 1), date(2900, 1, 1))),
        "moment": optional(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))),
        "items": optional(st.lists(ITEMS, max_size=5)),
    }
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROWS, max_size=4), compression=st.sampled_from(Compression))
def test_whatever_is_written_is_read(
    rows: list[dict[str, Any]], compression: Compression, tmp_path_factory: pytest.TempPathFactory
) -> None:
    written = [row | {"moment": row["moment"] and row["moment"].replace(tzinfo=UTC)} for row in rows]
    content = write_rows(COLUMNS, written, compression)
    assert read(content, tmp_path_factory.mktemp("parquet")) == rows
    assert write_rows(COLUMNS, written, compression) == content


def test_long_columns_and_long_lists_are_read(tmp_path: Path) -> None:
    rows = [{"text": str(number), "items": [{"text": "x" * number}] * number} for number in range(300)]
    back = read(write_rows((Column("text"), Column("items", parts=(Column("text"),))), rows), tmp_path)
    assert back == rows


@pytest.mark.parametrize("compression", ["zstd", "snappy"])
def test_methods_of_compression_that_only_duckdb_has_change_nothing(compression: str, tmp_path: Path) -> None:
    rows = [{"text": "a" * 500, "amount": Decimal("1.2500"), "items": [{"text": "b"}]}]
    plain = write_rows(COLUMNS, rows)
    assert read(recompressed(plain, compression), tmp_path) == read(plain, tmp_path)


@pytest.mark.parametrize(
    ("value", "kept"),
    [("1234.5", "1234.5"), ("0.00005", "0.0000"), ("99999999999999.9999", "99999999999999.9999"), ("1e14", None)],
)
def test_an_amount_is_rounded_to_its_column_or_left_out(value: str, kept: str | None) -> None:
    assert fitting(Decimal(value), ColumnType.AMOUNT) == (None if kept is None else Decimal(kept))
