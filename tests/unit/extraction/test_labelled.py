"""Fields of any schema are found by the words printed beside them."""

import pytest

from docmill.documents.reading import Box, TextSource
from docmill.extraction.labelled import read_labelled
from docmill.extraction.result import Evidence, FieldValue
from docmill.extraction.schema import load_schema
from docmill.extraction.schema_text import parse_schema
from docmill.extraction.tables import read_tables
from tests.unit.extraction.page_texts import reading

INVOICE = load_schema("invoice")
RECEIPT = load_schema("receipt")


def found(schema_name: str, *lines: tuple[float, float, str]) -> dict[str, str]:
    """The fields of a shipped schema on a page."""
    schema = load_schema(schema_name)
    return {name: value.value for name, value in read_labelled(reading(*lines), schema).items()}


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("Purchase Order No.: 4500-123", "order_number", "4500-123"),
        ("Ihre Bestellung: B/77812", "order_number", "B/77812"),
        ("N° de commande : CMD-0099", "order_number", "CMD-0099"),
        ("Lieferdatum 07.05.2026", "delivery_date", "2026-05-07"),
        ("Date of supply: 7 May 2026", "delivery_date", "2026-05-07"),
        ("Fällig am 04.06.2026", "due_date", "2026-06-04"),
        ("Date d'échéance : 04/06/2026", "due_date", "2026-06-04"),
        ("IBAN: DE89 3704 0044 0532 0130 00", "iban", "DE89370400440532013000"),
        # Misprinted, as its check will say; what follows is no part of it all the same.
        ("IBAN DE02 2175 0000 0012 3456 78 BIC NOLADE21NOS", "iban", "DE02217500000012345678"),
        ("BIC/SWIFT COBADEFFXXX", "bic", "COBADEFFXXX"),
        ("USt-IdNr.: DE123456789", "seller_tax_id", "DE123456789"),
        ("Steuernummer 201/113/40209", "seller_tax_id", "201/113/40209"),
        ("P.IVA 12345678901", "seller_tax_id", "12345678901"),
        ("Your VAT No: GB123456789", "buyer_tax_id", "GB123456789"),
        ("Payment terms: 30 days net", "payment_terms", "30 days net"),
        ("Zahlbar innerhalb 30 Tagen ohne Abzug", "payment_terms", "Zahlbar innerhalb 30 Tagen ohne Abzug"),
        ("InvoiceNo: 2026-0815", "invoice_number", "2026-0815"),
        ("Sub Total 100.00", "subtotal", "100.00"),
        ("VAT total: 19.00", "tax", "19.00"),
        ("MwSt 19 % von 100,00 19,00", "tax", "19.00"),
        ("Total due: € 119.00", "amount_due", "119.00"),
        ("Summa exkl. moms 1 000,00", "subtotal", "1000.00"),
    ],
)
def test_a_label_in_any_language_names_its_field(text: str, name: str, value: str) -> None:
    assert found("invoice", (0.1, 0.2, text)).get(name) == value


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("Receipt No: CS0012345", "receipt_number", "CS0012345"),
        ("GST ID : 000781500416", "tax_id", "000781500416"),
        ("Rounding Adj -0.02", "rounding", "-0.02"),
        ("Time: 2:05 PM", "time", "14:05:00"),
        ("Payment: VISA", "payment_method", "card"),
        ("Zahlungsart Bar", "payment_method", "cash"),
    ],
)
def test_the_small_print_of_receipts_is_read(text: str, name: str, value: str) -> None:
    assert found("receipt", (0.1, 0.2, text)).get(name) == value


def test_the_longest_label_wins() -> None:
    fields = found("invoice", (0.1, 0.1, "Date: 01.03.2026"), (0.1, 0.12, "Due date: 31.03.2026"))
    assert (fields["issue_date"], fields["due_date"]) == ("2026-03-01", "2026-03-31")


