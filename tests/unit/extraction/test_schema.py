"""A field schema is YAML that is checked before it is used; every fault has a place and a remedy."""

from decimal import Decimal
from pathlib import Path

import pytest

from docmill.extraction.schema import available, load_schema, shipped
from docmill.extraction.schema_text import SchemaInvalid, parse_schema
from docmill.extraction.values import FieldType
from docmill.model.errors import NotFound

INVOICE = [
    "invoice_number",
    "issue_date",
    "due_date",
    "delivery_date",
    "currency",
    "seller_name",
    "seller_address",
    "seller_tax_id",
    "buyer_name",
    "buyer_address",
    "buyer_tax_id",
    "order_number",
    "subtotal",
    "tax",
    "total",
    "amount_due",
    "payment_terms",
    "iban",
    "bic",
    "type_code",
    "syntax",
]
RECEIPT = [
    "company",
    "address",
    "date",
    "time",
    "total",
    "currency",
    "subtotal",
    "tax",
    "rounding",
    "service_charge",
    "tip",
    "receipt_number",
    "tax_id",
    "payment_method",
]

OWN = """
title: Delivery note
threshold: 0.9
fields:
  note_number:
    type: identifier
    pattern: 'DN-\\d{6}'
    labels: [delivery note, lieferschein]
    required: true
  delivered: date
  weight: {type: number, minimum: 0, maximum: 40000}
  carrier: {type: enum, enum: [DHL, UPS], threshold: 0.5}
tables:
  parcels:
    columns:
      code: identifier
      weight: number
rules:
  weights_add_up: sum(parcels.weight) == weight
  not_in_the_future:
    holds: delivered <= '2030-01-01'
    tolerance: 0.5
    message: Nothing is delivered that late.
"""


def faults(text: str) -> list[tuple[str, str]]:
    """Path and code of every fault of a schema."""
    with pytest.raises(SchemaInvalid) as caught:
        parse_schema(text)
    return [(fault.path, fault.code) for fault in caught.value.faults]


def test_what_is_mostly_right_on_every_receipt_makes_no_receipt_wait_for_a_look() -> None:
    fields = load_schema("receipt").fields
    # By sight 27 of 28 and 31 of 33 are right, of which these confidences say 0.75 and 0.74.
    assert {name: fields[name].threshold for name in ("time", "payment_method", "total")} == {
        "time": 0.7,
        "payment_method": 0.7,
        "total": 0.8,
    }


def test_the_shipped_schemas_have_the_fields_that_others_rely_on() -> None:
    assert shipped() == ("invoice", "receipt")
    invoice, receipt = load_schema("invoice"), load_schema("receipt")
    assert set(INVOICE) <= set(invoice.fields)
    assert list(invoice.tables["line_items"].columns) == [
        *("description", "quantity", "unit", "unit_price", "tax_rate", "amount")
    ]
    assert list(invoice.tables["tax_lines"].columns) == ["rate", "base", "amount"]
    assert list(receipt.fields) == RECEIPT
    assert list(receipt.tables["line_items"].columns) == ["description", "quantity", "unit_price", "amount"]


def test_a_field_is_known_by_its_aliases() -> None:
    invoice = load_schema("invoice")
    assert (
        invoice.resolve("vendor") == invoice.resolve("Vendor Name") == invoice.resolve("seller-name") == "seller_name"
    )
    assert invoice.resolve("lines") == "line_items"
    assert invoice.resolve("nonsense") is None
    assert load_schema("receipt").resolve("vendor") == "company"


def test_a_schema_of_ones_own_says_all_that_is_asked() -> None:
    schema = parse_schema(OWN, name="delivery")
    assert (schema.name, schema.title, schema.required) == ("delivery", "Delivery note", ("note_number",))
    assert schema.fields["delivered"].type is FieldType.DATE
    assert schema.fields["weight"].maximum == Decimal(40000)
    assert (schema.fields["weight"].threshold, schema.fields["carrier"].threshold) == (0.9, 0.5)
    assert [rule.fields for rule in schema.rules] == [("parcels", "weight"), ("delivered",)]
    assert schema.rules[1].tolerance == Decimal("0.5")


def test_the_version_follows_the_meaning_not_the_spelling() -> None:
    first = parse_schema("fields: {a: text, b: date}")
    assert parse_schema("# a comment\nfields:\n  b: date\n  a: text\n").version == first.version
    assert parse_schema("fields: {a: text, b: text}").version != first.version


