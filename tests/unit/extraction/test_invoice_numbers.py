"""The number of an invoice is found whole, under whatever name the paper gives itself."""

import pytest

from docmill.extraction.local.invoices import read_invoice
from docmill.extraction.result import Extraction
from tests.unit.extraction.typed_pages import typed_reading


def read(*heads: str) -> Extraction:
    """A page that begins with these lines and goes on as invoices do."""
    body = """

Birkenhof Werkzeuge GmbH                      Beispielstrasse 4
                                              10115 Berlin

Description                    Qty    Price      Amount
Steel brackets, galvanised       4    12.50       50.00
Mounting rails                   2    25.00       50.00

Subtotal                                         100.00
VAT 20%                                           20.00
Total EUR                                        120.00
"""
    return read_invoice(typed_reading("\n".join(heads) + body))


def number(*heads: str) -> str | None:
    found = read(*heads).fields.get("invoice_number")
    return found.value if found else None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Rechnungsnummer  RK 2031 557 104", "RK 2031 557 104"),
        ("Rechnung Nr. 88 4410 7032 11 vom 03.04.2025", "88 4410 7032 11"),
        ("Fattura n. FPA 12/25", "FPA 12/25"),
        ("Re.-Nr.:  R 310977", "R 310977"),
        ("Fatura FT 2031B/77", "FT 2031B/77"),
        ("Bill number  H620 W9", "H620 W9"),
    ],
)
def test_a_number_that_is_printed_with_blanks_is_taken_whole(line: str, expected: str) -> None:
    assert number(line) == expected


def test_a_number_with_blanks_stands_under_its_heading_too() -> None:
    head = "FACTURA N.º         FECHA         CLIENTE"
    assert number(head, "B/31 007712         24-02-2025    430.00512") == "B/31 007712"


@pytest.mark.parametrize(
    "line", ["INVOICE NO 55012", "Invoice No. 55012 12.03.2025", "Tax Invoice 55012 of 3 March 2025"]
)
def test_a_word_in_capitals_before_a_number_or_a_day_behind_it_is_no_part_of_it(line: str) -> None:
    assert number(line) == "55012"


@pytest.mark.parametrize(
    "title",
    [
        *("Honorarnote Nr.", "Liquidation Nr.", "Beitragsrechnung", "Jahresrechnung Nr.", "Kostennote Nr."),
        *("Credit Memo No.", "Freight bill number", "Folio No.", "Statement number:", "Fee note no.", "Debit note"),
        *("Avoir n°", "Note d'honoraires n°", "Facture d'acompte n°", "Facture"),
        *("Num. doc.:", "Fattura differita n.", "Parcella n.", "Nota di credito n."),
        *("Factura rectificativa", "Minuta n.º", "Abono nº", "Fatura n.º", "Nota de crédito"),
        *("Contributienota", "Verzamelfactuur", "Notanummer"),
        *("Fakturanr.", "Regning nr.", "Kreditnota nr.", "Lasku nro", "Laskun numero", "Arve nr"),
        *("Faktura nr", "Rachunek nr", "Numer faktury", "Faktura č.", "Číslo dokladu", "Faktúra č.", "Dobropis č."),
        *("Račun br.", "Broj računa", "Račun št.", "Számla sorszáma", "Factura nr.", "Sąskaita faktūra Nr."),
        *("Rēķins Nr.", "Τιμολόγιο αρ.", "Αριθμός τιμολογίου", "Фактура №", "Fatura no"),
    ],
)
def test_the_number_follows_the_name_of_the_paper_in_any_language(title: str) -> None:
    assert number(f"{title} 31-0815") == "31-0815"


@pytest.mark.parametrize("heads", [("FAKTURA - daňový doklad   č. 310200417",), ("FAKTURA VAT", "nr 310200417")])
def test_the_title_beside_or_above_says_what_a_bare_number_is_of(heads: tuple[str, ...]) -> None:
    assert number(*heads) == "310200417"


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (("Factuur   : 2031.07", "Datum     : 30 april 2031"), "2031.07"),
        (("Faktura 2031/05/07", "Data wystawienia 14.05.2031"), "2031/05/07"),
        (("Invoice no. 20310507", "Date: 14.05.2031"), "20310507"),
    ],
)
def test_a_number_that_looks_like_a_day_or_an_amount_is_one_by_its_label(heads: tuple[str, ...], expected: str) -> None:
    assert number(*heads) == expected


@pytest.mark.parametrize("other", ["ABN 22 610 551 209", "UID 310 551 2090"])
def test_a_number_of_another_kind_beside_the_label_is_not_the_invoices(other: str) -> None:
    assert number(f"Invoice No.    {other}", "4410") == "4410"


def test_a_number_is_found_behind_a_label_of_several_words_that_it_is_glued_to() -> None:
    assert number("Número de factura:HT31/000913") == "HT31/000913"


def test_a_label_is_known_whose_letters_are_set_apart() -> None:
    assert number("N U M M E R   R E C H N U N G", "I N V O I C E N O  7714-B") == "7714-B"


def test_a_bare_reference_is_the_number_where_no_other_is() -> None:
    assert number("Reference No.    Statement date", "BF-338120        12 August 2031") == "BF-338120"
    assert number("Reference No.    Invoice No.", "BF-338120        4711") == "4711"


def test_a_number_goes_on_in_the_next_line_behind_a_stroke() -> None:
    heads = ("Faktura nr       FS/", "                 2031/11/0917", "Data wystawienia 18.11.2031")
    assert number(*heads) == "FS/2031/11/0917"


def test_a_day_behind_the_title_is_no_number() -> None:
    assert number("Rechnung vom 14.05.2031", "Nr. 4711") == "4711"
    assert number("Invoice date 2031-05-14") is None


def test_the_number_of_the_invoice_that_is_corrected_is_not_the_own() -> None:
    found = number("Factura rectificativa R31-0044", "Rectifica a la factura F31-2210 del 2 de mayo de 2031")
    assert found == "R31-0044"


def test_a_number_beside_what_is_due_in_a_box_at_the_top_is_no_item() -> None:
    heads = (
        "Prepared for         Issued           Invoice number    Balance due",
        "Harbour Lights Ltd   Jun 12, 2031     0000377           $120.00",
    )
    assert number(*heads) == "0000377"


def test_what_only_begins_like_an_iban_is_a_number() -> None:
    assert number("Invoice Number  QX4419073BT20884") == "QX4419073BT20884"
