"""Whose address and whose number it is, and what is no value though it stands where one would."""

from docmill.extraction.local.invoices import read_invoice
from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.names import names_in
from docmill.extraction.local.invoices.paper import paper_of
from docmill.extraction.local.invoices.parties import domains
from docmill.extraction.local.invoices.reader import case_of
from docmill.extraction.result import Extraction
from tests.unit.extraction.typed_pages import typed_reading

SUMS = """
Description                              Qty      Unit price      Amount
Licence for one month                      1          €99.00      €99.00

                                           Subtotal               €99.00
                                           Total                  €99.00
                                           Amount due             €99.00
"""
COLUMNS = """
Invoice
Invoice number 76253815-0004
Date of issue  April 13, 2023
{number}

Blocksoft GmbH                      Bill to                   Ship to
Platz am Hafen 2                    Finwerk Analytics GmbH    Finwerk Analytics GmbH |
4020 Linz                           Uferstraße 4              Finwerk Analytics GmbH
Austria                             06108 Halle (Saale)       Uferstraße 4
+43 660 1234567                     Germany                   06108 Halle (Saale)
                                    {beneath}
"""


def value(extraction: Extraction, name: str) -> str | None:
    return extraction.fields[name].value if name in extraction.fields else None


def columns(*, number: str = "", beneath: str = "", behind: str = "") -> Extraction:
    return read_invoice(typed_reading(COLUMNS.format(number=number, beneath=beneath) + SUMS + behind))


def test_a_number_beneath_the_buyer_is_not_the_sellers() -> None:
    found = columns(
        number="VAT Number  DE355369209",
        beneath="DE VAT DE355369209",
        behind="\n(VAT of Blocksoft GmbH ATU72706128)\n",
    )
    assert (value(found, "seller_tax_id"), value(found, "buyer_tax_id")) == ("ATU72706128", "DE355369209")
    assert found.fields["seller_tax_id"].raw == "ATU72706128"


def test_a_seller_whose_number_is_not_printed_has_none() -> None:
    found = columns(number="VAT Number  DE355369209", beneath="DE VAT DE355369209")
    assert (value(found, "seller_tax_id"), value(found, "buyer_tax_id")) == (None, "DE355369209")


def test_labels_and_marks_around_a_name_are_no_part_of_it() -> None:
    paper = paper_of(typed_reading(COLUMNS.format(number="", beneath="") + SUMS))
    texts = {name.text for name in names_in(paper, Items())}
    assert "Finwerk Analytics GmbH" in texts
    assert not [text for text in texts if "Ship to F" in text or text.endswith("|")]


TERMS = """
Garten GmbH
Hauptstr. 1
12345 Neustadt

Rechnung Nr. 4711 vom 01.02.2024

Pos  Beschreibung            Menge    Preis      Betrag
1    Rasen                       2    50,00      100,00

Summe netto                                      100,00
USt 19 %                                          19,00
Gesamtbetrag EUR                                 119,00

Zahlungsbedingungen
Beschreibung                 Fälligkeit          Teilzahlung
{terms}
"""


def test_the_head_of_a_table_is_no_term_of_payment() -> None:
    found = read_invoice(typed_reading(TERMS.format(terms="")))
    assert value(found, "payment_terms") is None


def test_terms_of_payment_are_read_beneath_the_head_of_their_column() -> None:
    found = read_invoice(typed_reading(TERMS.format(terms="30 Tage rein netto           02.03.2024")))
    assert value(found, "payment_terms") == "30 Tage rein netto"


def test_a_word_for_an_amount_does_not_name_what_was_sold() -> None:
    page = """
Fuhrpark GmbH
Allee 26, 80786 München

Rechnungsnummer: 2015738820
München, den 01.11.2024

Finanzrate vom 01.11.2024 bis 30.11.2024
Nettobetrag  (zzgl. 19,00% MwSt.)                               376,37
----------------------------------------------------------------------
Gesamtbeträge                      Netto EUR   MwSt. EUR   Brutto EUR
----------------------------------------------------------------------
                    19,00% MwSt.:    376,37       71,51       447,88

                    Summe gesamt                              447,88
"""
    (row,) = read_invoice(typed_reading(page)).rows["line_items"]
    assert row["description"].value == "Finanzrate vom 01.11.2024 bis 30.11.2024"


def test_the_tax_on_shipping_is_added_and_not_the_shipping() -> None:
    page = """
Laden AG
Feldstraße 34
54321 Hithausen

Rechnung RE1001                      Belegdatum: 26.10.2022

Pos.  Bezeichnung              Menge   Einzelpreis €   Gesamt €
1     Lizenz                    1,00           84,95      84,95
2     Wartung                   1,00          719,40     719,40

      Positionen netto                                  804,35 €
      Versandkosten netto                                 4,99 €
      Positionen USt. 19,00% auf 804,35 €               152,83 €
      Versandkosten USt. 19,00% auf 4,99 €                0,95 €
      Endsumme                                          963,12 €
"""
    found = read_invoice(typed_reading(page))
    assert (value(found, "tax"), value(found, "total")) == ("153.78", "963.12")
    assert found.fields["tax"].raw == "152,83 € + 0,95 €"


