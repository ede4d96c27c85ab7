"""A schema of one's own is read as well as a shipped one where it asks for the same things, whatever it calls them."""

import pytest

from docmill.documents.reading import Reading
from docmill.extraction.einvoice import read_einvoice
from docmill.extraction.extracting import extract
from docmill.extraction.likeness import counterparts, standard
from docmill.extraction.result import Extraction
from docmill.extraction.schema import FieldSchema
from docmill.extraction.schema_text import parse_schema
from tests.unit.extraction.einvoice_texts import ubl
from tests.unit.extraction.local.slips import slip
from tests.unit.extraction.typed_pages import FOLDER, typed, typed_reading

BOOKED = """
fields:
  vendor: {type: text, required: true}
  customer: text
  number: text
  date: date
  total: {type: number, minimum: 0}
  net: {type: amount, aliases: [subtotal]}
  currency: {type: enum, enum: [GBP, EUR]}
  reference: {type: text, labels: [your ref]}
tables:
  items: {columns: {description: text, price: amount, total: amount}}
rules:
  items_add_up: sum(items.total) == net
"""


def own(text: str = BOOKED, name: str = "booked") -> FieldSchema:
    return parse_schema(text, source="own.yaml", name=name)


def values(found: Extraction) -> dict[str, str]:
    return {name: value.value for name, value in found.fields.items()}


@pytest.fixture
def british() -> Reading:
    return typed(FOLDER / "british.txt").reading


@pytest.mark.parametrize("name", ["booked", "invoice"])
def test_fields_by_other_names_are_read_by_the_learned_reader(british: Reading, name: str) -> None:
    found = extract(british, own(name=name))
    assert values(found) == {
        "vendor": "Harrow & Finch Joinery Ltd",
        "customer": "Mrs Judith Oakes",
        "number": "HF-2291",
        "date": "2023-03-14",
        "total": "2092.2",
        "net": "1743.50",
        "currency": "GBP",
        "reference": "Kitchen",
    }
    assert [{column: cell.value for column, cell in row.items()} for row in found.rows["items"]] == [
        {"description": "Kitchen units, supply and fit", "price": "42.00", "total": "1008.00"},
        {"description": "Oak worktop, oiled", "total": "640.00"},
        {"description": "Removal of waste", "price": "95.50", "total": "95.50"},
    ]
    assert [(check.name, check.passed) for check in found.checks if check.name == "items_add_up"] == [
        ("items_add_up", True)
    ]


def test_they_are_as_sure_as_under_their_usual_names(british: Reading) -> None:
    shipped = extract(british, standard("invoice"))
    found = extract(british, own("fields: {vendor: text, invoice_number: identifier, bill_to: text}"))
    for name, usual in (("vendor", "seller_name"), ("invoice_number", "invoice_number"), ("bill_to", "buyer_name")):
        assert found.fields[name].evidence == shipped.fields[usual].evidence
        assert found.fields[name].confidence == pytest.approx(shipped.fields[usual].confidence)


def test_a_receipt_lends_what_receipts_have() -> None:
    head = ("KEDAI MAJU SDN BHD", "12 JALAN BESAR", "43000 KAJANG", "RECEIPT NO 123", "DATE: 05/03/2018 12:30")
    reading = slip(*head, "TEH TARIK  4.00", "ROTI  3.00", "TOTAL RM  7.00", "CASH  10.00", "CHANGE  3.00", "THANK YOU")
    shipped = extract(reading, standard("receipt"))
    found = extract(reading, own("fields: {merchant: text, purchase_date: date, grand_total: amount}"))
    assert values(found) == {"merchant": "KEDAI MAJU SDN BHD", "purchase_date": "2018-03-05", "grand_total": "7.00"}
    assert found.fields["merchant"].confidence == pytest.approx(shipped.fields["company"].confidence)


def test_labels_of_ones_own_mean_something_of_ones_own(british: Reading) -> None:
    found = extract(british, own("fields: {total: {type: amount, labels: [vat @ 20%]}, date: {type: text}}"))
    assert values(found).get("total") == "348.70"
    assert values(found).get("date") != "2023-03-14"


def test_what_keeps_the_pattern_goes_before_what_does_not(british: Reading) -> None:
    found = extract(british, own("fields: {number: {type: identifier, pattern: '\\d{8}'}}"))
    assert values(found) == {"number": "43110288"}


def test_what_is_no_invoice_is_read_by_its_labels_alone() -> None:
    reading = typed_reading("DELIVERY NOTE\n\nCarrier   UPS\nDelivery note no   DN-2026-7\nDate   5 March 2026\n")
    found = extract(reading, own("fields: {number: {type: identifier, labels: [delivery note no]}, vendor: text}"))
    assert values(found) == {"number": "DN-2026-7"}


def test_no_value_is_given_to_two_fields() -> None:
    schema = own("fields: {seller_name: text, vendor: text, supplier: text, date: date, issue_date: date}")
    assert counterparts(schema, standard("invoice")) == {"seller_name": "seller_name", "issue_date": "issue_date"}


def test_an_einvoice_fills_fields_by_other_names_too() -> None:
    shipped = read_einvoice(ubl(), standard("invoice"))
    found = read_einvoice(ubl(), own())
    for name, usual in (("vendor", "seller_name"), ("date", "issue_date"), ("number", "invoice_number")):
        assert found.fields[name].value == shipped.fields[usual].value
    assert [row["total"].value for row in found.rows["items"]] == [
        row["amount"].value for row in shipped.rows["line_items"]
    ]