def test_a_value_may_stand_below_the_head_of_its_column() -> None:
    fields = found(
        "invoice",
        (0.1, 0.20, "Invoice No"),
        (0.4, 0.20, "Invoice date"),
        (0.7, 0.20, "Due date"),
        (0.1, 0.22, "RE-4711"),
        (0.4, 0.22, "01.03.2026"),
        (0.7, 0.22, "31.03.2026"),
    )
    assert fields["invoice_number"] == "RE-4711"
    assert (fields["issue_date"], fields["due_date"]) == ("2026-03-01", "2026-03-31")


def test_a_value_may_stand_far_to_the_right_of_its_label() -> None:
    assert found("invoice", (0.1, 0.3, "Grand total"), (0.8, 0.3, "119,00 €"))["total"] == "119.00"


def test_numbers_of_the_parties_are_told_apart_by_their_blocks() -> None:
    fields = found(
        "invoice",
        (0.1, 0.10, "Seller"),
        (0.6, 0.10, "Bill to"),
        (0.1, 0.12, "ACME Ltd"),
        (0.6, 0.12, "Chat Noir SARL"),
        (0.1, 0.14, "VAT no: GB123456789"),
        (0.6, 0.14, "VAT no: FR32123456789"),
    )
    assert (fields["seller_tax_id"], fields["buyer_tax_id"]) == ("GB123456789", "FR32123456789")


def test_an_iban_with_a_slip_is_shown_but_hardly_trusted() -> None:
    value = read_labelled(reading((0.1, 0.2, "IBAN: DE89 3704 0044 0532 0130 01")), INVOICE)["iban"]
    assert value.value == "DE89370400440532013001"
    assert value.confidence < 0.5


def test_nothing_is_said_without_a_reason() -> None:
    assert found("invoice", (0.1, 0.2, "Call 030 1234567 or write to us, 12 friends, 3.50")) == {}


def known(name: str, top: float, left: float = 0.1) -> FieldValue:
    """A name that another reader found."""
    box = Box(left, top, left + 0.008 * len(name), top + 0.014)
    return FieldValue(value=name, raw=name, confidence=0.9, evidence=(Evidence(page=1, box=box),))


def test_the_address_of_a_party_stands_below_its_name() -> None:
    page = reading(
        (0.1, 0.10, "ACME Ltd"),
        (0.6, 0.10, "Chat Noir SARL"),
        (0.1, 0.12, "12 Harbour Road"),
        (0.6, 0.12, "58 rue de la Mer"),
        (0.1, 0.14, "Bristol BS1 4QA"),
        (0.6, 0.14, "06000 NICE"),
        (0.1, 0.16, "Tel. +44 117 496 0000"),
        (0.6, 0.16, "France"),
        (0.6, 0.18, "Something else 12345"),
    )
    names = {"seller_name": known("ACME Ltd", 0.10), "buyer_name": known("Chat Noir SARL", 0.10, 0.6)}
    found = read_labelled(page, INVOICE, ["seller_address", "buyer_address"], names)
    assert found["seller_address"].value == "12 Harbour Road, Bristol BS1 4QA"
    assert found["buyer_address"].value == "58 rue de la Mer, 06000 NICE, France"
    assert len(found["buyer_address"].evidence) == 3


def test_the_address_of_a_party_may_stand_behind_its_name() -> None:
    page = reading((0.1, 0.10, "Bei Spiel GmbH ● Ecke 12 ● 12345 Stadthausen ● Tel 555"))
    found = read_labelled(page, INVOICE, ["seller_address"], {"seller_name": known("Bei Spiel GmbH", 0.10)})
    assert found["seller_address"].value == "Ecke 12, 12345 Stadthausen"


def test_lines_without_a_town_are_no_address() -> None:
    page = reading((0.1, 0.10, "ACME Ltd"), (0.1, 0.12, "Best paint since ever"), (0.1, 0.14, "Total 5.00"))
    assert not read_labelled(page, INVOICE, ["seller_address"], {"seller_name": known("ACME Ltd", 0.10)})


def test_no_text_makes_the_reader_stumble() -> None:
    schema = parse_schema("fields: {code: {type: identifier, pattern: 'A+'}, when: date, total: amount}")
    page = reading(
        (0.1, 0.1, "\ud800 AAA \udfff"), (0.1, 0.1, "Total: ٣٤ ²³ 1,,2..3"), (0.0, 0.0, "0"), (1.0, 1.0, "%")
    )
    assert read_labelled(page, schema)["code"].value == "AAA"
    assert "when" not in read_labelled(page, schema)


