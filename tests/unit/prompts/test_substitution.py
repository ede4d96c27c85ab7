"""Variables are filled as the specification shows, with data that stays data, at a cost that stays bounded."""

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.prompts.substitution import LONGEST_RENDERED, PromptTooLong, blanks, render
from docmill.prompts.syntax import check
from docmill.prompts.values import DEEPEST

RATES = [
    {"id": "uuid-123", "label": "Standard", "description": "Standard VAT", "percentage": 20},
    {"id": "uuid-456", "label": "Reduced", "description": "Reduced VAT", "percentage": 5},
]
PROJECT = {
    "id": "proj-001",
    "title": "Summer Campaign",
    "status": "active",
    "created_at": "2024-01-01",
    "budget": 50000,
}


def filled(text: str, entity: Mapping[str, object] | None = None) -> str:
    assert not check(text)
    return render(text, entity=entity, entity_id="t-1", entity_type="transaction")


# The examples of the specification, to the letter.


def test_the_example_of_single_field_access() -> None:
    text = "Process transaction {!entity.transaction_code} from {!entity.submission_address}"
    entity = {"transaction_code": "TXN-001", "submission_address": "john@example.com"}
    assert filled(text, entity) == "Process transaction TXN-001 from john@example.com"


def test_nested_fields_are_accessed_by_dots() -> None:
    assert filled("{!entity.field}/{!entity.nested.field}", {"field": "a", "nested": {"field": "b"}}) == "a/b"


def test_the_example_of_array_formatting() -> None:
    text = "Tax rates: {!Array:entity.project.tax_scheme.tax_rates|id,label,description,percentage}"
    assert filled(text, {"project": {"tax_scheme": {"tax_rates": RATES}}}) == (
        "Tax rates: id: uuid-123, label: Standard, description: Standard VAT, percentage: 20, "
        "id: uuid-456, label: Reduced, description: Reduced VAT, percentage: 5"
    )


def test_the_example_of_object_field_extraction() -> None:
    text = "Project details: {!Object:entity.project|id,title,status}"
    assert filled(text, {"project": PROJECT}) == (
        "Project details: id: proj-001, title: Summer Campaign, status: active"
    )


def test_the_document_parsing_prompt() -> None:
    text = (
        "Analyze this document for the following:\n"
        "1. Document type classification\n"
        "2. Tax eligibility based on: {!entity.project.tax_scheme.rules}\n"
        "3. Submit any found codes from the document"
    )
    entity = {"project": {"tax_scheme": {"rules": "receipts over 10 EUR"}}}
    assert filled(text, entity).splitlines()[2] == "2. Tax eligibility based on: receipts over 10 EUR"


def test_the_ocr_extraction_prompt() -> None:
    text = (
        "Extract transaction details from this receipt.\n"
        "Valid tax rates for line items: "
        "{!Array:entity.project.tax_scheme.tax_rates|id,label,description,percentage}\n"
        "Please use the tax rate ID from the list above for each line item."
    )
    assert filled(text, {"project": {"tax_scheme": {"tax_rates": RATES[:1]}}}) == (
        "Extract transaction details from this receipt.\n"
        "Valid tax rates for line items: id: uuid-123, label: Standard, description: Standard VAT, percentage: 20\n"
        "Please use the tax rate ID from the list above for each line item."
    )


def test_the_project_matching_prompt() -> None:
    text = (
        "Match this transaction to the appropriate project.\n"
        "Available projects: {!Array:entity.available_projects|id,project_code,title}\n"
        "Current project context: {!Object:entity.project|id,title,type}"
    )
    entity = {
        "available_projects": [{"id": "p1", "project_code": "SC", "title": "Summer"}, {"id": "p2"}],
        "project": PROJECT,
    }
    assert filled(text, entity).splitlines()[1:] == [
        "Available projects: id: p1, project_code: SC, title: Summer, id: p2, project_code: , title: ",
        "Current project context: id: proj-001, title: Summer Campaign, type: ",
    ]


def test_the_variables_are_the_entity_its_id_and_its_type() -> None:
    assert filled("{!entityType} {!entityId}: {!entity.code}", {"code": "X"}) == "transaction t-1: X"


def test_the_variables_of_the_address_matching_prompt() -> None:
    entity = {"newAddress": {"street": "High St"}, "existingAddresses": [{"id": 1, "street": "Low St"}]}
    text = "{!Object:entity.newAddress|street} among {!Array:entity.existingAddresses|id,street}"
    assert filled(text, entity) == "street: High St among id: 1, street: Low St"


@pytest.mark.parametrize("entity", [None, {}, {"a": None}, {"a": "text"}, {"a": []}, {"a": {}}, {"a": 7}], ids=str)
def test_missing_or_null_values_resolve_to_empty_strings(entity: Mapping[str, object] | None) -> None:
    assert filled("<{!entity.a.b}{!entity.z}{!Array:entity.a|x}>", entity) == "<>"


