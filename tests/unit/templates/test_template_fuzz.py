"""Whatever is given as a template, the answer is a compiled template or TemplateInvalid with places inside the text."""

from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docmill.templates import compile as compile_module
from docmill.templates import steps
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.faults import Fault, TemplateInvalid

VALID = """\
name: t
processable_type: document
service_name: s
x-a: &a {max_attempts: 2}
steps:
  - step_key: a
    type: A
    input: {x: "entity.a", y: 5}
    <<: *a
  - step_key: b
    type: B
    depends_on: [a]
    condition: results.a.x > 1 and not entity.y
    processor_method: [{when: result.ok, method: m}, {method: n}]
    output_schema: {type: object, properties: {a: {type: string}}}
  - {step_key: f, type: FinishProcessing}
"""
SNIPPETS = st.sampled_from(
    [
        *"abx:-{}[]'\"#&*!|>%@`,?\n\t \\~",
        "- ",
        ": ",
        "<<: ",
        "*a",
        "&b ",
        "!!python/name:os ",
        "null",
        "---\n",
        "\x00",
        "\ud800",
        "é",
    ]
)
WORDS = st.sampled_from(
    ["a", "b", "finish", "FinishProcessing", "all_previous_steps", "entity.a >", "results.a", "5m", ""]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 5), st.floats(), WORDS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["when", "method", "switch_models", "type", "a", "$ref", "properties"]), inner, max_size=3
        ),
    ),
    max_leaves=5,
)
STEPS = st.dictionaries(st.sampled_from(sorted(steps.KEYS)), VALUES, max_size=8)
TEMPLATES = st.dictionaries(
    st.sampled_from(compile_module.KEYS), st.one_of(VALUES, st.lists(STEPS, max_size=4)), min_size=3
)


def faults_of(text: str) -> tuple[Fault, ...]:
    """What is wrong with it, if anything; any other exception fails the test."""
    try:
        compile_template(text, catalogue=Catalogue(step_types=None, processors={"s": frozenset("m")}))
    except TemplateInvalid as refused:
        return refused.faults
    return ()


def check(text: str) -> None:
    """The promise of this file."""
    faults = faults_of(text)
    lines = sum(text.count(end) for end in "\n\r\x85\u2028\u2029") + 1
    assert all(1 <= fault.line <= lines + 1 and fault.column >= 1 for fault in faults)
    assert list(faults) == sorted(faults, key=lambda fault: (fault.line, fault.column, fault.path))
    assert all(fault.message and fault.code for fault in faults)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_damaged_template_is_compiled_or_refused(data: st.DataObject) -> None:
    text = VALID
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(SNIPPETS) + text[at + data.draw(st.integers(0, 6)) :]
    check(text)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEMPLATES)
def test_wrong_values_in_known_keys_are_compiled_or_refused(template: dict[str, Any]) -> None:
    check(yaml.safe_dump(template))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    check(text)
