"""What the settings ask of fields and rules goes over what their schemas ask; what cannot be asked is named."""

from decimal import Decimal

import pytest

from docmill.extraction.overrides import FieldOverride, Overrides, OverridesInvalid, apply_overrides, faults_for
from docmill.extraction.schema import load_schema

INVOICE = load_schema("invoice")


def asked(**fields: FieldOverride) -> Overrides:
    return Overrides(fields={"invoice": {name.replace("__", "."): field for name, field in fields.items()}})


def test_a_schema_that_nothing_is_asked_of_stays_itself() -> None:
    assert apply_overrides(INVOICE, None) is INVOICE
    assert apply_overrides(INVOICE, Overrides()) is INVOICE
    assert apply_overrides(INVOICE, Overrides(fields={"receipt": {"total": FieldOverride(threshold=0.5)}})) is INVOICE


def test_fields_columns_and_tables_are_changed() -> None:
    changed = apply_overrides(
        INVOICE,
        asked(
            total=FieldOverride(threshold=0.99, minimum=Decimal(0)),
            currency=FieldOverride(enum=("EUR",), required=False),
            invoice_number=FieldOverride(pattern="[A-Z]+-[0-9]+"),
            line_items=FieldOverride(required=True),
            line_items__amount=FieldOverride(maximum=Decimal(100)),
        ),
    )
    assert (changed.fields["total"].threshold, changed.fields["total"].minimum) == (0.99, Decimal(0))
    assert changed.fields["total"].required
    assert changed.fields["currency"].enum == ("EUR",)
    assert "currency" not in changed.required
    assert "line_items" in changed.required
    assert changed.tables["line_items"].columns["amount"].maximum == 100
    assert changed.version != INVOICE.version


def test_rules_are_switched_off_for_all_schemas_or_for_one() -> None:
    receipt = load_schema("receipt")
    overrides = Overrides(rules={"lines_add_up": False, "receipt.lines_add_up": True}, tolerance=Decimal("0.5"))
    names = {rule.name for rule in apply_overrides(INVOICE, overrides).rules}
    assert "lines_add_up" not in names
    assert "total_adds_up" in names
    changed = apply_overrides(receipt, overrides)
    assert "lines_add_up" in {rule.name for rule in changed.rules}
    assert changed.tolerance == Decimal("0.5")


def test_asking_twice_is_asking_once() -> None:
    overrides = Overrides(
        fields={"invoice": {"total": FieldOverride(threshold=0.1)}}, rules={"invoice.lines_add_up": False}
    )
    once = apply_overrides(INVOICE, overrides)
    assert apply_overrides(once, overrides) is once


def test_other_demands_are_another_version_and_the_same_ones_the_same() -> None:
    versions = [
        apply_overrides(INVOICE, asked(total=FieldOverride(threshold=part))).version for part in (0.5, 0.6, 0.5)
    ]
    assert versions[0] == versions[2] != versions[1]


MISTAKES = {
    "fields.invoice.totel: there is no such field. Did you mean total?": asked(totel=FieldOverride(required=True)),
    "fields.invoice.total.pattern: '(' is not a pattern of RE2": asked(total=FieldOverride(pattern="(")),
    "fields.invoice.seller_name: minimum and maximum are for numbers": asked(
        seller_name=FieldOverride(minimum=Decimal(1))
    ),
    "fields.invoice.line_items.pattern: a table has none": asked(line_items=FieldOverride(pattern="x")),
    "fields.invoice.currency.enum: it lists nothing": asked(currency=FieldOverride(enum=())),
}


@pytest.mark.parametrize("told", MISTAKES)
def test_what_cannot_be_asked_is_named(told: str) -> None:
    (fault,) = faults_for(INVOICE, MISTAKES[told])
    assert fault.startswith(told)
    with pytest.raises(OverridesInvalid, match="do not fit the schema 'invoice'"):
        apply_overrides(INVOICE, MISTAKES[told])