@pytest.mark.parametrize("value", [None, "text", 7, [1], [{"x": 1}]], ids=str)
def test_an_object_that_is_none_has_no_fields(value: object) -> None:
    assert filled("<{!Object:entity.a|x}>", {"a": value}) == "<>"


# Values become text in one way.


class Colour(Enum):
    RED = "red"


class Size(StrEnum):
    BIG = "big"


class Loud(str):
    """Text with opinions about how it is shown."""

    def __str__(self) -> str:
        raise AssertionError("asked")


WORDS: list[tuple[object, str]] = [
    ("", ""),
    ("  as it is \n", "  as it is \n"),
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (-12, "-12"),
    (10**30, "1" + "0" * 30),
    (20.0, "20"),
    (0.1, "0.1"),
    (1e300, "1e+300"),
    (float("nan"), ""),
    (float("-inf"), ""),
    (10**5000, ""),
    (Decimal("19.90"), "19.90"),
    (Decimal("NaN"), ""),
    (date(2026, 1, 31), "2026-01-31"),
    (datetime(2026, 1, 31, 8, tzinfo=UTC), "2026-01-31T08:00:00+00:00"),
    (datetime(2026, 1, 31, 8, 0, 0, 5), "2026-01-31T08:00:00.000005"),
    (time(8, 30), "08:30:00"),
    (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (Colour.RED, "red"),
    (Size.BIG, "big"),
    (Loud("still text"), "still text"),
    ([], "[]"),
    ({}, "{}"),
    (("a", 1, None, True), '["a", 1, null, true]'),
    ({"k": {"n": [1.0, Decimal("2.50")]}, "d": date(2026, 1, 1)}, '{"k": {"n": [1, 2.50]}, "d": "2026-01-01"}'),
    ({1: "a", None: "b", Size.BIG: 'ü"\n'}, '{"1": "a", "": "b", "big": "ü\\"\\n"}'),
    (MappingProxyType({"a": 1}), '{"a": 1}'),
    (b"bytes", ""),
    (object(), ""),
    ({1, 2}, ""),
    ([object(), b""], "[null, null]"),
]


@pytest.mark.parametrize(
    ("value", "words"), WORDS, ids=[f"{type(value).__name__} {words[:20]}" for value, words in WORDS]
)
def test_all_values_are_converted_to_strings(value: object, words: str) -> None:
    assert filled("{!entity.v}", {"v": value}) == words
    assert filled("{!Object:entity|v}", {"v": value}) == f"v: {words}"


def test_keys_reach_into_lists_by_their_place() -> None:
    entity = {"rates": RATES, "by_number": {"0": "zero"}}
    assert filled("{!entity.rates.1.label} {!entity.by_number.0}", entity) == "Reduced zero"
    assert filled("<{!entity.rates.2}{!entity.rates.-1}{!entity.rates.²}{!entity.rates.length}>", entity) == "<>"


def test_fields_reach_further_down() -> None:
    entity = {"lines": [{"no": 1, "product": {"title": "Pen"}}]}
    assert filled("{!Array:entity.lines|no,product.title}", entity) == "no: 1, product.title: Pen"


def test_items_that_are_no_mappings_are_passed_over() -> None:
    assert filled("{!Array:entity.a|x}", {"a": [None, {"x": 1}, "text", [2], {"x": 3}]}) == "x: 1, x: 3"


def test_keys_may_be_any_words_and_blanks_around_them_do_not_count() -> None:
    entity = {"Rechnungs-Nr": "7", "net total": 3, "größe": [{"id": 1}], "cbc:ID": {"a,b": "x"}}
    assert filled("{! entity.Rechnungs-Nr } {!entity . net total} {!Array: entity.größe | id , no }", entity) == (
        "7 3 id: 1, no: "
    )
    assert filled("{!entity.cbc:ID.a,b} {!Object:entity|cbc:ID.a}", entity) == "x cbc:ID.a: "


def test_two_marks_in_a_row_stand_for_the_beginning_of_a_variable() -> None:
    assert filled("write {!!}entity.a} for {!entity.a}", {"a": 1}) == "write {!entity.a} for 1"


def test_what_an_entity_lacks_is_named() -> None:
    text = "{!entity.a} {!entity.b}\n{!Array:entity.c|x} {!entity.b}"
    missing = blanks(text, entity={"a": 1}, entity_id="1", entity_type="t")
    assert [(str(each), each.line, each.column) for each in missing] == [
        ("entity.b", 1, 13),
        ("Array:entity.c|x", 2, 1),
    ]


# Data stays data.


class Trap(Mapping[str, object]):
    """A mapping that notices whoever reads its attributes."""

    secret = "attribute"

    def __getitem__(self, key: str) -> object:
        raise KeyError(key)

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize(
    "path", ["__class__", "__class__.__name__", "secret", "get", "items", "a.__len__", "a.upper", "n.real", "l.append"]
)
def test_attributes_are_out_of_reach(path: str) -> None:
    for entity in ({"a": "text", "n": 1, "l": [1]}, Trap()):
        assert filled(f"<{{!entity.{path}}}{{!Object:entity.{path}|__doc__}}>", entity) == "<>"
    assert filled(f"{{!Object:entity.a|{path}}}", {"a": {}}) == f"{path}: "


def test_what_a_value_contains_is_not_filled_in_again() -> None:
    entity = {"a": "{!entity.b}", "b": "{!entityId}", "{!entity.b}": 1, "l": [{"x": "{!entity.b}"}]}
    assert filled("{!entity.a}{!Array:entity.l|x}", entity) == "{!entity.b}x: {!entity.b}"
    halves = {"open": "{!", "rest": "entity.secret}", "secret": "told"}
    assert filled("{!entity.open}{!entity.rest}", halves) == "{!entity.secret}"


def test_looking_up_a_missing_key_changes_nothing() -> None:
    entity: defaultdict[str, object] = defaultdict(dict)
    assert filled("<{!entity.a}>", entity) == "<>"
    assert not entity


# A hostile entity is bounded, not trusted.


def deep(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"d": value}
    return value


def test_a_deep_entity_ends_in_null() -> None:
    text = filled("{!entity}", deep(100_000))
    assert text.count("{") == DEEPEST
    value = json.loads(text)
    for _ in range(DEEPEST):
        assert value is not None
        value = value["d"]
    assert value is None


def test_an_entity_that_contains_itself_ends() -> None:
    entity: dict[str, object] = {}
    entity["me"] = entity
    assert filled("{!entity.me.me.me}", entity).count("me") == DEEPEST
    entity["again"] = [entity, entity]
    with pytest.raises(PromptTooLong, match="name the fields it needs"):
        filled("{!entity}", entity)


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("{!entity.a}", {"a": "x" * LONGEST_RENDERED}),
        ("{!entity.a}" * 10_000, {"a": "x" * 1000}),
        ("".join(f"{{!Array:entity.a|x{n}}}" for n in range(5000)), {"a": [0] * 1_000_000}),
        ("{!Array:entity.a|x}", {"a": [{}] * 1_000_000}),
        (f"{{!Array:entity.a|{'.'.join('d' * 50_000)}}}", {"a": [deep(60_000)] * 1000}),
    ],
    ids=["long text", "often", "items without a word", "items without the field", "deep fields"],
)
def test_work_is_bounded_by_the_longest_prompt(text: str, entity: dict[str, object]) -> None:
    with pytest.raises(PromptTooLong) as refused:
        filled(text, entity)
    assert refused.value.code == "prompt_too_long"


