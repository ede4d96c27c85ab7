"""`docmill templates diff` says in words what changed, misses nothing and invents nothing."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docmill.templates.catalogue import Catalogue
from docmill.templates.compare import Change, compare
from docmill.templates.compile import compile_template
from docmill.templates.document import digest, document_from_plan
from docmill.templates.plan import Plan
from tests.unit.templates.written import templates

OLD = """\
name: intake
processable_type: document
service_name: documents
steps:
  - {step_key: read, type: Read, timeout: 5m}
  - {step_key: ask, type: Ask, depends_on: [read], model_config: {model: flash, temperature: 0}, processor_method: save}
  - {step_key: vendor, type: Ask, depends_on: [ask], optional: true}
  - {step_key: notify, type: Notify, depends_on: [ask]}
  - {step_key: finish, type: FinishProcessing}
"""


def plan(text: str) -> Plan:
    return compile_template(text, catalogue=Catalogue.permissive()).plan


def told(old: str, new: str) -> list[str]:
    return [str(change) for change in compare(plan(old), plan(new))]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("timeout: 5m", "timeout: 10m", ["read: timeout 5m -> 10m"]),
        ("model: flash", "model: opus", ["ask: model_config.model flash -> opus"]),
        (", temperature: 0", ", top_p: 1", ["ask: model_config.temperature removed, was 0"]),
        ("processor_method: save", "processor_method: file", ["ask: processor_method save -> file"]),
        (
            "processor_method: save",
            "processor_method: [{when: result.total > 5, method: file}, {method: save}]",
            ["ask: processor_method save -> file if result.total > 5, save"],
        ),
        ("processor_method: save", "condition: entity.open", ["ask: condition none -> entity.open"]),
        ("optional: true", "optional: false", ["vendor: optional true -> false"]),
        ("optional: true", "optional: true", []),
        ("document\n", "invoice\n", ["template: processable_type document -> invoice"]),
        ("documents\n", "documents\ndescription: Files it.\n", ["template: description none -> Files it."]),
        (
            "depends_on: [ask]}\n  - {step_key: f",
            "group: 9}\n  - {step_key: f",
            ["notify: moved from group 3 to group 9"],
        ),
        ("depends_on: [ask]}\n  - {step_key: f", "group: 3}\n  - {step_key: f", ["notify: depends_on ask -> none"]),
        (
            "  - {step_key: finish",
            "  - {step_key: file, type: File, depends_on: [notify]}\n  - {step_key: finish",
            ["file: added, group 4, rule File, after notify", "finish: moved from group 4 to group 5"],
        ),
        (
            "  - {step_key: notify, type: Notify, depends_on: [ask]}\n",
            "",
            ["notify: removed, was group 3, rule Notify, after ask"],
        ),
        (
            "step_key: finish,",
            "step_key: close,",
            ["finish: removed", "close: added, group 4, system FinishProcessing"],
        ),
    ],
)
def test_a_change_is_told_in_words(old: str, new: str, says: list[str]) -> None:
    assert old in OLD
    found = told(OLD, OLD.replace(old, new))
    assert bool(found) == bool(says)
    for wanted in says:
        assert any(line.startswith(wanted) for line in found), found


def test_steps_that_change_places_in_their_group_are_told() -> None:
    lines = OLD.splitlines(keepends=True)
    swapped = "".join([*lines[:6], lines[7], lines[6], lines[8]])
    assert told(OLD, swapped) == ["template: order in group 3 vendor, notify -> notify, vendor"]


def test_one_and_one_point_nought_are_told_apart_as_the_digest_does() -> None:
    assert told(OLD, OLD.replace("temperature: 0", "temperature: 0.0")) == ["ask: model_config.temperature 0 -> 0.0"]


def compiled(template: dict[str, Any]) -> Plan:
    return plan(yaml.safe_dump(template, allow_unicode=True, sort_keys=False))


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(templates(), st.data())
def test_plans_without_a_difference_have_one_digest_and_the_other_way_round(
    template: dict[str, Any], data: st.DataObject
) -> None:
    old = compiled(template)
    steps = list(old.steps)
    place = data.draw(st.integers(0, len(steps) - 1))
    change: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {},
                {"timeout": steps[place].timeout + 7.0},
                {"max_attempts": steps[place].max_attempts + 1},
                {"model": {**steps[place].model, "new": None}},
                {"output_schema": {"quite": "new"}},
                {"input": {"quite new": "entity.a"}},
                {"prompt": f"{steps[place].prompt} another"},
                {"execution_group": steps[place].execution_group + 1},
                {"display_name": f"{steps[place].display_name} another"},
            ]
        )
    )
    steps[place] = replace(steps[place], **change)
    new = replace(old, steps=tuple(steps))
    same = digest(document_from_plan(old)) == digest(document_from_plan(new))
    assert same == (not change)
    assert (compare(old, new) == ()) == same


def test_a_change_is_plain_data_for_programs() -> None:
    (change,) = compare(plan(OLD), plan(OLD.replace("timeout: 5m", "timeout: 10m")))
    assert change == Change(kind=change.kind, step_key="read", field="timeout", old=300.0, new=600.0)
    assert change.kind.value == "changed"
