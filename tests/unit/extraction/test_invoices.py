"""Invoices without XML are read from their pages: fields, line items, taxes, and where each value stands."""

from decimal import Decimal

import pytest

from docmill.documents.reading import Box, Format, Reading
from docmill.extraction.checks import check
from docmill.extraction.confidence import FAILED_CAP
from docmill.extraction.extracting import finish
from docmill.extraction.local.invoices import read_invoice
from docmill.extraction.local.invoices.learning import fit_invoices
from docmill.extraction.local.training import Labelled, Model
from docmill.extraction.result import Extraction
from docmill.extraction.schema import load_schema
from docmill.extraction.values.texts import fold
from tests.unit.extraction.typed_pages import FOLDER, Typed, all_typed, typed, typed_reading

PAGES = all_typed()


def value(extraction: Extraction, name: str) -> str | None:
    if name == "lines":
        return str(len(extraction.rows.get("line_items", ())))
    if name == "document_type":
        return extraction.document_type
    return extraction.fields[name].value if name in extraction.fields else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_an_invoice_says_is_read_from_layouts_of_many_countries(page: Typed) -> None:
    found = read_invoice(page.reading)

    assert {name: fold(value(found, name) or "") for name in page.says} == {
        name: fold(text) for name, text in page.says.items()
    }


def test_every_value_says_where_it_stands() -> None:
    page = typed(FOLDER / "german_craft.txt")

    found = read_invoice(page.reading)

    for name in page.says.keys() - {"lines"}:
        (place, *_) = found.fields[name].evidence
        words = [
            word.text for word in page.reading.pages[0].words if _inside(word.box.left, word.box.middle, place.box)
        ]
        assert any(word.strip(".,:") in found.fields[name].raw for word in words), name


def _inside(left: float, middle: float, box: Box) -> bool:
    return box.left - 1e-6 <= left <= box.right and box.top <= middle <= box.bottom


def test_line_items_have_their_columns_and_wrapped_lines_belong_to_the_item_above() -> None:
    found = read_invoice(typed(FOLDER / "german_craft.txt").reading)

    rows = [{name: cell.value for name, cell in row.items()} for row in found.rows["line_items"]]
    assert rows[0] == {
        "description": "Elektroinstallation Treppenhaus inkl. Anfahrt",
        "quantity": "3",
        "unit": "Std",
        "unit_price": "58.50",
        "amount": "175.50",
    }
    assert [row["amount"] for row in rows] == ["175.50", "418.80", "25.00"]


def test_a_name_that_looks_like_an_address_or_a_label_says_so_to_the_confidence() -> None:
    street = typed_reading("Invoice 12\n\nBill to\n27 Ocean Street\nBondi NSW 2026\n\nTotal  12.00")
    named = typed_reading("Invoice 12\n\nBill to\nOcean Traders\n27 Ocean Street\nBondi NSW 2026\n\nTotal  12.00")

    assert read_invoice(street).fields["buyer_name"].signals["unlike"] == 1.0
    assert read_invoice(named).fields["buyer_name"].signals["unlike"] == 0.0


def test_a_sign_that_several_currencies_share_says_so_to_the_confidence() -> None:
    dollars = typed_reading("Invoice 12\n\nTotal  $12.00")
    named = typed_reading("Invoice 12\n\nTotal  USD 12.00")

    assert read_invoice(dollars).fields["currency"].signals["shared"] == 1.0
    assert read_invoice(named).fields["currency"].signals["shared"] == 0.0


def test_a_tax_that_is_more_than_what_it_is_on_is_not_believed() -> None:
    schema = load_schema("invoice")
    page = typed_reading("Invoice 12\n\nNet amount  12.00\nVAT  90.00\nGrand total  250.00")

    found = finish(read_invoice(page), page, schema)

    assert (value(found, "subtotal"), value(found, "tax")) == ("12.00", "90.00")
    assert max(found.fields[name].confidence for name in ("subtotal", "tax")) <= FAILED_CAP
    usual = typed_reading("Invoice 12\n\nNet amount  190.00\nVAT  19.00\nGrand total  209.00")
    assert finish(read_invoice(usual), usual, schema).fields["tax"].confidence > FAILED_CAP


def test_taxes_by_rate_are_rows_of_their_own() -> None:
    found = read_invoice(typed(FOLDER / "zugferd_like.txt").reading)

    rows = [{name: cell.value for name, cell in row.items()} for row in found.rows["tax_lines"]]
    assert rows == [
        {"rate": "7", "base": "275.00", "amount": "19.25"},
        {"rate": "19", "base": "198.00", "amount": "37.62"},
    ]


