"""Every field of a template reaches the plan, and every field left out has its documented default."""

import json

import pytest

from docmill.model.statuses import FailureAction, StepKind
from docmill.templates.catalogue import Catalogue, StepType
from docmill.templates.compile import compile_template
from docmill.templates.document import document_from_plan, plan_from_document
from docmill.templates.faults import TemplateInvalid
from docmill.templates.plan import Plan, PlanStep, ProcessorChoice, RetryAction

CATALOGUE = Catalogue(
    step_types={
        "ReadText": StepType(kind=StepKind.RULE, recoveries=frozenset({"resume", "restart"})),
        "Extract": StepType(kind=StepKind.AI),
    },
    processors={"documents": frozenset({"save", "save_invoice", "save_other", "undo", "finish_document"})},
    prompts=frozenset({"extract-fields", "12"}),
)

FULL = """\
name: Invoice intake
description: Reads an invoice and files it.
processable_type: document
task_type: document_process
service_name: documents
compensate: true
steps:
  - step_key: read_text
    type: ReadText
  - step_key: extract
    display_name: Extract the fields
    kind: external
    type: Extract
    pool: gpu-large
    group: 7
    order: 3
    depends_on: [read_text]
    condition: results.read_text.pages > 0
    optional: true
    timeout: 2m30s
    max_attempts: 6
    backoff: 1.5
    max_crashes: 5
    on_failure_action: continue
    on_retry_action: {switch_models: [claude-3-opus, gpt-4-turbo], raise_max_tokens_by: 2000}
    prompt: extract-fields
    model_config: {model: gemini-2.5-flash, temperature: 0.2, stop: [a, b], nested: {deep: null}}
    output_schema: {type: object, properties: {total: {type: number}}, required: [total]}
    processor_method:
      - {when: result.kind == 'invoice', method: save_invoice}
      - {method: save_other}
    compensation_method: undo
    input: {text: results.read_text.text, threshold: 0.8, strict: true, nothing: null}
    not_before: metadata.publish_at
    delay: 500ms
    executor: hub
    answer_within: 36h
  - step_key: finish
    type: FinishProcessing
    processor_method: finish_document
"""


def steps_of(*lines: str, catalogue: Catalogue = CATALOGUE) -> Plan:
    head = "name: t\nprocessable_type: document\nservice_name: documents\nsteps:\n"
    finish = "  - {step_key: finish, type: FinishProcessing}\n"
    return compile_template(head + "".join(f"  - {line}\n" for line in lines) + finish, catalogue=catalogue).plan


def only_step(fields: str) -> PlanStep:
    return steps_of(f"{{step_key: one_step, type: ReadText, {fields}}}").step("one_step")


def test_every_field_reaches_the_plan() -> None:
    plan = compile_template(FULL, catalogue=CATALOGUE).plan
    assert (plan.name, plan.description) == ("Invoice intake", "Reads an invoice and files it.")
    assert (plan.processable_type, plan.task_type) == ("document", "document_process")
    assert (plan.service_name, plan.compensate) == ("documents", True)
    assert plan.step("extract") == PlanStep(
        position=1,
        step_key="extract",
        display_name="Extract the fields",
        kind=StepKind.EXTERNAL,
        step_type="Extract",
        pool="gpu-large",
        execution_group=7,
        order=3,
        depends_on=(0,),
        condition="results.read_text.pages > 0",
        optional=True,
        timeout=150.0,
        max_attempts=6,
        backoff=1.5,
        max_crashes=5,
        on_failure=FailureAction.CONTINUE,
        on_retry=RetryAction(switch_models=("claude-3-opus", "gpt-4-turbo"), raise_max_tokens_by=2000),
        prompt="extract-fields",
        model={"model": "gemini-2.5-flash", "temperature": 0.2, "stop": ["a", "b"], "nested": {"deep": None}},
        output_schema={"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]},
        processor=(
            ProcessorChoice(when="result.kind == 'invoice'", method="save_invoice"),
            ProcessorChoice(when=None, method="save_other"),
        ),
        compensation="undo",
        input={"text": "results.read_text.text", "threshold": "0.8", "strict": "true", "nothing": "null"},
        not_before="metadata.publish_at",
        delay=0.5,
        executor="hub",
        answer_within=129_600.0,
    )
    finish = plan.step("finish")
    assert finish.finish
    assert finish.processor == (ProcessorChoice(when=None, method="finish_document"),)


def test_what_is_left_out_has_its_default() -> None:
    plan = steps_of("{step_key: read_text, type: ReadText}")
    assert (plan.task_type, plan.description, plan.compensate) == ("process", "", False)
    assert plan.steps[0] == PlanStep(
        position=0,
        step_key="read_text",
        display_name="Read text",
        kind=StepKind.RULE,
        step_type="ReadText",
        pool="rule",
        execution_group=1,
        order=0,
        depends_on=(),
        condition=None,
        optional=False,
        timeout=300.0,
        max_attempts=4,
        backoff=10.0,
        max_crashes=3,
        on_failure=FailureAction.FAIL_JOB,
        on_retry=RetryAction(),
        prompt=None,
        model={},
        output_schema=None,
        processor=(),
        compensation=None,
        recovery=None,
        input={},
        not_before=None,
        delay=0.0,
        finish=False,
    )


def test_null_is_the_same_as_absent() -> None:
    fields = "kind: null, pool: , timeout: ~, depends_on: null, processor_method: null, input: null, condition: null"
    assert only_step(fields) == only_step("optional: false")


def test_the_kind_comes_from_the_step_type_and_the_pool_from_the_kind() -> None:
    plan = steps_of("{step_key: a, type: Extract}", "{step_key: b, type: Extract, kind: human}")
    assert [(step.kind, step.pool) for step in plan.steps] == [
        (StepKind.AI, "ai"),
        (StepKind.HUMAN, "human"),
        (StepKind.SYSTEM, "system"),
    ]


def test_an_optional_step_skips_its_dependents_unless_told_to_continue() -> None:
    assert only_step("optional: true").on_failure is FailureAction.SKIP_DEPENDENTS
    assert only_step("optional: true, on_failure_action: continue").on_failure is FailureAction.CONTINUE


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("300", 300.0), ("0.25", 0.25), ("5m", 300.0), ("30s", 30.0), ("'90'", 90.0), ("1h 30m", 5400.0), ("250ms", 0.25)],
)
def test_lengths_of_time_are_seconds_or_text_with_units(written: str, seconds: float) -> None:
    assert only_step(f"timeout: {written}").timeout == seconds


