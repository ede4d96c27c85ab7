"""A bad template is refused with every fault listed, each with its line, its path, a stable code and a remedy."""

import pytest

from docmill.model.errors import DocmillError
from docmill.model.statuses import StepKind
from docmill.templates.catalogue import Catalogue, StepType
from docmill.templates.compile import compile_template
from docmill.templates.faults import Fault, TemplateInvalid

CATALOGUE = Catalogue(
    step_types={
        "ReadText": StepType(kind=StepKind.RULE, recoveries=frozenset({"resume"})),
        "Extract": StepType(kind=StepKind.AI, recoveries=frozenset()),
    },
    processors={"documents": frozenset({"save_document", "undo_document"})},
    prompts=frozenset({"extract-fields"}),
)
# Steps of a test begin on line 5.
HEAD = "name: t\nprocessable_type: document\nservice_name: documents\nsteps:\n"
FINISH = "  - {step_key: finish, type: FinishProcessing}\n"


def faults_of(text: str, catalogue: Catalogue = CATALOGUE) -> tuple[Fault, ...]:
    with pytest.raises(TemplateInvalid) as refused:
        compile_template(text, catalogue=catalogue, source="invoice.yaml")
    return refused.value.faults


def faults_in(*steps: str, finish: str = FINISH) -> list[tuple[int, str, str]]:
    found = faults_of(HEAD + "".join(f"  - {{{step}}}\n" for step in steps) + finish)
    return [(fault.line, fault.path, fault.code) for fault in found]


def message_in(*steps: str, finish: str = FINISH) -> str:
    (fault,) = faults_of(HEAD + "".join(f"  - {{{step}}}\n" for step in steps) + finish)
    return fault.message


