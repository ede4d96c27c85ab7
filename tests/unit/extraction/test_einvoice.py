"""E-invoices are read exactly, whichever syntax they come in, and the page that people see is held against them."""

from dataclasses import replace

import pytest

from docmill.extraction.einvoice import PAGE_AGREES, EInvoiceInvalid, compared_with_page, read_einvoice
from docmill.extraction.result import Extraction, Reader
from docmill.extraction.schema import load_schema
from docmill.extraction.schema_text import parse_schema
from tests.unit.extraction.einvoice_texts import CII, ubl, zugferd_1
from tests.unit.extraction.page_texts import reading

INVOICE = load_schema("invoice")
SAID = {
    "invoice_number": "R-2026/17",
    "issue_date": "2026-03-05",
    "due_date": "2026-04-04",
    "delivery_date": "2026-03-01",
    "currency": "EUR",
    "seller_name": "Müller & Söhne GmbH",
    "seller_address": "Hof 1, 10115 Berlin, DE",
    "seller_tax_id": "DE123456789",
    "buyer_name": "Chat Noir SARL",
    "order_number": "PO-9",
    "subtotal": "100.00",
    "tax": "19.00",
    "total": "119.00",
    "amount_due": "100.00",
    "prepaid": "19.00",
    "iban": "DE89370400440532013000",
    "bic": "COBADEFFXXX",
}
PAGE = (
    (0.1, 0.05, "Müller & Söhne GmbH"),
    (0.1, 0.20, "Rechnung Nr. R-2026/17 vom 5. März 2026"),
    (0.1, 0.40, "8 Blue paint 12,50 100,00"),
    (0.6, 0.50, "Netto 100,00"),
    (0.6, 0.52, "MwSt 19 % 19,00"),
    (0.6, 0.54, "Gesamtbetrag 119,00 €"),
)


def values(extraction: Extraction) -> dict[str, str]:
    return {name: found.value for name, found in extraction.fields.items()}


@pytest.mark.parametrize(
    ("xml", "syntax", "code", "terms"),
    [
        (CII, "CII", "380", "2 % until 12 March net 30 days"),
        (zugferd_1(), "CII", "380", "2 % until 12 March net 30 days"),
        (ubl(), "UBL", "380", "net 30 days"),
        (ubl("CreditNote"), "UBL", "381", "net 30 days"),
    ],
    ids=["cii", "zugferd 1.0", "ubl", "ubl credit note"],
)
def test_every_field_is_read_exactly(xml: str, syntax: str, code: str, terms: str) -> None:
    found = read_einvoice(xml, INVOICE)
    assert values(found) == {**SAID, "payment_terms": terms, "syntax": syntax, "type_code": code}
    assert [{name: cell.value for name, cell in row.items()} for row in found.rows["line_items"]] == [
        {
            "description": "Blue paint",
            "quantity": "8",
            "unit": "C62",
            "unit_price": found.rows["line_items"][0]["unit_price"].value,
            "tax_rate": "19",
            "amount": "100.00",
        }
    ]
    assert float(found.rows["line_items"][0]["unit_price"].value) == 12.5
    assert [{name: cell.value for name, cell in row.items()} for row in found.rows["tax_lines"]] == [
        {"rate": "19", "base": "100.00", "amount": "19.00"}
    ]
    assert found.document_type == ("credit_note" if code == "381" else "invoice")
    assert (found.reader, found.confidence, found.notes) == (Reader.EINVOICE, 1.0, ())
    assert {check.name for check in found.checks if check.passed} >= {"total_adds_up", "lines_add_up", "due_adds_up"}
    assert not [check for check in found.checks if not check.passed]


def test_an_invoice_that_contradicts_itself_is_read_and_doubted() -> None:
    found = read_einvoice(ubl().replace(">119.00<", ">129.00<"), INVOICE)
    assert found.fields["total"].value == "129.00"
    assert found.fields["total"].confidence < 1
    assert found.fields["seller_name"].confidence == 1
    assert found.confidence < 1


def test_what_the_xml_gives_in_a_wrong_form_is_left_out_and_told() -> None:
    found = read_einvoice(ubl().replace("2026-03-05", "5 of March").replace("DE89370400440532013000", "12345"), INVOICE)
    assert "iban" not in found.fields
    assert any("12345" in note for note in found.notes)
    assert any(check.name == "required" and check.fields == ("issue_date",) for check in found.checks)


