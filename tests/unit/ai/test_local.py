"""The local model: the same answer every time, from the words of the prompt, and always as the schema wants it."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.ai.answers import accept
from docmill.ai.local import local
from docmill.model.ai import ModelCall
from docmill.model.ai_errors import ModelUnknown

INVOICE = """Read this invoice.
Invoice number: INV-7
Vendor = ACME, Ltd
TOTAL: EUR 1,234.50 due
Paid: yes
tags: office; paper
{
  "due_date": "2026-12-01",
  "items": 3
}
All amounts in usd."""


def ask(prompt: str, schema: dict[str, Any] | None = None, model: str = "echo") -> Any:
    call = ModelCall(
        model=model,
        prompt=prompt,
        instructions="",
        attachments=(),
        output_schema=schema,
        max_tokens=5,
        temperature=None,
        timeout=1.0,
        options={},
    )
    answer = asyncio.run(local(call))
    assert answer == asyncio.run(local(call))
    return answer.text if schema is None else accept(answer, schema, model="local:echo", max_tokens=5)


def properties(**schemas: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": schemas, "required": list(schemas)}


def test_without_a_schema_it_echoes() -> None:
    assert ask("  hello there \n") == "hello there"


def test_labelled_values_are_read_by_their_types() -> None:
    schema = properties(
        invoice_number={"type": "string"},
        vendor={"type": "string"},
        total={"type": "number"},
        paid={"type": "boolean"},
        tags={"type": "array", "items": {"type": "string"}},
        dueDate={"type": "string", "format": "date"},
        items={"type": "integer"},
        currency={"enum": ["EUR-old", "USD"]},
    )
    assert ask(INVOICE, schema) == {
        "invoice_number": "INV-7",
        "vendor": "ACME, Ltd",
        "total": 1234.5,
        "paid": True,
        "tags": ["office", "paper"],
        "dueDate": "2026-12-01",
        "items": 3,
        "currency": "USD",
    }


def test_a_label_without_a_value_does_not_take_the_next_line_for_one() -> None:
    schema = {"type": "object", "properties": {"goods": {"type": "string"}, "weight": {"type": "integer"}}}
    assert ask("goods:\nweight: 12", schema) == {"weight": 12}


def test_what_is_not_there_is_left_out_or_as_small_as_may_be() -> None:
    schema = properties(
        text={"type": "string", "minLength": 2},
        count={"type": "integer", "minimum": 5},
        below={"type": "number", "exclusiveMaximum": 0},
        maybe={"type": ["string", "null"]},
        either={"anyOf": [{"type": "null"}, {"type": "string"}]},
        kind={"enum": ["a1", "b2"]},
        chosen={"type": "string", "default": "standard"},
        fixed={"const": 7},
        when={"type": "string", "format": "date"},
        parts={"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/part"}},
    )
    schema["$defs"] = {"part": properties(size={"type": "integer"})}
    schema["properties"]["left_out"] = {"type": "string"}
    assert ask("nothing of use", schema) == {
        "text": "--",
        "count": 5,
        "below": -1,
        "maybe": None,
        "either": None,
        "kind": "a1",
        "chosen": "standard",
        "fixed": 7,
        "when": "1970-01-01",
        "parts": [{"size": 0}, {"size": 0}],
    }


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    assert ask("x", {"type": "object", "properties": {"next": {"$ref": "#"}}}) == {}


def test_other_local_models_are_not_known() -> None:
    with pytest.raises(ModelUnknown, match="local:echo"):
        ask("x", model="gpt")


SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 3},
        {"type": "number", "maximum": -2},
        {"type": "boolean"},
        {"type": ["null", "integer"]},
        {"enum": ["x", "y", 3]},
        {"const": "k"},
    ]
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: (
        st.dictionaries(st.sampled_from(["total", "vendor", "a", "b"]), inner, max_size=3).map(
            lambda p: properties(**p)
        )
        | inner.map(lambda item: {"type": "array", "items": item, "minItems": 1})
    ),
    max_leaves=8,
)


@given(schema=st.dictionaries(st.sampled_from(["total", "vendor", "z"]), SCHEMAS, max_size=3), prompt=st.text())
def test_whatever_the_text_the_answer_satisfies_a_plain_schema(schema: dict[str, Any], prompt: str) -> None:
    assert isinstance(ask(prompt, properties(**schema)), dict), "checked against the schema on its way"