A = "step_key: a, type: ReadText"
B = "step_key: b, type: ReadText"
C = "step_key: c, type: ReadText"


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ("colour: red", "colour", "unknown_key"),
        ("display_name: [a]", "display_name", "wrong_type"),
        ("display_name: 5", "display_name", "wrong_type"),
        ("display_name: ''", "display_name", "empty_text"),
        (f"display_name: {'x' * 201}", "display_name", "text_too_long"),
        ("kind: robot", "kind", "bad_choice"),
        ("pool: Big Pool", "pool", "bad_name"),
        ("group: 0", "group", "bad_number"),
        ("group: first", "group", "wrong_type"),
        ("group: 1.5", "group", "bad_number"),
        ("group: true", "group", "wrong_type"),
        ("group: 1, execution_group: 2", "execution_group", "duplicate_key"),
        ("order: -1", "order", "bad_number"),
        ("depends_on: {b: 1}", "depends_on", "wrong_type"),
        ("depends_on: [5]", "depends_on[0]", "wrong_type"),
        ("depends_on: [nobody]", "depends_on[0]", "unknown_dependency"),
        ("depends_on: [a]", "depends_on[0]", "self_dependency"),
        ("depends_on: [finish]", "depends_on[0]", "dependency_on_finish"),
        ("condition: entity.total >", "condition", "bad_expression"),
        ("condition: result.total > 1", "condition", "bad_expression"),
        ("condition: [a]", "condition", "wrong_type"),
        ("condition: results.nobody.ok", "condition", "unknown_result"),
        ("condition: results.a.ok", "condition", "result_not_ready"),
        ("optional: maybe", "optional", "wrong_type"),
        ("optional: true, on_failure_action: fail_job", "on_failure_action", "optional_fail_job"),
        ("timeout: 0", "timeout", "bad_number"),
        ("timeout: -5", "timeout", "bad_number"),
        ("timeout: 400d", "timeout", "bad_number"),
        ("timeout: soon", "timeout", "bad_duration"),
        ("timeout: true", "timeout", "wrong_type"),
        ("timeout: .inf", "", "bad_number"),
        ("max_attempts: 0", "max_attempts", "bad_number"),
        ("max_attempts: 101", "max_attempts", "bad_number"),
        ("max_attempts: many", "max_attempts", "wrong_type"),
        ("backoff: -1", "backoff", "bad_number"),
        ("max_crashes: 0", "max_crashes", "bad_number"),
        ("on_failure_action: explode", "on_failure_action", "bad_choice"),
        ("on_retry_action: [gpt]", "on_retry_action", "wrong_type"),
        ("on_retry_action: {switch_models: gpt}", "on_retry_action.switch_models", "wrong_type"),
        ("on_retry_action: {switch_models: [1]}", "on_retry_action.switch_models[0]", "wrong_type"),
        ("on_retry_action: {raise_max_tokens_by: -1}", "on_retry_action.raise_max_tokens_by", "bad_number"),
        ("on_retry_action: {switch_model: [x]}", "on_retry_action.switch_model", "unknown_key"),
        ("prompt: extract-feilds", "prompt", "unknown_prompt"),
        ("executor: hub", "executor", "not_external"),
        ("kind: external, executor: http://example.com", "executor", "bad_name"),
        ("kind: external, executor: 5", "executor", "wrong_type"),
        ("kind: external, answer_within: 0", "answer_within", "bad_number"),
        ("kind: external, answer_within: soon", "answer_within", "bad_duration"),
        ("prompt: true", "prompt", "wrong_type"),
        ("model_config: fast", "model_config", "wrong_type"),
        ("output_schema: object", "output_schema", "wrong_type"),
        ("output_schema: {type: strng}", "output_schema.type", "bad_schema"),
        ("output_schema: {type: null}", "output_schema.type", "bad_schema"),
        ("output_schema: {properties: [a]}", "output_schema.properties", "bad_schema"),
        ("output_schema: {properties: {a: 5}}", "output_schema.properties.a", "bad_schema"),
        ("output_schema: {anyOf: {}}", "output_schema.anyOf", "bad_schema"),
        ("output_schema: {items: {anyOf: [{type: x}]}}", "output_schema.items.anyOf[0].type", "bad_schema"),
        ("output_schema: {required: total}", "output_schema.required", "bad_schema"),
        ("output_schema: {enum: []}", "output_schema.enum", "bad_schema"),
        ("output_schema: {$ref: 'http://evil/x'}", "output_schema.$ref", "bad_schema"),
        ("processor_method: sav_document", "processor_method", "unknown_processor"),
        ("processor_method: 5", "processor_method", "wrong_type"),
        ("processor_method: {when: x}", "processor_method", "wrong_type"),
        ("processor_method: [save_document]", "processor_method[0]", "wrong_type"),
        ("processor_method: [{when: result.ok}]", "processor_method[0].method", "missing_key"),
        ("processor_method: [{when: '=', method: save_document}]", "processor_method[0].when", "bad_expression"),
        (
            "processor_method: [{method: save_document}, {when: result.ok, method: save_document}]",
            "processor_method[0]",
            "processor_default_not_last",
        ),
        ("compensation_method: undo", "compensation_method", "unknown_processor"),
        ("recovery: rewind", "recovery", "unknown_recovery"),
        ("input: [a]", "input", "wrong_type"),
        ("input: {2x: entity.a}", "input.2x", "bad_name"),
        ("input: {x: entity..a}", "input.x", "bad_expression"),
        ("input: {x: {y: z}}", "input.x", "wrong_type"),
        ("not_before: 5", "not_before", "wrong_type"),
        ("not_before: next tuesday", "not_before", "bad_expression"),
        ("delay: -1s", "delay", "bad_duration"),
        ("delay: -1", "delay", "bad_number"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(fields: str, path: str, code: str) -> None:
    assert faults_in(B, f"{A}, {fields}") == [(6, path and f"steps[1].{path}", code)]


@pytest.mark.parametrize(
    ("step", "path", "code"),
    [
        ("type: ReadText", "step_key", "missing_key"),
        ("step_key: null, type: ReadText", "step_key", "missing_key"),
        ("step_key: Read Text, type: ReadText", "step_key", "bad_name"),
        ("step_key: 1st, type: ReadText", "step_key", "bad_name"),
        (f"step_key: {'x' * 65}, type: ReadText", "step_key", "bad_name"),
        ("step_key: all_previous_steps, type: ReadText", "step_key", "bad_name"),
        ("step_key: a", "type", "missing_key"),
        ("step_key: a, type: ReadTxt", "type", "unknown_step_type"),
        ("step_key: b, type: ReadText", "step_key", "duplicate_step_key"),
    ],
)
def test_a_step_needs_a_key_of_its_own_and_a_known_type(step: str, path: str, code: str) -> None:
    assert faults_in(B, step) == [(6, f"steps[1].{path}", code)]


@pytest.mark.parametrize(
    ("text", "line", "path", "code"),
    [
        ("", 1, "", "empty"),
        ("# nothing\n", 1, "", "empty"),
        ("- a\n- b\n", 1, "", "wrong_type"),
        ("just text", 1, "", "wrong_type"),
        ("processable_type: d\nsteps:\n" + FINISH, 1, "name", "missing_key"),
        ("name: t\nsteps:\n" + FINISH, 1, "processable_type", "missing_key"),
        ("name: t\nprocessable_type: d\n", 1, "steps", "missing_key"),
        ("name: t\nprocessable_type: d\nsteps: []\n", 3, "steps", "no_steps"),
        ("name: t\nprocessable_type: d\nsteps: many\n", 3, "steps", "wrong_type"),
        ("name: t\nprocessable_type: d\nsteps:\n  - one\n", 4, "steps[0]", "wrong_type"),
        ("name: ../x\nprocessable_type: d\nsteps:\n" + FINISH, 1, "name", "bad_name"),
        ("name: t\nprocessable_type: a b\nsteps:\n" + FINISH, 2, "processable_type", "bad_name"),
        ("name: t\nprocessable_type: d\ntask_type: 7\nsteps:\n" + FINISH, 3, "task_type", "wrong_type"),
        ("name: t\nprocessable_type: d\ncompensate: 'yes'\nsteps:\n" + FINISH, 3, "compensate", "wrong_type"),
        ("name: t\nprocessable_type: d\nservice_name: docs\nsteps:\n" + FINISH, 3, "service_name", "unknown_service"),
        ("name: t\nprocessable_type: d\nsteps:\n" + FINISH + "versoin: 2\n", 5, "versoin", "unknown_key"),
        (
            "name: t\nprocessable_type: d\nsteps:\n  - {step_key: f, type: FinishProcessing, processor_method: x}\n",
            4,
            "steps[0].processor_method",
            "service_missing",
        ),
    ],
)
def test_a_wrong_top_level_is_named_with_its_line(text: str, line: int, path: str, code: str) -> None:
    assert [(fault.line, fault.path, fault.code) for fault in faults_of(text)] == [(line, path, code)]


@pytest.mark.parametrize(
    ("finish", "line", "path", "code"),
    [
        ("", 5, "steps", "finish_missing"),
        (FINISH + FINISH.replace("finish,", "again,"), 7, "steps[2]", "finish_duplicate"),
        (FINISH + "  - {step_key: z, type: ReadText}\n", 6, "steps[1]", "finish_not_last"),
        ("  - {step_key: f, type: FinishProcessing, group: 1}\n", 6, "steps[1].group", "finish_not_last"),
        ("  - {step_key: f, type: FinishProcessing, optional: true}\n", 6, "steps[1].optional", "finish_optional"),
        ("  - {step_key: f, type: FinishProcessing, kind: ai}\n", 6, "steps[1].kind", "finish_kind"),
        (
            "  - {step_key: f, type: FinishProcessing, condition: entity.ok}\n",
            6,
            "steps[1].condition",
            "finish_condition",
        ),
        (
            "  - {step_key: f, type: FinishProcessing, on_failure_action: continue}\n",
            6,
            "steps[1].on_failure_action",
            "finish_on_failure",
        ),
    ],
)
def test_a_template_ends_with_exactly_one_finish_step(finish: str, line: int, path: str, code: str) -> None:
    assert faults_in(A, finish=finish) == [(line, path, code)]


def test_a_dependency_on_a_later_group_is_refused() -> None:
    assert faults_in(f"{A}, group: 1, depends_on: [b]", f"{B}, group: 2") == [
        (5, "steps[0].depends_on[0]", "dependency_later_group")
    ]


def test_a_cycle_is_shown_as_the_path_it_takes() -> None:
    steps = (f"{A}, depends_on: [c]", f"{B}, depends_on: [a]", f"{C}, depends_on: [b]")
    assert faults_in(*steps) == [(5, "steps[0].depends_on[0]", "cycle")]
    assert "a → c → b → a" in message_in(*steps)


def test_each_of_two_cycles_is_one_fault_and_their_followers_are_none() -> None:
    found = faults_in(
        f"{A}, depends_on: [b]",
        f"{B}, depends_on: [a]",
        f"{C}, depends_on: [d, a]",
        "step_key: d, type: ReadText, depends_on: [c]",
        "step_key: e, type: ReadText, depends_on: [d]",
    )
    assert found == [(5, "steps[0].depends_on[0]", "cycle"), (7, "steps[2].depends_on[0]", "cycle")]


def test_a_dependency_listed_twice_is_refused() -> None:
    assert faults_in(A, f"{B}, depends_on: [a, a]") == [(6, "steps[1].depends_on[1]", "duplicate_dependency")]


def test_a_result_of_a_sibling_in_the_same_group_is_not_ready() -> None:
    found = faults_in(f"{A}, group: 1", f"{B}, group: 1, input: {{x: results.a.y}}")
    assert found == [(6, "steps[1].input.x", "result_not_ready")]


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = """\
name: t
processable_typ: document
steps:
  - step_key: a
    type: ReadTxt
    timeout: -1
    timeout: 5
  - step_key: b
    type: Extract
    depends_on: [c, q]
    condition: entity.total >> 5
  - step_key: c
    type: Extract
    group: 1
    depends_on:
      - b
    model_config: !!python/object/apply:os.system [rm]
"""
    assert [(fault.line, fault.code) for fault in faults_of(text)] == [
        (1, "missing_key"),
        (2, "unknown_key"),
        (5, "unknown_step_type"),
        (6, "bad_number"),
        (7, "duplicate_key"),
        (10, "cycle"),
        (10, "unknown_dependency"),
        (11, "bad_expression"),
        (12, "finish_missing"),
        (17, "yaml_tag"),
        (17, "wrong_type"),
    ]


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ("timout: 5", "Did you mean 'timeout'?"),
        ("kind: sistem", "Did you mean 'system'?"),
        ("prompt: extract-feilds", "Did you mean 'extract-fields'?"),
        ("processor_method: save_documnt", "Did you mean 'save_document'?"),
        ("depends_on: [finnish_b]", "Add that step"),
        ("condition: results.bb.ok", "Did you mean 'b'?"),
    ],
)
def test_a_misspelling_gets_a_suggestion(fields: str, hint: str) -> None:
    assert hint in message_in(B, f"{A}, {fields}")


