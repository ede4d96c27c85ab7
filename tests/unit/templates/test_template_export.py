"""An exported template reads as if a person had written it, and means exactly what was stored."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from docmill.model.statuses import FailureAction, StepKind
from docmill.templates.catalogue import FINISH_TYPE, Catalogue, StepType
from docmill.templates.compile import compile_template
from docmill.templates.document import digest, document_from_plan
from docmill.templates.export import export_template
from docmill.templates.plan import Plan
from docmill.testing.plans import plans
from docmill.testing.samples import SAMPLES
from tests.unit.templates.written import templates

ANYTHING = Catalogue.permissive()
KNOWN = Catalogue(
    step_types={"ReadText": StepType(kind=StepKind.SYSTEM), "Ask": StepType(kind=StepKind.AI)}, processors=None
)

WRITTEN = """\
name: invoice_intake
description: |-
  Reads an invoice.
  Files it.
processable_type: document
task_type: intake
service_name: documents
compensate: true

steps:
  - step_key: read_text
    type: ReadText
    timeout: 10m

  - step_key: classify
    type: Ask
    depends_on: [read_text]
    prompt: classify-document
    model_config:
      model: flash
      temperature: 0.5

  - step_key: extract
    display_name: Extract the fields
    type: Ask
    pool: gpu
    depends_on: [classify]
    condition: results.classify.kind in ['invoice', 'receipt']
    max_attempts: 6
    backoff: 1.5s
    on_retry_action:
      switch_models: [opus, gpt]
      raise_max_tokens_by: 2000
    input:
      text: results.read_text.text
      threshold: 0.8
      currency: '''EUR'''
    output_schema:
      type: object
      properties:
        vendor:
          type: [string, 'null']
    processor_method:
      - when: result.total > 10000
        method: save_for_approval
      - method: save_invoice
    compensation_method: remove_invoice

  - step_key: match_vendor
    type: Ask
    depends_on: [extract]
    optional: true
    processor_method: link_vendor

  - step_key: notify
    type: ReadText
    kind: external
    group: 7
    depends_on: all_previous_steps
    not_before: '2026-01-31T08:00:00+00:00'
    delay: 30s
    on_failure_action: continue

  - step_key: finish
    type: FinishProcessing
    processor_method: finish_document
"""


def valid(plan: Plan) -> Plan:
    """A drawn plan as the compiler makes them: the finish step of its own type, dependencies in order."""
    steps = [replace(step, depends_on=tuple(sorted(step.depends_on))) for step in plan.steps]
    steps[-1] = replace(steps[-1], step_type=FINISH_TYPE, on_failure=FailureAction.FAIL_JOB)
    return replace(plan, service_name="s", steps=tuple(steps))


def test_what_is_written_without_defaults_comes_back_letter_by_letter() -> None:
    compiled = compile_template(WRITTEN, catalogue=KNOWN)
    assert export_template(compiled.plan, catalogue=KNOWN) == WRITTEN


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(templates())
def test_whatever_template_is_stored_its_export_compiles_to_the_same_digest(template: dict[str, Any]) -> None:
    source = yaml.safe_dump(template, allow_unicode=True, sort_keys=False)
    first = compile_template(source, catalogue=ANYTHING)
    again = compile_template(export_template(first.plan, catalogue=ANYTHING), catalogue=ANYTHING)
    assert again.plan == first.plan
    assert again.digest == first.digest


@settings(max_examples=150)
@given(plans().map(valid))
def test_whatever_plan_is_stored_its_export_compiles_to_the_same_digest(plan: Plan) -> None:
    again = compile_template(export_template(plan, catalogue=ANYTHING), catalogue=ANYTHING)
    assert again.digest == digest(document_from_plan(plan))


@pytest.mark.parametrize("plan", [valid(plan) for plan in SAMPLES], ids=lambda plan: plan.name)
def test_the_export_of_an_export_is_the_same_to_the_letter(plan: Plan) -> None:
    text = export_template(plan, catalogue=ANYTHING)
    assert export_template(compile_template(text, catalogue=ANYTHING).plan, catalogue=ANYTHING) == text


BARE = """\
name: x
processable_type: d
steps:
  - {step_key: a, type: T}
  - {step_key: finish, type: FinishProcessing}
"""

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40),
    st.text(" \n-:#'\"|>%@`{}[],&*!?\t\\x1", min_size=1, max_size=15),
    st.sampled_from(["1e3", "0x1F", "0o17", "yes", "off", "~", "null", ".5", ".inf", "2026-01-31", "<<", "=", "1_000"]),
)


@settings(max_examples=300)
@given(TEXTS)
@example("two lines\nand empty ones\n\n")
def test_texts_come_back_whatever_they_hold(text: str) -> None:
    plan = compile_template(BARE, catalogue=ANYTHING).plan
    model: dict[str, object] = {"text": text, "list": [text, [text]], "inner": {"text": text}}
    first = replace(plan.steps[0], model=model, output_schema={"const": text})
    wanted = replace(plan, description=text if text.strip() else "", steps=(first, plan.steps[1]))
    assert compile_template(export_template(wanted, catalogue=ANYTHING), catalogue=ANYTHING).plan == wanted


@pytest.mark.parametrize(
    "expression", ["null", "true", "5", "5.0", "2e3", "0.10", "'x'", "'2026-01-31'", "-1", "not null"]
)
def test_an_expression_is_quoted_unless_it_stands_for_itself(expression: str) -> None:
    plan = compile_template(BARE, catalogue=ANYTHING).plan
    first = replace(plan.steps[0], condition=expression, input={"x": expression})
    wanted = replace(plan, steps=(first, plan.steps[1]))
    assert compile_template(export_template(wanted, catalogue=ANYTHING), catalogue=ANYTHING).plan == wanted


def test_a_kind_is_left_out_only_where_the_reader_knows_it_from_the_type() -> None:
    plan = compile_template(WRITTEN, catalogue=KNOWN).plan
    assert "kind: ai" not in export_template(plan, catalogue=KNOWN)
    assert export_template(plan, catalogue=ANYTHING).count("kind: ai") == 3
