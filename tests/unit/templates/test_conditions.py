"""What conditions mean: one table per rule of docs/reference/templates.md."""

from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from uuid import UUID

import pytest

from docmill.model.errors import PermanentError
from docmill.templates.conditions import ConditionError, parse

SCOPE = {
    "entity": {
        "type": "invoice",
        "total": 120.5,
        "count": 3,
        "paid": False,
        "flag": True,
        "vendor": None,
        "name": "  Acme GmbH ",
        "lines": [{"amount": 1}, {"amount": 2}],
        "tags": ["a", "b", None],
        "empty": [],
        "odd key": "x",
        "in": 7,
        "price": Decimal("0.1"),
        "due": date(2026, 1, 31),
        "at": datetime(2026, 1, 31, 8, tzinfo=UTC),
        "id": UUID(int=1),
        "frozen": MappingProxyType({"k": (1, 2)}),
        "blob": b"bytes",
    },
    "results": {"ocr": {"pages": 2, "text": "Total 120"}},
    "metadata": {"via": "email"},
    "result": {"kind": "receipt"},
}


def value(text: str) -> object:
    return parse(text).evaluate(SCOPE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("null", None),
        ("true", True),
        ("false", False),
        ("42", 42),
        ("1.5", 1.5),
        ("2e3", 2000.0),
        ("-3", -3),
        ("- -3", 3),
        ("'it\\'s'", "it's"),
        ('"say \\"hi\\"\\n\\\\"', 'say "hi"\n\\'),
        ("[1, 'a', entity.count]", [1, "a", 3]),
        ("[]", []),
        ("(1)", 1),
    ],
)
def test_literals(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("entity.type", "invoice"),
        ("entity.lines[0].amount", 1),
        ("entity.lines[-1].amount", 2),
        ("entity.lines[entity.count - 2].amount", 2),
        ("entity['odd key']", "x"),
        ("entity.in", 7),
        ("results.ocr.pages", 2),
        ("metadata.via", "email"),
        ("result.kind", "receipt"),
        ("entity.frozen.k[1]", 2),
        ("entity.price", 0.1),
        ("entity.due", "2026-01-31"),
        ("entity.at", "2026-01-31T08:00:00+00:00"),
        ("entity.id", "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_paths_reach_keys_and_elements(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "entity.nothing",
        "entity.nothing.deeper[3].still",
        "entity.lines[9]",
        "entity.lines[-3]",
        "entity.lines['0']",
        "entity.lines[true]",
        "entity.lines[0.0]",
        "entity.type.upper",
        "entity.type[0]",
        "entity[0]",
        "entity.__class__",
        "entity.__class__.__mro__",
        "entity.type.__class__",
        "entity.blob.decode",
        "results.nobody.x",
    ],
)
def test_whatever_is_not_a_key_is_null_and_no_attribute_is_ever_reached(text: str) -> None:
    assert value(text) is None