def test_backoff_and_delay_may_be_zero() -> None:
    step = only_step("backoff: 0, delay: 0s")
    assert (step.backoff, step.delay) == (0.0, 0.0)


def test_a_fixed_processor_is_one_branch_without_condition() -> None:
    assert only_step("processor_method: save").processor == (ProcessorChoice(when=None, method="save"),)


def test_a_choice_of_processors_needs_no_default() -> None:
    step = only_step("processor_method: [{when: result.ok, method: save}]")
    assert step.processor == (ProcessorChoice(when="result.ok", method="save"),)


def test_a_prompt_is_a_name_or_an_id() -> None:
    assert only_step("prompt: 12").prompt == "12"
    assert only_step("prompt: extract-fields").prompt == "extract-fields"


def test_a_recovery_the_step_type_offers_is_kept() -> None:
    assert only_step("recovery: resume").recovery == "resume"


@pytest.mark.parametrize(
    ("written", "expression"),
    [
        ("2026-01-31", "'2026-01-31T00:00:00+00:00'"),
        ("2026-01-31T08:00:00Z", "'2026-01-31T08:00:00+00:00'"),
        ("'2026-01-31T08:00:00+02:00'", "'2026-01-31T08:00:00+02:00'"),
        ("entity.due_date", "entity.due_date"),
    ],
)
def test_not_before_is_always_stored_as_an_expression(written: str, expression: str) -> None:
    assert only_step(f"not_before: {written}").not_before == expression


def test_words_that_old_yaml_reads_as_booleans_stay_words() -> None:
    step = only_step("model_config: {country: NO, mode: on, day: 2026-01-31, time: 12:30:00, zip: 00501}")
    assert step.model == {"country": "NO", "mode": "on", "day": "2026-01-31", "time": "12:30:00", "zip": 501}


def test_anchors_and_merges_save_repetition() -> None:
    text = """\
name: t
processable_type: document
x-defaults: &retry {max_attempts: 2, backoff: 1}
steps:
  - {step_key: a, type: ReadText, <<: *retry}
  - {step_key: b, type: ReadText, backoff: 5, <<: [*retry, {delay: 3}]}
  - {step_key: finish, type: FinishProcessing}
"""
    plan = compile_template(text, catalogue=CATALOGUE).plan
    assert [(s.max_attempts, s.backoff, s.delay) for s in plan.steps[:2]] == [(2, 1.0, 0.0), (2, 5.0, 3.0)]


def test_execution_group_is_another_name_of_group() -> None:
    assert only_step("execution_group: 4").execution_group == 4


def test_the_permissive_catalogue_allows_every_name() -> None:
    plan = steps_of(
        "{step_key: a, type: Whatever, prompt: any, processor_method: any}", catalogue=Catalogue.permissive()
    )
    assert plan.steps[0].kind is StepKind.RULE


def test_a_stored_document_gives_the_same_plan_without_a_catalogue() -> None:
    compiled = compile_template(FULL, catalogue=CATALOGUE)
    assert plan_from_document(json.loads(json.dumps(compiled.document))) == compiled.plan


def test_the_digest_follows_the_meaning_not_the_spelling() -> None:
    first = compile_template(FULL, catalogue=CATALOGUE)
    respelled = FULL.replace("timeout: 2m30s", "timeout: 150  # seconds").replace("optional: true", "optional: True")
    changed = FULL.replace("timeout: 2m30s", "timeout: 151")
    assert compile_template(respelled, catalogue=CATALOGUE).digest == first.digest
    assert compile_template(changed, catalogue=CATALOGUE).digest != first.digest
    assert len(first.digest) == 64


def test_a_document_of_a_newer_format_is_refused_by_name() -> None:
    from docmill.model.errors import InvalidInput

    document = compile_template(FULL, catalogue=CATALOGUE).document
    with pytest.raises(InvalidInput, match="Upgrade Docmill"):
        plan_from_document({**document, "format": 99})


def only_external(fields: str) -> Plan:
    source = f"""
name: outside
processable_type: document
steps:
  - {{step_key: a, kind: external, {fields}}}
  - {{step_key: finish, type: FinishProcessing}}
"""
    return compile_template(source, catalogue=Catalogue.permissive()).plan


def test_only_what_goes_outside_needs_the_newer_format() -> None:
    plain = document_from_plan(only_external("type: A"))
    sent = document_from_plan(only_external("type: external.call, executor: hub"))
    longer = document_from_plan(only_external("type: A, answer_within: 2d"))
    assert [document["format"] for document in (plain, sent, longer)] == [1, 2, 2]
    assert not {"executor", "answer_within"} & plain["steps"][0].keys()


def test_a_call_to_nobody_is_refused() -> None:
    with pytest.raises(TemplateInvalid) as refused:
        only_external("type: external.call")
    assert [(fault.path, fault.code) for fault in refused.value.faults] == [("steps[0].executor", "missing_key")]