def test_groups_of_lines_are_not_counted_twice() -> None:
    line = CII[CII.index("  <ram:IncludedSupplyChain") : CII.index("  <ram:ApplicableHeaderTradeAgreement>")]
    group = line.replace(
        "<ram:SpecifiedTradeProduct>",
        "<ram:AssociatedDocumentLineDocument><ram:LineStatusReasonCode>GROUP</ram:LineStatusReasonCode>"
        "</ram:AssociatedDocumentLineDocument><ram:SpecifiedTradeProduct>",
    )
    found = read_einvoice(CII.replace(line, group + line), INVOICE)
    assert len(found.rows["line_items"]) == 2
    assert "lines_add_up" in found.fields["subtotal"].passed


def test_a_schema_of_ones_own_gets_the_fields_it_names() -> None:
    schema = parse_schema(
        "fields:\n  vendor: {type: text, aliases: [seller_name]}\n  total: amount\n  paid_by: text\n"
        "tables: {lines: {aliases: [line_items], columns: {amount: amount}}}"
    )
    found = read_einvoice(CII, schema)
    assert values(found) == {"vendor": "Müller & Söhne GmbH", "total": "119.00"}
    assert found.rows["lines"][0]["amount"].value == "100.00"


@pytest.mark.parametrize(
    ("xml", "told"),
    [
        ("<html/>", "not an invoice"),
        ("<Invoice>", "not well-formed"),
        ('<?xml version="1.0"?><!DOCTYPE Invoice [<!ENTITY a "b">]><Invoice>&a;</Invoice>', "document type"),
        ("", "not well-formed"),
    ],
)
def test_what_is_no_e_invoice_is_refused_by_name(xml: str, told: str) -> None:
    with pytest.raises(EInvoiceInvalid, match=told):
        read_einvoice(xml, INVOICE)


def test_entities_are_not_looked_up() -> None:
    xml = ubl().replace("Blue paint", "Blue &paint; paint")
    with pytest.raises(EInvoiceInvalid):
        read_einvoice(xml, INVOICE)


def test_a_page_that_says_the_same_agrees_and_shows_where() -> None:
    found = compared_with_page(read_einvoice(CII, INVOICE), reading(*PAGE), INVOICE)
    (check,) = [check for check in found.checks if check.name == PAGE_AGREES]
    assert check.passed
    assert check.fields == ("invoice_number", "issue_date", "total")
    assert found.fields["total"].grounded
    assert PAGE_AGREES in found.fields["total"].passed
    assert found.fields["seller_name"].evidence[0].box.top == pytest.approx(0.05)
    assert found.rows["line_items"][0]["description"].grounded
    assert not found.fields["buyer_name"].grounded
    assert found.confidence == 1.0


def test_a_page_that_says_otherwise_is_told_with_both_values() -> None:
    lines = [*PAGE[:-1], (0.6, 0.54, "Gesamtbetrag 191,00 €")]
    found = compared_with_page(read_einvoice(CII, INVOICE), reading(*lines), INVOICE)
    (check,) = [check for check in found.checks if check.name == PAGE_AGREES]
    assert not check.passed
    assert check.message == "Total with tax: the XML says 119.00, the page 191.00."
    assert check.fields == ("total",)
    assert PAGE_AGREES in found.fields["total"].failed
    assert found.fields["total"].confidence < 1 == found.fields["invoice_number"].confidence


def test_every_amount_and_date_of_an_xml_that_is_not_about_the_page_is_doubted() -> None:
    lines = [*PAGE[:1], (0.1, 0.20, "Rechnung Nr. R-2025/99 vom 5. März 2026"), *PAGE[2:]]
    found = compared_with_page(read_einvoice(CII, INVOICE), reading(*lines), INVOICE)
    disputed = {name for name, value in found.fields.items() if PAGE_AGREES in value.failed}
    amounts = {"subtotal", "tax", "total", "amount_due", "prepaid"}
    assert disputed == {"invoice_number", "issue_date", "due_date", "delivery_date", *amounts}
    row = found.rows["line_items"][0]
    assert {name for name, cell in row.items() if PAGE_AGREES in cell.failed} == {"unit_price", "amount"}
    (check,) = [check for check in found.checks if check.name == PAGE_AGREES]
    assert check.fields == ("invoice_number",)


def test_no_page_can_neither_agree_nor_differ() -> None:
    found = read_einvoice(CII, INVOICE)
    assert compared_with_page(found, replace(reading(), pages=()), INVOICE) is found
