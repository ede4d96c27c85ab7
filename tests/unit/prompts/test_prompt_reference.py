"""The reference page of prompts tells the truth."""

import json
import re
from pathlib import Path
from typing import get_args

from docmill.prompts.store import LONGEST_NAME
from docmill.prompts.substitution import LONGEST_RENDERED, render
from docmill.prompts.syntax import LONGEST_TEXT, FaultCode, check
from docmill.prompts.values import DEEPEST

PAGE = (Path(__file__).parents[3] / "docs/reference/prompts.md").read_text()


def test_the_example_is_rendered_as_the_page_says() -> None:
    text, entity, result = re.findall(r"```\w+\n(.*?)```", PAGE, re.DOTALL)[:3]
    assert not check(text)
    assert render(text, entity=json.loads(entity), entity_id="r-7", entity_type="receipt") == result


def test_every_fault_has_its_line() -> None:
    table = PAGE[PAGE.index("| code | means |") :].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(get_args(FaultCode))


def test_the_limits_are_those_of_the_code() -> None:
    page = " ".join(PAGE.split())
    assert f"longer than {LONGEST_RENDERED:,} characters" in page
    assert f"more than {LONGEST_TEXT:,} characters" in page
    assert f"deeper than {DEEPEST} levels" in page
    assert f"1 to {LONGEST_NAME} letters" in page