def test_the_words_of_the_sums_name_no_buyer() -> None:
    page = """
                              TAX INVOICE
Nila Foods & Spices
12 Anna Salai, Chennai 600002
GSTIN: 33AACCN2082N1ZD                          Invoice No: NF/26-27/318
State: Tamil Nadu (33)                          Date: 21/05/2026

Bill To
Palar Retail LLP
GSTIN: 33AACCN2082N1ZD

Description                    HSN/SAC     Qty     Rate       Amount
Black pepper, whole, 50kg      0904         50   248.00    12,400.00

                                       Taxable Value   Rs. 12,400.00
                                                CGST      Rs. 310.00
                                                SGST      Rs. 310.00
                                               Total   Rs. 13,020.00
"""
    found = read_invoice(typed_reading(page))
    assert value(found, "buyer_name") == "Palar Retail LLP"
    assert value(found, "buyer_tax_id") == value(found, "seller_tax_id") == "33AACCN2082N1ZD"


SHIPPED_APART = """
                                              Facture N° F2026-23
                                              Date 15/01/2026

Atelier Morel                                 Adresse du client
Brigitte Morel
7 rue du Seller                               Maison Perrin
75018 Paris                                   58 rue de la mer
                                              06000 Nice

Nos références                                Livraison: adresse, références
Commande 4711                                 Dépôt Perrin
                                              3 rue du port
                                              06000 Nice

Désignation                              Qté      P.U. HT         Total HT
Pose de fenêtres                           1      100,00          100,00

                                         Total HT                 100,00
                                         TVA 20 %                  20,00
                                         Total TTC                120,00
"""


def test_neither_the_place_of_delivery_nor_the_next_column_is_taken_for_the_buyer() -> None:
    found = read_invoice(typed_reading(SHIPPED_APART))
    assert value(found, "buyer_name") == "Maison Perrin"
    described = {name.text: features for name, features in case_of(typed_reading(SHIPPED_APART)).named}
    assert described["Dépôt Perrin"]["ship_label"] == 1.0
    assert described["Maison Perrin"]["seller_label"] < 0.5


SEEN_APART = """
Payment receipt
Date: 31/12/2025                    Booking ID  IBZY2087

Room charges                        Rs 1939
Grand total                         Rs 1939

All payments to be made to
209-214, Kailash Building, Kasturba Gandhi Marg,
New Delhi,
New Delhi - 110001
GSTIN 06AABCO6063D1ZQ

Marigold Stays Private Limited
Contact: desk@seller.com
"""


def test_a_town_is_nobodys_name() -> None:
    described = {name.text: features for name, features in case_of(typed_reading(SEEN_APART)).named}
    assert described["New Delhi"]["address"] == 1.0
    assert described["Marigold Stays Private Limited"]["address"] == 0.0


def test_a_domain_that_says_seller_says_nothing() -> None:
    assert domains(paper_of(typed_reading(SEEN_APART))) == {}
    assert set(domains(paper_of(typed_reading(SEEN_APART.replace("seller.com", "marigold.in"))))) == {"marigold"}


def test_a_label_with_a_colon_is_not_the_first_line_of_a_name() -> None:
    form = "Rechnung\n\nFirmenname:\nBei Spiel GmbH\nStraße:\nEcke 12\nOrt:\nStadthausen\n\nÜberweisung\nIBAN: DE88"
    names = {name.text for name in names_in(paper_of(typed_reading(form)), Items())}
    assert "Bei Spiel GmbH" in names
    assert not names & {"Firmenname Bei Spiel GmbH", "Überweisung"}
    described = {name.text: features for name, features in case_of(typed_reading(form)).named}
    assert (described["Bei Spiel GmbH"]["name_label"], described["Bei Spiel GmbH"]["tail"]) == (1.0, 0.0)


TWO_DAYS = """
Nordlicht Handel GmbH
Rechnung Nr. {number} vom 30.10.2025

Beratung                                 1      100,00          100,00
                                         Gesamtbetrag           100,00

Zahlbar ohne Abzug bis 20.11.2025{discount}
"""


def test_doubts_about_a_due_date_and_a_number_are_left_with_the_value() -> None:
    plain = read_invoice(typed_reading(TWO_DAYS.format(number="210111", discount="")))
    doubtful = read_invoice(
        typed_reading(TWO_DAYS.format(number="210111 mit LV", discount="\nZahlbar mit 2% Skonto bis 14.11.2025"))
    )
    for found, doubt in ((plain, 0.0), (doubtful, 1.0)):
        assert value(found, "due_date") == "2025-11-20"
        assert found.fields["due_date"].signals["either"] == doubt
        assert value(found, "invoice_number") == "210111"
        assert found.fields["invoice_number"].signals["open"] == doubt


TWO_NAMES = """
Lindenhof Möbel {legal}
Ahornweg 12
20095 Hamburg

Hansen Bau GmbH
Am Mühlbach 3
80331 München

Invoice number 4711
Invoice date 2026-03-04
"""


def test_that_the_buyer_could_be_the_seller_says_nothing_against_the_two_together() -> None:
    found = read_invoice(typed_reading(TWO_NAMES.format(legal="GmbH") + SUMS))
    assert (value(found, "seller_name"), value(found, "buyer_name")) == ("Lindenhof Möbel GmbH", "Hansen Bau GmbH")
    seller, buyer = found.fields["seller_name"], found.fields["buyer_name"]
    assert seller.alternatives[0] == "Hansen Bau GmbH"
    # The next best is the two exchanged: either is as sure as the other.
    assert seller.signals["margin"] == buyer.signals["margin"] > 3


def test_a_stop_that_ends_a_legal_form_is_doubted_less_if_the_form_has_others() -> None:
    for legal, doubt in (("GmbH", 0.0), ("B.V.", 0.5), ("Ltd.", 1.0)):
        found = read_invoice(typed_reading(TWO_NAMES.format(legal=legal) + SUMS))
        assert value(found, "seller_name") == f"Lindenhof Möbel {legal}"
        assert found.fields["seller_name"].signals["last_stop"] == doubt
