"""The page that maps attacks to tests: every attack is tried by a test that exists."""

import pytest

from tests.unit.test_specification_page import NAMED, ROOT, cells, names_in

PAGE = (ROOT / "docs/reference/security.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| what is tried ")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: cells(row)[0][:60])
def test_every_attack_is_tried_by_a_test_that_exists(row: str) -> None:
    tried, comes_of_it, shown = cells(row)
    assert tried
    assert comes_of_it
    named = NAMED.findall(shown)
    assert ", ".join(f"`{path}::{name}`" for path, name in named) == shown != "", "names tests and nothing else"
    assert [f"{path}::{name}" for path, name in named if name not in names_in(ROOT / path)] == []


def test_every_section_has_one_table() -> None:
    heading = "\n| what is tried | what comes of it | shown by |\n|---|---|---|\n"
    assert PAGE.count(heading) == PAGE.count("\n## ") == 6
