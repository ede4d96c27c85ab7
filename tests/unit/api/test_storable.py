"""What JSON can say and no database keeps is found wherever in a body it stands, and named."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from docmill.api.storable import DEEPEST, REMEDIES, check_storable


def told(body: object) -> list[tuple[tuple[int | str, ...], str]]:
    """What is wrong with a body, by place."""
    try:
        check_storable(body)
    except ValidationError as error:
        return [(each["loc"], each["type"]) for each in error.errors()]
    return []


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize(
    "body",
    [
        None,
        "text",
        {"a": [1, 1.5, True, None, "ä", "\U0001f600", "\\u0000"]},
        {"least": -(2**63), "most": 2**64 - 1},
        nested(DEEPEST),
    ],
)
def test_what_can_be_stored_passes(body: object) -> None:
    assert told(body) == []


@pytest.mark.parametrize(
    ("body", "place", "kind"),
    [
        ({"a": "x\0"}, ("a",), "text_with_nul"),
        ({"a": ["x", {"b": "\ud800"}]}, ("a", 1, "b"), "text_not_whole"),
        ({"a": "\udc00\ud800"}, ("a",), "text_not_whole"),
        ({"a": {"n\0": 1}}, ("a", "n\\x00"), "text_with_nul"),
        ({"\ud800": 1}, ("\\ud800",), "text_not_whole"),
        ({"a": float("nan")}, ("a",), "number_not_finite"),
        ({"a": [float("-inf")]}, ("a", 0), "number_not_finite"),
        ({"a": 2**64}, ("a",), "number_too_large"),
        ({"a": -(2**63) - 1}, ("a",), "number_too_large"),
    ],
)
def test_what_cannot_is_named_by_its_place(body: object, place: tuple[int | str, ...], kind: str) -> None:
    assert told(body) == [(place, kind)]
    assert REMEDIES[kind]


@pytest.mark.parametrize("levels", [DEEPEST + 1, 900])
def test_what_is_nested_too_deep_is_named_by_where_it_begins(levels: int) -> None:
    ((place, kind),) = told({"a": nested(levels)})
    assert kind == "nested_too_deep"
    assert place[:2] == ("a", 0)
    assert len(place) == 10


def test_everything_that_is_wrong_is_told_at_once_but_not_without_end() -> None:
    assert told({"a": "\0", "b": ["\0", 1], "c": 1}) == [(("a",), "text_with_nul"), (("b", 0), "text_with_nul")]
    assert len(told({"a": ["\0"] * 1000})) == 20


def test_among_millions_it_is_told_that_something_is_wrong() -> None:
    assert told({"a": [1] * 200_000 + ["\0"]}) == [((), "not_storable")]
