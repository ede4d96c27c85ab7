"""DuckDB, opened so that it can reach nothing but what it is given: no network, no extensions, bounded memory."""

import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_MB = 1024


def connect(*, memory_mb: int = MEMORY_MB, threads: int | None = None) -> "DuckDBPyConnection":
    """A database in memory."""
    import duckdb

    options: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "memory_limit": f"{memory_mb}MB",
        "python_enable_replacements": False,
        "temp_directory": "",
    }
    if threads is not None:
        options["threads"] = threads
    return duckdb.connect(":memory:", config=options)


def seal(connection: "DuckDBPyConnection") -> None:
    """From now on it reads and writes no file, and nobody can undo that."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def quoted(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


@lru_cache(maxsize=1)
def _packer() -> "DuckDBPyConnection":
    return connect(memory_mb=256, threads=1)


def recompressed(content: bytes, compression: str) -> bytes:
    """A Parquet file with its pages compressed by a method that only DuckDB has here."""
    with tempfile.TemporaryDirectory(prefix="docmill-") as folder:
        plain, packed = Path(folder, "plain.parquet"), Path(folder, "packed.parquet")
        plain.write_bytes(content)
        _packer().execute(
            f"COPY (FROM read_parquet({quoted(str(plain))})) TO {quoted(str(packed))} "
            f"(FORMAT parquet, COMPRESSION {compression})"
        )
        return packed.read_bytes()
