"""Where the output files of a document are, by the settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Self

from docmill.model.errors import DocmillError

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)


class OutputFormat(StrEnum):
    """The files that are written for each document."""

    JSON = "json"
    PARQUET = "parquet"


class PathRefused(DocmillError):
    """An output path would leave its folder."""

    code = "output_path_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSettings:
    """Which files are written, and where."""

    root: Path
    formats: tuple[OutputFormat, ...] = (OutputFormat.JSON, OutputFormat.PARQUET)
    json_path: str = "json/{yyyy}/{mm}/{dd}/{id}.json"
    parquet_path: str = "parquet/{yyyy}/{mm}/{dd}/{id}.parquet"
    json_compression: str = "none"
    parquet_compression: str = "none"
    atomic: bool = True
    schema_folders: tuple[Path, ...] = ()
    """Where the schemas lie that give the columns of Parquet files their types."""

    def into(self, folder: str | Path | None) -> Self:
        """The same below another folder; None: below the one of the settings."""
        return self if folder is None else replace(self, root=Path(folder))

    def template(self, kind: OutputFormat) -> str:
        """The path of files of this kind, with places in braces."""
        if kind is OutputFormat.PARQUET:
            return self.parquet_path
        return self.json_path + (".gz" if self.json_compression == "gzip" else "")

    def path(self, kind: OutputFormat, *, id: str, org_id: str, at: datetime) -> Path:
        """The file of one document; `at` is the moment whose day (UTC) stands in the path."""
        day = at.astimezone(UTC)
        filled = _fill(
            self.template(kind),
            {"id": _plain(id), "org": _plain(org_id), "yyyy": f"{day:%Y}", "mm": f"{day:%m}", "dd": f"{day:%d}"},
        )
        if filled.startswith("/") or any(part in ("", ".", "..") for part in filled.split("/")):
            raise PathRefused(f"The output path {filled!r} leaves its folder. Correct output.{kind}_path.", path=filled)
        return self.root / filled

    def pattern(self, kind: OutputFormat) -> str:
        """A pattern (as a shell has it) that finds all files of this kind."""
        found = re.sub(r"\{[a-z]+\}", "*", self.template(kind))
        return f"{_literal(str(self.root))}/{found}"


def _fill(template: str, values: Mapping[str, str]) -> str:
    # One pass, so that nothing in a value is taken for a place.
    return re.sub(r"\{([a-z]+)\}", lambda found: values.get(found[1], found[0]), template)


def _plain(value: str) -> str:
    if not _PLAIN.fullmatch(value):
        raise PathRefused(f"{value!r} cannot be part of a file name.", value=value)
    return value


def _literal(path: str) -> str:
    """A path in which nothing is taken for a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", path)
