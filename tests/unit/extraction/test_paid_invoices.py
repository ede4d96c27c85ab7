"""Invoices that were paid: what is left is due, and what only speaks of paying changes nothing."""

import pytest

from docmill.extraction.extracting import extract
from docmill.extraction.result import Extraction
from tests.unit.extraction.typed_pages import typed_reading

_PAGE = """
Nordlicht Handel GmbH
Hafenstrasse 4
20457 Hamburg

Bill to
Kite and Sons Ltd
12 Harbour Lane
Whitby YO21 3PU

Invoice no.  4711
Date         04.03.2026

Description              Qty     Price     Amount
Repair of a pump           1    100.00     100.00

                         Subtotal          100.00
                         VAT 21 %           21.00
                         Total             121.00
{said}
"""


def _read(said: str) -> Extraction:
    return extract(typed_reading(_PAGE.format(said=said)), "invoice")


@pytest.mark.parametrize(
    "said",
    [
        "Paid with PayPal on 4 March 2026",
        "PAID",
        "Paid by credit card. Thank you!",
        "Bezahlt per EC-Karte am 04.03.2026",
        "Betrag dankend erhalten - bezahlt am 04.03.2026.",
        "Betaald met iDEAL op 4 maart 2026",
        "Reeds voldaan via Bancontact",
        "Payée le 04/03/2026 par carte bancaire",
        "Facture acquittée",
        "Pagado con tarjeta",
        "Pagato con bonifico il 04/03/2026",
        "Pago por Multibanco",
        "Zapłacono przelewem",
        "Neplaťte, již uhrazeno",
        "Betald med Swish",
        "Betalt med MobilePay",
        "Maksettu verkkopankissa",
        "Achitat prin card",
        "A számla kiegyenlítve",
        "Kredi kartı ile ödendi",
        "Εξοφλήθηκε με κάρτα",
        "                         Amount paid       121.00",
        "                         Amount paid       121.00\n                         Balance due         0.00",
        "                         Bereits bezahlt  -121.00\n                         Restbetrag          0.00",
    ],
)
def test_what_is_paid_in_full_leaves_nothing_due(said: str) -> None:
    found = _read(said)
    assert (found.fields["total"].value, found.fields["amount_due"].value) == ("121.00", "0.00")
    assert found.fields["prepaid"].value == "121.00"
    assert not [name for name in found.fields["amount_due"].failed if name == "due_adds_up"]
    assert found.fields["amount_due"].evidence


@pytest.mark.parametrize(
    "said",
    [
        "                         Amount paid        50.00",
        "                         Already paid      -50.00\n                         Balance due        71.00",
        "               Anzahlung vom 02.02.2026     50.00\n               Restbetrag                   71.00",
        "                         Déjà réglé         50.00",
        "                         Reeds betaald      50.00\n                         Te betalen         71.00",
    ],
)
def test_what_is_paid_in_part_leaves_the_rest_due(said: str) -> None:
    found = _read(said).fields
    assert (found["amount_due"].value, found["prepaid"].value) == ("71.00", "50.00")


@pytest.mark.parametrize(
    "said",
    [
        "To be paid by 18 March 2026",
        "Goods remain our property until paid in full.",
        "Interest is charged if not paid within 30 days.",
        "Die Ware bleibt unser Eigentum, bis sie bezahlt ist.",
        "Noch nicht bezahlt",
        "Der Betrag wird am 18.03.2026 per Lastschrift abgebucht.",
        "Montant déjà payé :",
        "TVA acquittée sur les encaissements",
        "Nog niet betaald",
        "Deposit paid on order",
        "Payment method: bank transfer",
        "                         Amount paid         0.00",
    ],
)
def test_words_about_paying_leave_the_total_due(said: str) -> None:
    assert _read(said).fields["amount_due"].value == "121.00"


def test_what_only_words_say_is_stated_with_less_confidence_than_what_is_printed() -> None:
    said, printed = (
        _read(text).fields["amount_due"].confidence
        for text in ("Paid with PayPal", "                         Total due         121.00")
    )
    assert 0.5 < said < printed
