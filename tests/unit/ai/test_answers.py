"""What a model answers is used whole and checked, or not at all."""

import pytest

from docmill.ai.answers import accept
from docmill.model.ai import Answer, FinishReason
from docmill.model.ai_errors import OutputInvalid, OutputRefused, OutputTruncated
from docmill.model.errors import PermanentError

SCHEMA = {
    "type": "object",
    "required": ["total", "lines"],
    "additionalProperties": False,
    "properties": {
        "total": {"type": "number", "minimum": 0},
        "lines": {"type": "array", "items": {"type": "object", "required": ["text"]}},
    },
}


def accepted(text: str, finish: FinishReason = FinishReason.STOP, schema: dict[str, object] | None = SCHEMA) -> object:
    answer = Answer(text=text, input_tokens=1, output_tokens=1, finish=finish)
    return accept(answer, schema, model="scripted:m", max_tokens=8000)


def test_a_good_answer_comes_parsed() -> None:
    assert accepted('{"total": 3, "lines": []}') == {"total": 3, "lines": []}


def test_without_a_schema_any_text_will_do() -> None:
    assert accepted("{not json", schema=None) is None


@pytest.mark.parametrize("text", ['{"total": 3, "lines": []}', '{"total": 3, "lin'], ids=["whole", "cut"])
@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["schema", "text"])
def test_a_truncated_answer_is_never_accepted_even_if_it_parses(text: str, schema: dict[str, object] | None) -> None:
    with pytest.raises(OutputTruncated, match=r"8000 tokens.*raise_max_tokens_by"):
        accepted(text, FinishReason.LENGTH, schema)


def test_a_refusal_is_no_answer() -> None:
    with pytest.raises(OutputRefused):
        accepted("I would rather not.", FinishReason.REFUSED)


@pytest.mark.parametrize(
    ("text", "place", "rule"),
    [
        ('{"total": "3", "lines": []}', "$.total", "properties/total/type"),
        ('{"total": -1, "lines": []}', "$.total", "properties/total/minimum"),
        ('{"lines": []}', "$", "required"),
        ('{"total": 1, "lines": [{"text": ""}, {}]}', "$.lines[1]", "properties/lines/items/required"),
        ('{"total": 1, "lines": [], "more": 1}', "$", "additionalProperties"),
        ("[]", "$", "type"),
    ],
)
def test_a_violation_is_named_by_place_and_rule(text: str, place: str, rule: str) -> None:
    with pytest.raises(OutputInvalid) as caught:
        accepted(text)
    assert caught.value.code == "output_invalid"
    assert f" {place}: " in caught.value.message
    assert f"(rule {rule})" in caught.value.message


@pytest.mark.parametrize("text", ["", "total 3", '{"total": 3,', '```json\n{"total": 3, "lines": []}\n```', "NaN"])
def test_what_is_not_json_is_invalid(text: str) -> None:
    with pytest.raises(OutputInvalid, match="not JSON"):
        accepted(text)


@pytest.mark.parametrize(
    "schema", [{"type": "strin"}, {"$ref": "http://127.0.0.1:1/x"}, {"$ref": "#/$defs/none"}], ids=str
)
def test_a_schema_that_is_none_fails_for_good_and_nothing_is_fetched(schema: dict[str, object]) -> None:
    with pytest.raises(PermanentError, match="Correct the template"):
        accepted("{}", schema=schema)
