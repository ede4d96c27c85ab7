"""The page that maps the specification to tests: every statement has a test, every test it names exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/specification.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| what is said ")]


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


@cache
def names_in(path: Path) -> frozenset[str]:
    """The names of the test functions of a module, without importing it."""
    tree = ast.parse(path.read_text(), filename=str(path))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: cells(row)[0][:60])
def test_every_statement_names_a_test_that_exists(row: str) -> None:
    statement, done, shown = cells(row)
    assert statement
    assert done
    named = NAMED.findall(shown)
    assert named, f"no test shows: {statement}"
    assert ", ".join(f"`{path}::{name}`" for path, name in named) == shown, "names tests and nothing else"
    missing = [f"{path}::{name}" for path, name in named if name not in names_in(ROOT / path)]
    assert not missing


def test_every_table_has_the_same_three_columns_and_every_line_of_a_table_is_looked_at() -> None:
    tables = re.findall(r"^\| what is said \| in Docmill \| shown by \|\n\|---\|---\|---\|\n", PAGE, re.MULTILINE)
    assert len(tables) == PAGE.count("\n## ") - 1, "one for each section but the last"
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert len(lines) == len(ROWS) + 2 * len(tables)


def test_every_test_of_the_architecture_is_on_the_page() -> None:
    modules = sorted((ROOT / "tests/contract").glob("test_architecture_*.py"))
    assert len(modules) == 6
    written = {(str(path.relative_to(ROOT)), name) for path in modules for name in names_in(path)}
    assert sorted(written - set(NAMED.findall(PAGE))) == []


def test_no_statement_stands_twice() -> None:
    statements = [cells(row)[0] for row in ROWS]
    assert sorted(set(statements)) == sorted(statements)