def test_every_fault_is_listed_with_its_place() -> None:
    found = faults(
        """
fields:
  totl: {type: amout}
  a: {type: text, treshold: 0.5}
  b: {type: text, pattern: '(?<x'}
  c: {type: enum}
  d: date
  e: {type: amount, minimum: 5, maximum: 1}
  f: {type: text, minimum: 5}
  Bad Name: text
  g: {type: date, threshold: 2}
rules:
  r1: dd > d
  r2: b + 1 == 2
  r3: sum(d) == 1
  r4: d
surprise: 1
"""
    )
    assert found == [
        ("fields.totl.type", "bad_choice"),
        ("fields.a.treshold", "unknown_key"),
        ("fields.b.pattern", "bad_expression"),
        ("fields.c.enum", "missing_key"),
        ("fields.e.minimum", "bad_number"),
        ("fields.f.minimum", "bad_choice"),
        ("fields.Bad Name", "bad_name"),
        ("fields.g.threshold", "bad_number"),
        ("rules.r1.holds", "bad_expression"),
        ("rules.r2.holds", "bad_expression"),
        ("rules.r3.holds", "bad_expression"),
        ("rules.r4.holds", "bad_expression"),
        ("surprise", "unknown_key"),
    ]


def test_a_misspelt_word_is_answered_with_the_right_one() -> None:
    with pytest.raises(SchemaInvalid, match=r"line 2, column 19.*Did you mean 'threshold'\?"):
        parse_schema("fields:\n  a: {type: text, treshold: 0.5}")
    with pytest.raises(SchemaInvalid, match=r"no field or table 'totl'. Did you mean 'total'\?"):
        parse_schema("fields: {total: amount}\nrules: {r: totl > 0}")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("fields: {a: !!python/object/apply:os.system [echo]}", "yaml_tag"),
        ("", "empty"),
        ("- a\n- b", "wrong_type"),
        ("fields: {a: text", "yaml_syntax"),
        ("title: x", "missing_key"),
        ("fields: {}", "missing_key"),
        ("fields: {a: amount}\ntolerance: -1", "bad_number"),
        ("fields: {a: amount}\nrules: {r: {holds: a == 1, tolerance: -0.01}}", "bad_number"),
        ("fields: {a: {type: amount, minimum: .nan}}", "bad_number"),
        ("fields: {a: {type: amount, maximum: .inf, threshold: .nan}}", "bad_number"),
        ("fields: {a: text, a: date}", "duplicate_key"),
        ("fields:\n  a: {type: text, aliases: [x]}\n  b: {type: text, aliases: [x]}", "duplicate_key"),
        ("fields: {a: {type: text, labels: {x: 1}}}", "wrong_type"),
        ("fields: {a: text}\ntables: {t: {}}", "missing_key"),
        ("fields: {a: text}\nrules: {r: sum(t.x) == 1}", "bad_expression"),
        ("fields: {a: text}\nrules: {r: a.b == 1}", "bad_expression"),
        ("fields: {a: text, d: date}\nrules: {r: a == 1}", "bad_expression"),
    ],
)
def test_what_cannot_be_a_schema_is_refused_by_name(text: str, code: str) -> None:
    assert code in [found for _, found in faults(text)]


def test_a_folder_of_ones_own_comes_first(tmp_path: Path) -> None:
    (tmp_path / "receipt.yaml").write_text("title: Mine\nfields: {total: amount}")
    (tmp_path / "delivery.yml").write_text(OWN)
    assert load_schema("receipt", [tmp_path]).title == "Mine"
    assert load_schema("receipt").title == "Receipt"
    assert load_schema("delivery", [tmp_path]).name == "delivery"
    assert load_schema(tmp_path / "delivery.yml").name == "delivery"
    assert available([tmp_path]) == ("delivery", "invoice", "receipt")


def test_an_unknown_schema_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Did you mean 'invoice'"):
        load_schema("invoce")
    with pytest.raises(NotFound, match="cannot be read"):
        load_schema(tmp_path / "none.yaml")


def test_the_example_of_the_reference_page_is_a_schema() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/schemas.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    schema = parse_schema(example, name="delivery-note")
    assert schema.required == ("note_number", "delivered")
    assert [rule.name for rule in schema.rules] == ["weights_add_up", "delivered_after_order", "delivered_soon"]


def test_the_reference_page_lists_every_type_field_and_rule() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/schemas.md").read_text()
    for kind in FieldType:
        assert f"| `{kind}` |" in page
    for name in shipped():
        schema = load_schema(name)
        for word in (*schema.fields, *schema.tables, *(f"`{rule.name}`" for rule in schema.rules)):
            assert word in page, word
