"""Whatever valid template is written, its stored document gives back exactly the plan that was compiled."""

import json
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings

from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import CompiledTemplate, compile_template
from docmill.templates.describe import draw
from docmill.templates.document import digest, document_from_plan, plan_from_document
from tests.unit.templates.written import templates


def compiled(template: dict[str, Any]) -> CompiledTemplate:
    text = yaml.safe_dump(template, allow_unicode=True, sort_keys=False)
    return compile_template(text, catalogue=Catalogue.permissive())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(templates())
def test_a_stored_document_gives_back_the_plan(template: dict[str, Any]) -> None:
    first = compiled(template)
    stored = json.loads(json.dumps(first.document))
    plan = plan_from_document(stored)
    assert plan == first.plan
    assert document_from_plan(plan) == stored
    assert digest(stored) == first.digest


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(templates())
def test_a_valid_template_keeps_the_rules_the_engine_relies_on(template: dict[str, Any]) -> None:
    plan = compiled(template).plan
    assert [step.position for step in plan.steps] == list(range(len(plan.steps)))
    assert [step.finish for step in plan.steps] == [False] * plan.finish + [True]
    assert plan.steps[plan.finish].depends_on == tuple(range(plan.finish))
    assert plan.groups[-1] == (plan.finish,)
    ranks = [(step.execution_group, step.order) for step in plan.steps]
    assert ranks == sorted(ranks)
    for step in plan.steps:
        assert all(plan.steps[need].execution_group <= step.execution_group for need in step.depends_on)
        assert step.position not in step.depends_on


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(templates())
def test_every_plan_can_be_drawn_with_every_step_named_once(template: dict[str, Any]) -> None:
    plan = compiled(template).plan
    lines = draw(plan).splitlines()
    for step in plan.steps:
        assert len([line for line in lines if line.startswith(f"│ {step.step_key}: ")]) == 1
