"""The reference page tells the truth: its example compiles, and it names every key, function and fault code."""

import re
from pathlib import Path
from typing import get_args

import pytest

from docmill.templates import compile as compile_module
from docmill.templates import conditions, steps, values
from docmill.templates.catalogue import Catalogue
from docmill.templates.faults import FaultCode
from docmill.templates.shipped import shipped_names, shipped_text

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/reference/templates.md").read_text()
TESTS = "".join((Path(__file__).parent / f"test_template_{part}.py").read_text() for part in ("faults", "source"))
SOURCES = "".join(path.read_text() for path in sorted((ROOT / "src/docmill/templates").glob("*.py")))


def test_the_example_compiles_into_the_groups_it_claims() -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    plan = compile_module.compile_template(found[1], catalogue=Catalogue.permissive()).plan
    groups = [[plan.steps[position].step_key for position in group] for group in plan.groups]
    assert groups == [["read_text"], ["classify"], ["extract"], ["match_vendor", "notify"], ["finish"]]
    assert plan.step("extract").model == {"model": "gemini-2.5-flash", "temperature": 0.2, "max_tokens": 8000}


def test_the_example_expressions_parse() -> None:
    found = re.search(r"```\n(entity.*?)```", PAGE, re.DOTALL)
    assert found is not None
    lines = found[1].splitlines()
    assert [conditions.parse(line).text for line in lines] == lines


@pytest.mark.parametrize("key", sorted({*steps.KEYS, *compile_module.KEYS}))
def test_every_key_is_documented(key: str) -> None:
    assert f"`{key}`" in PAGE


@pytest.mark.parametrize("function", sorted({*values.FUNCTIONS, "contains"}))
def test_every_function_is_documented(function: str) -> None:
    assert f"`{function}(" in PAGE


def test_every_shipped_template_is_documented_with_what_it_processes() -> None:
    section = PAGE[PAGE.index("## Templates that come with Docmill") :]
    documented = dict(re.findall(r"^\| `([^`]+)` \| `(\w+)` \|", section, re.MULTILINE))
    plans = [
        compile_module.compile_template(shipped_text(name), catalogue=Catalogue.permissive()).plan
        for name in shipped_names()
    ]
    assert documented == {plan.name: plan.processable_type for plan in plans}


def test_the_example_of_rule_check_is_a_valid_step() -> None:
    section = PAGE[PAGE.index("**`rule.check`**") :]
    found = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert found is not None
    around = "name: x\nprocessable_type: d\nsteps:\n  - {step_key: extract, type: T}\n"
    text = around + found[1] + "  - {step_key: finish, type: FinishProcessing}\n"
    plan = compile_module.compile_template(text, catalogue=Catalogue.permissive()).plan
    assert plan.step("check_totals").step_type == "rule.check"


def test_the_documented_fault_codes_are_those_that_exist() -> None:
    table = PAGE[PAGE.index("## Faults") :]
    documented = set(re.findall(r"`([a-z_]+)`", table)) - {"template_invalid"}
    assert documented == set(get_args(FaultCode))


@pytest.mark.parametrize("code", get_args(FaultCode))
def test_every_fault_code_is_used_and_tested(code: str) -> None:
    assert SOURCES.count(f'"{code}"') >= 2, "named in FaultCode, noted somewhere"
    assert f'"{code}"' in TESTS