@pytest.mark.parametrize(
    ("written", "column"),
    [
        ("entity.total >> 5", 30),
        ("'entity.total >> 5'", 31),
        ('"entity.total >> 5"', 31),
    ],
)
def test_a_fault_in_an_expression_points_into_it(written: str, column: int) -> None:
    text = HEAD + f"  - step_key: a\n    type: ReadText\n    condition: {written}\n" + FINISH
    (fault,) = faults_of(text)
    assert (fault.line, fault.column) == (7, column)
    assert "character 15" in fault.message


def test_too_many_steps_are_refused_before_they_are_read() -> None:
    steps = "".join(f"  - {{step_key: s{n}, type: Nope}}\n" for n in range(1000))
    assert [fault.code for fault in faults_of(HEAD + steps + FINISH)] == ["too_many_steps"]


def test_too_many_dependencies_are_refused() -> None:
    steps = "".join(
        f"  - {{step_key: s{n}, type: ReadText, group: {n + 1}, depends_on: all_previous_steps}}\n" for n in range(250)
    )
    assert [fault.code for fault in faults_of(HEAD + steps + FINISH)] == ["too_many_dependencies"]


def test_the_error_is_a_named_one_that_lists_its_faults_in_words_and_as_data() -> None:
    with pytest.raises(DocmillError) as refused:
        compile_template("name: t\n", catalogue=CATALOGUE, source="invoice.yaml")
    error = refused.value
    assert error.code == "template_invalid"
    assert error.message.startswith("invoice.yaml: 2 faults in this template")
    assert "line 1, column 1: steps: 'steps' is missing" in error.message
    faults = error.details["faults"]
    assert isinstance(faults, list)
    assert faults[0] == {
        "line": 1,
        "column": 1,
        "path": "processable_type",
        "code": "missing_key",
        "message": "'processable_type' is missing; say what it processes, such as document.",
    }


def test_a_flood_of_faults_is_counted_not_repeated() -> None:
    steps = "".join(f"  - {{step_key: s{n}, type: Nope, x: 1, y: 2}}\n" for n in range(900))
    with pytest.raises(TemplateInvalid) as refused:
        compile_template(HEAD + steps + FINISH, catalogue=CATALOGUE)
    assert len(refused.value.faults) == 1000
    assert "2700 faults" in refused.value.message
    assert "… and 2650 more" in refused.value.message
