"""What is malformed is told when a prompt is stored, every fault with its place and remedy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.prompts.substitution import render
from docmill.prompts.syntax import KEPT, LONGEST_TEXT, PromptInvalid, check, parse, variables

FAULTS = [
    ("", "empty_text", "write its text"),
    (" \n\t", "empty_text", "write its text"),
    ("x" * (LONGEST_TEXT + 1), "text_too_long", "shorten it to 200,000"),
    ("a\0b", "bad_character", "remove it"),
    ("a\x1b[2J", "bad_character", "'\\x1b'"),
    ("a\ud800", "bad_character", "'\\ud800'"),
    ("{!entity.a", "unclosed_variable", "close it, or write {!!}"),
    ("{!entity.a\n}", "unclosed_variable", "in its line"),
    ("{!entity.{x}", "unclosed_variable", "has no '}'"),
    ("{!}", "unknown_variable", "Variables begin with entity, entityId"),
    ("{! }", "unknown_variable", "Variables begin with"),
    ("{!Entity.a}", "unknown_variable", "Did you mean 'entity'?"),
    ("{!entity_id}", "unknown_variable", "Did you mean 'entityId'?"),
    ("{!array:entity.a|b}", "unknown_variable", "Did you mean 'Array:'?"),
    ("{!Objekt:entity.a|b}", "unknown_variable", "Did you mean 'Object:'?"),
    ("{!Sum:entity.a|b}", "unknown_variable", "There is no variable 'Sum:entity.a|b'. Variables begin with"),
    ("{!transaction_code}", "unknown_variable", "Did you mean 'entity.transaction_code'?"),
    ("{!Array:project.rates|id}", "unknown_variable", "Did you mean 'entity.project.rates'?"),
    ("{!entity.}", "bad_path", "A key is missing"),
    ("{!entity..a}", "bad_path", "'entity..a'"),
    ("{!entityId.x}", "bad_path", "entityId is plain text"),
    ("{!Object:entityType|x}", "bad_path", "entityType is plain text"),
    ("{!Array:entity.a}", "bad_fields", "write {!Array:entity.path|field1,field2}"),
    ("{!Object:entity.a|}", "bad_fields", "write {!Object:entity.path|field1,field2}"),
    ("{!Array:entity.a|x,,y}", "bad_fields", "A field is missing"),
    ("{!Array:entity.a|x.}", "bad_fields", "A field is missing"),
    ("{!entity.a|x}", "bad_fields", "write {!Object:entity.a|x}"),
]


@pytest.mark.parametrize(("text", "code", "says"), FAULTS, ids=[repr(text[:30]) for text, _, _ in FAULTS])
def test_a_malformed_text_is_refused_by_name_and_remedy(text: str, code: str, says: str) -> None:
    (fault,) = check(text)
    assert fault.code == code
    assert says in fault.message


def test_every_fault_is_told_with_its_line_and_column() -> None:
    text = "Read {!entity.a}\n  {!nothing} and \x07\n\n{!entity."
    assert [(fault.line, fault.column, fault.code) for fault in check(text)] == [
        (2, 3, "unknown_variable"),
        (2, 18, "bad_character"),
        (4, 1, "unclosed_variable"),
    ]


def test_one_fault_is_one_line_and_many_are_a_list() -> None:
    assert str(PromptInvalid("p", check("{!x"))) == (
        "p: line 1, column 1: This '{!' has no '}' in its line; close it, or write {!!} for '{!'. [unclosed_variable]"
    )
    many = PromptInvalid("p", check("{!x\n" * 30))
    assert str(many).splitlines()[0] == "p: 30 faults."
    assert len(str(many).splitlines()) == 22
    assert "… and 10 more" in str(many)


def test_faults_are_counted_up_to_a_bound() -> None:
    assert len(check("{!" * 90_000)) == KEPT


def test_the_faults_of_what_is_malformed_do_not_hide_what_is_right() -> None:
    assert [str(each) for each in variables("{!x{!entity.a} {!entity. {!entityId}")] == ["entity.a", "entityId"]


def test_variables_are_listed_once_in_their_order() -> None:
    text = "{!Array: entity.b | x, y.z }{!entity.a}{!entityType}{!!}{!Object:entity|q}{! entity.a }{!entity}"
    assert [str(each) for each in variables(text)] == [
        "Array:entity.b|x,y.z",
        "entity.a",
        "entityType",
        "Object:entity|q",
        "entity",
    ]


@pytest.mark.parametrize("text", ["{x}", "{ !x}", "!{x}", "{{x}}", '{"a": {"b": 1}}', "}{", "{", "a ! b"])
def test_other_braces_mean_nothing(text: str) -> None:
    assert check(text) == ()
    assert render(text, entity={"x": 1}, entity_id="1", entity_type="t") == text


@given(st.text(alphabet="{}!entiyId.|,:ArayObjc \n"))
def test_parts_and_faults_account_for_every_letter(text: str) -> None:
    parsed = parse(text)
    starts = text.count("{!")
    kept = sum(1 for part in parsed.parts if not isinstance(part, str))
    assert kept + len(parsed.faults) <= starts
    if starts and not kept and not parsed.faults:
        assert "{!!}" in text
    if not kept:
        assert "".join(map(str, parsed.parts)) == text.replace("{!!}", "{!")


@given(st.text(alphabet="{}!entiyId.|,:ArayObjc \n"))
def test_a_variable_written_out_means_the_same(text: str) -> None:
    for variable in variables(text):
        assert variables(f"{{!{variable}}}") == (variable,)
