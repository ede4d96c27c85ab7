"""The page about documents names every limit and every error, as they are in the code."""

import dataclasses
import re
from pathlib import Path

from docmill.documents import faults
from docmill.documents.limits import Limits

PAGE = (Path(__file__).parents[3] / "docs/reference/documents.md").read_text()


def column(heading: str, number: int) -> list[str]:
    """What stands in backticks at the beginning of a column of the table below a heading."""
    table = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    return [re.match(r"`([^`]+)`", row[number].strip())[1] for row in rows]  # type: ignore[index]


def test_every_limit_stands_there_with_its_default() -> None:
    documented = dict(zip(column("Limits", 0), column("Limits", 1), strict=True))
    assert documented == {limit.name: str(limit.default) for limit in dataclasses.fields(Limits)}


def test_every_error_stands_there() -> None:
    known = {
        kind.code
        for kind in vars(faults).values()
        if isinstance(kind, type) and issubclass(kind, faults.DocumentFault) and kind is not faults.DocumentFault
    }
    assert set(column("Errors", 0)) == known
