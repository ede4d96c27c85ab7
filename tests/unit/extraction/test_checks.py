"""Checks: each value against its field, the values against one another, and silence where a value is missing."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmill.extraction.checks import OF_FIELDS, check
from docmill.extraction.result import Check, Extraction, FieldValue, Reader
from docmill.extraction.schema import FieldSchema, load_schema
from docmill.extraction.schema_text import parse_schema

INVOICE = load_schema("invoice")


def value(text: str) -> FieldValue:
    return FieldValue(value=text, raw=text, confidence=0.9)


def extracted(schema: FieldSchema, fields: Mapping[str, str], **rows: list[dict[str, str]]) -> Extraction:
    """What a reader might have found."""
    return Extraction(
        schema=schema.name,
        schema_version=schema.version,
        reader=Reader.LOCAL,
        document_type="invoice",
        fields={name: value(text) for name, text in fields.items()},
        rows={name: [{key: value(cell) for key, cell in row.items()} for row in table] for name, table in rows.items()},
    )


def outcome(name: str, fields: Mapping[str, str], **rows: list[dict[str, str]]) -> bool | None:
    """Whether a rule of the invoice schema passed, failed or was not looked at."""
    checked = check(extracted(INVOICE, fields, **rows), INVOICE)
    return next((one.passed for one in checked.checks if one.name == name), None)


@pytest.mark.parametrize(
    ("name", "fields", "passed"),
    [
        ("total_adds_up", {"subtotal": "100.00", "tax": "19.00", "total": "119.00"}, True),
        ("total_adds_up", {"subtotal": "100.00", "tax": "19.00", "total": "119.02"}, True),
        ("total_adds_up", {"subtotal": "100.00", "tax": "19.00", "total": "119.03"}, False),
        ("total_adds_up", {"subtotal": "-100.00", "tax": "-19.00", "total": "-119.00"}, True),
        ("total_adds_up", {"subtotal": "100.00", "total": "119.00"}, None),
        ("total_adds_up", {"subtotal": "100.00", "tax": "19.00", "withheld": "15.00", "total": "104.00"}, True),
        (
            "total_adds_up",
            {"subtotal": "100.00", "tax": "9.00", "allowances": "10", "charges": "4", "total": "103"},
            True,
        ),
        ("due_adds_up", {"total": "119.00", "amount_due": "119.00"}, True),
        ("due_adds_up", {"total": "119.00", "prepaid": "19.00", "amount_due": "100.00"}, True),
        ("due_adds_up", {"total": "119.00", "amount_due": "100.00"}, False),
        ("due_after_issue", {"issue_date": "2026-01-02", "due_date": "2026-01-02"}, True),
        ("due_after_issue", {"issue_date": "2026-01-02", "due_date": "2026-01-01"}, False),
        ("due_after_issue", {"issue_date": "2026-01-02"}, None),
        ("due_after_issue", {"issue_date": "2026-01-02", "due_date": "soon"}, None),
        ("tax_below_total", {"tax": "-19.00", "total": "-119.00"}, True),
        ("tax_below_total", {"tax": "190.00", "total": "119.00"}, False),
    ],
)
def test_a_rule_passes_fails_or_says_nothing(name: str, fields: dict[str, str], passed: bool | None) -> None:
    assert outcome(name, fields) is passed


@pytest.mark.parametrize(
    ("tax", "total", "passed"),
    [("6.00", "106.00", True), ("-6.00", "-106.00", True), ("106.00", "106.00", False), ("0.00", "0.00", True)],
)
def test_a_tax_of_a_receipt_that_is_the_total_fails(tax: str, total: str, passed: bool) -> None:
    schema = load_schema("receipt")
    checked = check(extracted(schema, {"tax": tax, "total": total}), schema)
    assert [one.passed for one in checked.checks if one.name == "tax_below_total"] == [passed]


def test_lines_add_up_to_the_total_without_tax_or_with_it() -> None:
    lines = [{"amount": "60.00"}, {"amount": "40.00"}]
    assert outcome("lines_add_up", {"subtotal": "100.00", "total": "119.00"}, line_items=lines) is True
    assert outcome("lines_add_up", {"subtotal": "84.03", "total": "100.00"}, line_items=lines) is True
    assert (
        outcome("lines_add_up", {"subtotal": "90.00", "total": "95.00", "allowances": "10.00"}, line_items=lines)
        is True
    )
    assert outcome("lines_add_up", {"subtotal": "90.00", "total": "95.00"}, line_items=lines) is False


def test_a_row_that_was_not_read_whole_makes_a_sum_unknown() -> None:
    lines = [{"amount": "60.00"}, {"description": "something"}]
    assert outcome("lines_add_up", {"subtotal": "90.00", "total": "95.00"}, line_items=lines) is None
    assert outcome("lines_add_up", {"subtotal": "90.00", "total": "95.00"}, line_items=[]) is None


@pytest.mark.parametrize(
    ("name", "fields", "lines", "lacking"),
    [
        ("total_adds_up", {"subtotal": "100.00", "total": "119.00"}, [], ("tax",)),
        ("due_after_issue", {"issue_date": "2026-01-02", "due_date": "soon"}, [], ("due_date",)),
        ("due_adds_up", {}, [], ("amount_due", "total")),
        ("lines_add_up", {"subtotal": "90.00", "total": "95.00"}, [{"description": "something"}], ("line_items",)),
    ],
)
def test_a_rule_that_could_not_be_looked_at_says_what_it_lacks(
    name: str, fields: dict[str, str], lines: list[dict[str, str]], lacking: tuple[str, ...]
) -> None:
    """What may lack (prepaid, rounding) is no reason."""
    checked = check(extracted(INVOICE, fields, line_items=lines), INVOICE)
    (told,) = [one for one in checked.unchecked if one.name == name]
    assert sorted(told.fields) == sorted(lacking)
    titles = [(INVOICE.fields.get(name) or INVOICE.tables[name]).title for name in lacking]
    assert all(title in told.message for title in titles)
    assert not [one for one in checked.checks if one.name == name]
    assert Extraction.from_json(checked.as_json()) == checked


@pytest.mark.parametrize(
    ("rule", "fields", "message"),
    [
        ("coalesce(a, b) == c", {"c": "1"}, "Not found or not readable: The a, The b."),
        ("coalesce(a, b) == c", {"b": "1"}, "Not found or not readable: The c."),
        ("coalesce(a, 0) + a == c", {"c": "1"}, "Not found or not readable: The a."),
        ("coalesce(a, 0) + b == c", {"c": "1"}, "Not found or not readable: The b."),
        ("a is null or b == c", {"a": "1", "b": "1"}, "Not found or not readable: The c."),
        ("a == b or a == c", {"a": "1", "b": "2"}, "Not found or not readable: The c."),
        ("a / b == c", {"a": "1", "b": "0", "c": "1"}, "Cannot be computed with the values found."),
        ("sum(t.x) == a", {"a": "3"}, "Not found or not readable: The rows (The x)."),
        ("sum(t.y) == a", {}, "Not found or not readable: The a."),
    ],
)
def test_what_lacks_is_what_the_unknown_parts_of_a_rule_need(rule: str, fields: dict[str, str], message: str) -> None:
    named = "".join(f"  {name}: {{type: amount, title: The {name}}}\n" for name in "abc")
    table = "  t: {title: The rows, columns: {x: {type: amount, title: The x}, y: {type: amount}}}\n"
    schema = parse_schema(f"name: own\nfields:\n{named}tables:\n{table}rules: {{r: {{holds: '{rule}'}}}}\n")
    checked = check(extracted(schema, fields, t=[{"x": "1", "y": "1"}, {"y": "2"}]), schema)
    assert [one.message for one in checked.unchecked] == [message]


def test_every_rule_is_either_checked_or_unchecked() -> None:
    whole = {"subtotal": "100.00", "tax": "19.00", "total": "119.00"}
    for fields in ({}, {"total": "119.00"}, whole):
        checked = check(extracted(INVOICE, fields), INVOICE)
        told = [one.name for one in checked.checks if one.name not in OF_FIELDS]
        told += [one.name for one in checked.unchecked]
        assert sorted(told) == sorted(rule.name for rule in INVOICE.rules)
    found = checked.as_json()
    del found["unchecked"]
    assert Extraction.from_json(found).unchecked == ()


def test_each_value_learns_what_it_passed_and_failed() -> None:
    checked = check(extracted(INVOICE, {"subtotal": "100.00", "tax": "19.00", "total": "120.00"}), INVOICE)
    assert checked.fields["total"].failed == ("total_adds_up",)
    assert "tax_below_total" in checked.fields["tax"].passed
    (told,) = [one for one in checked.checks if one.name == "total_adds_up"]
    assert told.message == (
        "The total is the total without tax plus the tax. Here: subtotal + tax = 119.00, total = 120.00, "
        "subtotal - allowances + charges + tax - withheld = 119.00."
    )


def test_what_is_required_and_missing_is_told() -> None:
    checked = check(extracted(INVOICE, {"total": "1.00", "currency": "EUR"}), INVOICE)
    missing = {one.fields[0] for one in checked.checks if one.name == "required"}
    assert missing == {"invoice_number", "issue_date", "seller_name"}


@pytest.mark.parametrize(
    ("field", "good", "bad", "name"),
    [
        ("code: {type: identifier, pattern: 'A-[0-9]+'}", "A-12", "A-12x", "pattern"),
        ("code: {type: enum, enum: [red, blue]}", "red", "green", "enum"),
        ("code: {type: number, minimum: 1, maximum: 5}", "5", "5.1", "range"),
        ("code: date", "2026-02-28", "2026-02-30", "type"),
        ("code: iban", "DE89370400440532013000", "DE89370400440532013001", "type"),
        ("code: currency", "EUR", "XXQ", "type"),
        ("code: count", "3", "3.5", "type"),
        ("code: time", "23:59:00", "24:00:00", "type"),
    ],
)
def test_a_value_is_held_against_its_field(field: str, good: str, bad: str, name: str) -> None:
    schema = parse_schema("fields:\n  " + field)
    assert not check(extracted(schema, {"code": good}), schema).fields["code"].failed
    checked = check(extracted(schema, {"code": bad}), schema)
    assert name in checked.fields["code"].failed
    assert any(one.name == name and not one.passed and bad in one.message for one in checked.checks)


def test_a_pattern_made_to_backtrack_is_matched_in_linear_time() -> None:
    # An engine that backtracks would not come to an end.
    schema = parse_schema("fields:\n  code: {type: text, pattern: '(a+)+$'}")
    checked = check(extracted(schema, {"code": "a" * 50_000 + "!"}), schema)
    assert "pattern" in checked.fields["code"].failed


def test_a_corrected_value_is_judged_afresh_and_other_checks_stay() -> None:
    extraction = extracted(INVOICE, {"subtotal": "100.00", "tax": "19.00", "total": "120.00"})
    extraction = Extraction(
        **{
            **{name: getattr(extraction, name) for name in extraction.__dataclass_fields__},
            "checks": (Check(name="page_agrees", passed=True, message="as printed", fields=("total",)),),
        }
    )
    once = check(extraction, INVOICE)
    again = check(once, INVOICE)
    assert again == once
    assert "page_agrees" in [one.name for one in again.checks]


def test_the_tolerance_can_be_set_from_outside() -> None:
    extraction = extracted(INVOICE, {"subtotal": "100.00", "tax": "19.00", "total": "119.40"})
    assert "total_adds_up" in check(extraction, INVOICE).fields["total"].failed
    assert "total_adds_up" in check(extraction, INVOICE, tolerance=Decimal("0.5")).fields["total"].passed


def test_cells_are_checked_by_their_columns() -> None:
    checked = check(extracted(INVOICE, {}, tax_lines=[{"rate": "190", "amount": "1.00"}]), INVOICE)
    assert checked.rows["tax_lines"][0]["rate"].failed == ("range",)


def test_the_cells_of_a_column_whose_sum_breaks_a_rule_are_told_so_until_it_holds() -> None:
    lines = [{"description": "Work", "amount": "60.00"}, {"description": "Travel", "amount": "20.00"}]
    fields = {"subtotal": "90.00", "total": "95.00"}
    checked = check(extracted(INVOICE, fields, line_items=lines), INVOICE)
    assert [row["amount"].failed for row in checked.rows["line_items"]] == [("lines_add_up",)] * 2
    assert [row["description"].failed for row in checked.rows["line_items"]] == [()] * 2
    corrected = replace(checked, fields={"subtotal": replace(checked.fields["subtotal"], value="80.00")})
    assert [row["amount"].failed for row in check(corrected, INVOICE).rows["line_items"]] == [()] * 2


CENTS = st.integers(min_value=-10_000_000, max_value=10_000_000).map(lambda cents: Decimal(cents) / 100)


@settings(max_examples=60)
@given(subtotal=CENTS, tax=CENTS, away=st.integers(min_value=-5, max_value=5))
def test_money_is_compared_exactly_to_the_cent(subtotal: Decimal, tax: Decimal, away: int) -> None:
    total = subtotal + tax + Decimal(away) / 100
    fields = {"subtotal": f"{subtotal:.2f}", "tax": f"{tax:.2f}", "total": f"{total:.2f}"}
    assert outcome("total_adds_up", fields) is (abs(away) <= 2)


@pytest.mark.parametrize(
    ("rule", "passed"),
    [
        ("delivered - ordered <= 30", True),
        ("ordered + 30 >= delivered", True),
        ("delivered > '2026-01-20'", False),
        ("kind in ['a', 'B']", True),
        ("not (kind == 'c') and price > 1", True),
        ("price / 0 == 1", None),
        ("missing is null", True),
        ("missing == 1 or price == 2.5", True),
        ("missing == 1 and price == 2.5", None),
        ("count(lines) == 2", True),
        ("max(price, 9) == 9", True),
        ("round(price * 3, 1) == 7.5", True),
    ],
)
def test_the_language_of_rules_knows_days_words_and_what_is_missing(rule: str, passed: bool | None) -> None:
    schema = parse_schema(
        "fields: {ordered: date, delivered: date, kind: text, price: amount, missing: number}\n"
        f'tables: {{lines: {{columns: {{a: text}}}}}}\nrules:\n  rule: {{holds: "{rule}", tolerance: 0}}'
    )
    found = extracted(
        schema,
        {"ordered": "2026-01-01", "delivered": "2026-01-15", "kind": "b", "price": "2.50"},
        lines=[{"a": "x"}, {"a": "y"}],
    )
    assert next((one.passed for one in check(found, schema).checks if one.name == "rule"), None) is passed