def test_a_prompt_of_a_million_characters_is_rendered() -> None:
    entity = {"pages": [{"text": "x" * 1000}] * 1000}
    assert len(filled("{!Array:entity.pages|text}", entity)) == 1000 * 1006 + 999 * 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)
PIECES = st.sampled_from(
    ["{!", "}", "entity", ".", "a", "|", ",", "Array:", "Object:", "entityId", "!", " ", "\n", "{", "0", "__class__"]
)
TEXTS = st.lists(PIECES | st.text(max_size=3), max_size=15).map("".join)


@given(TEXTS, st.none() | st.dictionaries(st.sampled_from(["a", "0", "b"]), JSON, max_size=3))
def test_whatever_the_text_and_the_entity_rendering_raises_nothing(text: str, entity: dict[str, object] | None) -> None:
    assert isinstance(render(text, entity=entity, entity_id="1", entity_type="t"), str)
    assert isinstance(blanks(text, entity=entity, entity_id="1", entity_type="t"), tuple)


@given(st.text().filter(lambda text: "{!" not in text), JSON)
def test_text_without_variables_is_left_as_it_is(text: str, value: object) -> None:
    assert render(text, entity={"a": value}, entity_id="1", entity_type="t") == text


@given(JSON)
def test_nested_values_are_json(value: object) -> None:
    text = render("{!entity.v}", entity={"v": [value]}, entity_id="1", entity_type="t")

    def expected(value: object) -> object:
        match value:
            case float() if value != value or value in (float("inf"), float("-inf")):
                return None
            case list():
                return [expected(entry) for entry in value]
            case dict():
                return {key: expected(entry) for key, entry in value.items()}
            case _:
                return value

    assert json.loads(text) == [expected(value)]


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_value_is_put_in_letter_by_letter(value: str, around: str) -> None:
    around = around.replace("{", "(").replace("}", ")")
    text = f"{around}{{!entity.v}}{around}"
    assert render(text, entity={"v": value}, entity_id="1", entity_type="t") == f"{around}{value}{around}"