def test_a_root_that_was_not_given_is_null() -> None:
    assert parse("entity.total").evaluate({}) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("entity.type == 'invoice'", True),
        ("entity.type != 'invoice'", False),
        ("entity.total > 100", True),
        ("entity.total >= 120.5", True),
        ("entity.total < 100", False),
        ("entity.count <= 3", True),
        ("entity.count == 3.0", True),
        ("entity.price == 0.1", True),
        ("'a' < 'b'", True),
        ("entity.due < '2026-02-01'", True),
        ("1 == '1'", False),
        ("1 != '1'", True),
        ("true == 1", False),
        ("[1, [2]] == [1, [2.0]]", True),
        ("[1] == [1, 2]", False),
        ("entity.lines[0] == entity.lines[1]", False),
        ("entity.lines == entity.lines", True),
        ("entity.blob == entity.blob", True),
        ("entity.vendor == null", True),
        ("entity.type == null", False),
        ("entity.vendor is null", True),
        ("entity.type is null", False),
        ("entity.type is not null", True),
        ("entity.nothing != 5", True),
        ("entity.nothing > 5", False),
        ("entity.nothing < 5", False),
        ("5 <= entity.nothing", False),
        ("null >= null", False),
    ],
)
def test_comparisons(text: str, expected: bool) -> None:
    assert value(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("entity.type in ['invoice', 'receipt']", True),
        ("entity.type not in ['invoice', 'receipt']", False),
        ("'voice' in entity.type", True),
        ("'total' in entity", True),
        ("'nothing' in entity", False),
        ("5 in entity", False),
        ("null in entity.tags", True),
        ("null in entity.empty", False),
        ("null in 'text'", False),
        ("1 in [true]", False),
        ("'x' in entity.vendor", False),
        ("'x' not in entity.vendor", True),
        ("2 in entity.frozen.k", True),
    ],
)
def test_membership(text: str, expected: bool) -> None:
    assert value(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true and false", False),
        ("true or false", True),
        ("not true", False),
        ("not not true", True),
        ("false and false or true", True),
        ("true or true and false", True),
        ("not false and false", False),
        ("not entity.type == 'x'", True),
        ("entity.flag and not entity.paid", True),
        ("entity.vendor or entity.type", True),
        ("not entity.empty", True),
        ("not 0", True),
        ("not ''", True),
        ("'false' and 0.1", True),
        ("false and 1 / 0 > 1", False),
        ("true or 1 / 0 > 1", True),
    ],
)
def test_and_or_not_give_true_or_false_and_stop_early(text: str, expected: bool) -> None:
    assert value(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("8 / 4 / 2", 1.0),
        ("7 % 4", 3),
        ("-2 * 3", -6),
        ("entity.total * 2", 241.0),
        ("'a' + 'b'", "ab"),
        ("entity.nothing + 1", None),
        ("1 / entity.nothing", None),
        ("-entity.nothing", None),
    ],
)
def test_arithmetic(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("len('abc')", 3),
        ("len(entity.lines)", 2),
        ("len(entity.frozen)", 1),
        ("len(entity.nothing)", 0),
        ("exists(entity.total)", True),
        ("exists(entity.vendor)", False),
        ("exists(entity.paid)", True),
        ("lower('ÄB')", "äb"),
        ("upper('ab')", "AB"),
        ("trim(entity.name)", "Acme GmbH"),
        ("lower(null)", None),
        ("number('12')", 12),
        ("number(' -1.50 ')", -1.5),
        ("number('1e3')", 1000.0),
        ("number('twelve')", None),
        ("number('nan')", None),
        ("number('1_000')", None),
        ("number('1e999')", None),
        ("number(entity.total)", 120.5),
        ("number(null)", None),
        ("text(5)", "5"),
        ("text(1.5)", "1.5"),
        ("text(true)", "true"),
        ("text('a')", "a"),
        ("text(null)", None),
        ("date('2026-01-31T23:00:00Z')", "2026-01-31"),
        ("date(entity.at) == entity.due", True),
        ("date('tomorrow')", None),
        ("date(null)", None),
        ("contains('abc', 'b')", True),
        ("contains(entity.tags, 'b')", True),
        ("contains(entity, 'type')", True),
        ("contains(null, 'b')", False),
        ("startswith(entity.type, 'inv')", True),
        ("endswith(entity.type, 'inv')", False),
        ("startswith(null, 'x')", False),
        ("abs(-2.5)", 2.5),
        ("abs(null)", None),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(2.675, 2)", 2.68),
        ("round(null)", None),
        ("min(3, 1, 2)", 1),
        ("max([3, 1, 2])", 3),
        ("max(entity.nothing, 1)", 1),
        ("min([])", None),
        ("min(null)", None),
    ],
)
def test_functions(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("entity.total > 'a'", "number > text"),
        ("entity.paid < entity.flag", "true/false < true/false"),
        ("entity.lines > 1", "list > number"),
        ("entity.type + 1", "text + number"),
        ("'a' * 3", "text * number"),
        ("[1] * 3", "list * number"),
        ("[1] + [2]", "list + list"),
        ("true + 1", "true/false + number"),
        ("-entity.type", "number - text"),
        ("1 / 0", "division by zero"),
        ("1 % 0.0", "division by zero"),
        ("5 in 'abc'", "only text can be in text"),
        ("5 in 5", "'in' needs a list"),
        ("len(5)", "not number"),
        ("len(entity.blob)", "unsupported value (bytes)"),
        ("lower(5)", "lower() takes text"),
        ("number([1])", "number() takes text"),
        ("text([1])", "text() takes a number"),
        ("abs('a')", "abs() takes a number"),
        ("round(1, 99)", "0 to 10 digits"),
        ("round(1, 1.5)", "0 to 10 digits"),
        ("min('a')", "takes a list"),
        ("max(1, 'a')", "max() takes a number"),
        ("startswith(1, 'a')", "startswith() takes text"),
    ],
)
def test_values_that_do_not_fit_are_named_with_the_expression(text: str, says: str) -> None:
    with pytest.raises(ConditionError) as refused:
        value(text)
    assert says in refused.value.message
    assert f"`{text}`" in refused.value.message
    assert (refused.value.code, refused.value.expression) == ("condition_error", text)
    assert isinstance(refused.value, PermanentError), "another attempt computes the same"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("entity.flag", True), ("entity.vendor", False), ("entity.total", True), ("entity.empty", False), ("''", False)],
)
def test_a_condition_holds_unless_null_false_zero_or_empty(text: str, expected: bool) -> None:
    assert parse(text).holds(SCOPE) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exists(metadata.model)", True),
        ("exists(metadata.model) and results.ocr.pages > 1", True),
        ("exists(metadata.via)", False),
        ("results.ocr.pages > 1 and exists(metadata.model)", False),
        ("exists(metadata.model) or exists(results.ocr)", False),
        ("exists(metadata.via) and not exists(results.ocr)", False),
        ("metadata.via > 3", False),
        ("entity.flag", False),
    ],
)
def test_a_condition_that_what_is_known_rules_out_needs_nothing_else(text: str, expected: bool) -> None:
    assert parse(text).cannot_hold({"metadata": SCOPE["metadata"]}) is expected