def test_an_invoice_whose_sums_agree_passes_the_checks_of_the_schema() -> None:
    schema = load_schema("invoice")

    judged = check(read_invoice(typed(FOLDER / "construction.txt").reading), schema)

    assert {each.name: each.passed for each in judged.checks if not each.passed} == {}
    assert judged.fields["prepaid"].value == "5000.00"


def test_a_table_goes_on_over_pages_and_what_is_carried_over_is_no_item() -> None:
    heading = "Pos   Bezeichnung                    Menge     Einzelpreis     Gesamtpreis\n"
    first = heading + "".join(
        f"{n}     Ware Nummer {n}                     2           10,00           20,00\n" for n in (1, 2)
    )
    first += "                                               Übertrag          40,00\n"
    second = "                                               Übertrag          40,00\n" + heading
    second += "".join(
        f"{n}     Ware Nummer {n}                     2           10,00           20,00\n" for n in (3, 4, 5)
    )
    second += "\n      Summe netto                                              100,00\n"
    second += "      19 % MwSt.                                                19,00\n"
    second += "      Gesamtbetrag                                             119,00\n"

    found = read_invoice(typed_reading(first, second))

    assert [row["amount"].value for row in found.rows["line_items"]] == ["20.00"] * 5
    assert value(found, "total") == "119.00"


def test_sums_that_fit_together_beat_a_better_label() -> None:
    page = """
Gesamtbeitrag                                        50,00 €
Versicherungsteuer 19 %                               9,50 €
Rechnungsbeitrag                                     59,50 €
"""
    found = read_invoice(typed_reading(page))

    assert [value(found, name) for name in ("subtotal", "tax", "total")] == ["50.00", "9.50", "59.50"]
    assert found.fields["total"].signals["arithmetic"] == 1.0


def test_the_day_until_which_a_discount_is_given_is_not_the_due_date() -> None:
    page = "Rechnung 77 vom 01.02.2024\n\nBis 10.02.2024 mit 2 % Skonto, zahlbar bis 01.03.2024 ohne Abzug"

    assert value(read_invoice(typed_reading(page)), "due_date") == "2024-03-01"


@pytest.mark.parametrize(
    ("page", "issued"),
    [
        ("Gutschrift GS-14\nDatum  17.02.2026\nzu Rechnung Nr. 2026-0107\nRechnungsdatum  02.02.2026", "2026-02-17"),
        ("CREDIT NOTE\nDate  20/03/2026\nOriginal invoice  INV-77\nInvoice date  01/03/2026", "2026-03-20"),
        ("Avoir A-9\nDate de facture : 03/02/2026\nDate de l'avoir : 23/02/2026", "2026-02-23"),
        ("CREDIT NOTE 5\nInvoice date  01/03/2026\nDelivery date  28/02/2026", "2026-03-01"),
        ("INVOICE 5\nInvoice date  01/03/2026\nDate  20/03/2026", "2026-03-01"),
    ],
)
def test_a_credit_note_has_a_day_of_its_own_beside_that_of_the_invoice_it_corrects(page: str, issued: str) -> None:
    assert value(read_invoice(typed_reading(page)), "issue_date") == issued


def test_nothing_on_the_page_is_nothing_found() -> None:
    found = read_invoice(Reading(sha256="0" * 64, format=Format.PDF))

    assert found.fields == {}
    assert found.rows == {}


def test_a_model_is_fitted_from_labelled_invoices_and_reads_like_the_weights_by_hand_where_it_learned_nothing() -> None:
    documents = [
        Labelled(reading=page.reading, labels={k: v for k, v in page.says.items() if k != "lines"}, group=page.name)
        for page in PAGES
    ]

    model = fit_invoices(documents)

    assert {"seller_name", "buyer_name", "total", "invoice_number"} <= model.rankers.keys()
    assert all(ranker.weights["prior"] > 1.0 for ranker in model.rankers.values())
    assert Model.from_json(model.as_json()).as_json() == model.as_json()
    assert fit_invoices(documents[:2]).rankers == {}
    found = read_invoice(PAGES[0].reading, model)
    assert Decimal(found.fields["total"].value) == Decimal(PAGES[0].says["total"])


@pytest.mark.parametrize(
    "terms", ["Please pay within 45 days.", "Please pay within 14 business days", "Please pay within 2 weeks"]
)
def test_days_within_which_to_pay_are_no_amount(terms: str) -> None:
    page = f"Nordlicht Ltd\nInvoice no. 4711\n\nWork            1   100.00   100.00\nTotal   100.00\n\n{terms}"
    assert value(read_invoice(typed_reading(page)), "amount_due") == "100.00"