def test_evidence_signals_and_alternatives_are_kept() -> None:
    value = read_labelled(reading((0.1, 0.2, "Order no: A-17"), (0.1, 0.3, "Your order B-18")), INVOICE)["order_number"]
    assert (value.value, value.raw, value.alternatives) == ("A-17", "A-17", ("B-18",))
    assert value.evidence[0].page == 1
    assert value.evidence[0].box.left > 0.1
    assert set(value.signals) == {"label", "repeats", "score"}
    assert 0 < value.confidence < 1


def test_only_the_fields_asked_for_are_read() -> None:
    page = reading((0.1, 0.2, "Order no: A-17"), (0.1, 0.3, "Total 5.00"))
    assert list(read_labelled(page, INVOICE, ["total", "unknown"])) == ["total"]


OWN = parse_schema(
    """
fields:
  meter: {type: identifier, pattern: '[A-Z]{2}-\\d{6}'}
  reading: {type: number, labels: [zählerstand, meter reading]}
  read_on: {type: date, title: Read on}
  reader_name: text
  tariff: {type: enum, enum: [day, night]}
  estimated: {type: boolean, labels: [estimated]}
"""
)


def test_a_schema_of_ones_own_needs_nothing_but_itself() -> None:
    page = reading(
        (0.1, 0.10, "Stadtwerke, device XY-123456"),
        (0.1, 0.14, "Zählerstand: 12 345,5 kWh"),
        (0.1, 0.18, "Read on 3 May 2026"),
        (0.1, 0.22, "Reader name: Jane Doe"),
        (0.1, 0.26, "Night tariff"),
        (0.1, 0.30, "Estimated: no"),
        source=TextSource.EMBEDDED,
    )
    read = {name: value.value for name, value in read_labelled(page, OWN).items()}
    assert read == {
        "meter": "XY-123456",
        "reading": "12345.5",
        "read_on": "2026-05-03",
        "reader_name": "Jane Doe",
        "tariff": "night",
        "estimated": "false",
    }


PARCELS = parse_schema(
    """
fields: {total_weight: number, carrier: text}
tables:
  parcels:
    columns:
      code: {type: identifier, labels: [parcel, code]}
      content: {type: text, labels: [content, inhalt]}
      weight: {type: number, labels: [weight, gewicht]}
      value: {type: amount, labels: [value, wert]}
"""
)


def test_the_rows_of_a_table_stand_below_the_heads_of_its_columns() -> None:
    page = reading(
        (0.1, 0.10, "Carrier: DHL"),
        (0.1, 0.20, "Parcel"),
        (0.3, 0.20, "Content"),
        (0.6, 0.20, "Weight"),
        (0.8, 0.20, "Value"),
        (0.1, 0.23, "P-001"),
        (0.3, 0.23, "Blue paint"),
        (0.6, 0.23, "12,5"),
        (0.8, 0.23, "1.234,50"),
        (0.3, 0.245, "in two tins"),
        (0.1, 0.27, "P-002"),
        (0.3, 0.27, "Brushes"),
        (0.6, 0.27, "0,5"),
        (0.8, 0.27, "20,00"),
        (0.3, 0.30, "Total weight"),
        (0.6, 0.30, "13,0"),
        (0.1, 0.60, "P-999 is a number further down"),
    )
    rows = read_tables(page, PARCELS)["parcels"]
    assert [{name: cell.value for name, cell in row.items()} for row in rows] == [
        {"code": "P-001", "content": "Blue paint in two tins", "weight": "12.5", "value": "1234.50"},
        {"code": "P-002", "content": "Brushes", "weight": "0.5", "value": "20.00"},
    ]
    assert rows[0]["value"].evidence[0].box.left == pytest.approx(0.8)


def test_a_page_without_the_heads_of_a_table_has_no_rows() -> None:
    assert read_tables(reading((0.1, 0.1, "Weight 12"), (0.1, 0.3, "P-001 Paint 12,5")), PARCELS) == {}
