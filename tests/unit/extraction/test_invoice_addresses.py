"""Where the seller and the buyer of an invoice are: which lines belong to an address, and whether it is whole."""

from dataclasses import replace

import pytest

from docmill.documents.reading import Format, Line, Reading
from docmill.extraction.confidence import FAILED_CAP
from docmill.extraction.extracting import finish
from docmill.extraction.local.invoices import read_invoice
from docmill.extraction.result import Extraction
from docmill.extraction.schema import load_schema
from tests.unit.extraction.typed_pages import typed_reading


def value(extraction: Extraction, name: str) -> str | None:
    return extraction.fields[name].value if name in extraction.fields else None


CENTRED = """
                   Bengkel Kereta Sin Wah
                   {between}
                  Lot 3312, Jalan Bercham,
                     31400 Ipoh, Perak
                     H/P: 016-551 8822

                          INVOICE
Invoice No  84423                      Date  28.07.2018

Description                            Qty      Unit price      Amount
Oil filter                               1           99.00       99.00

                                         Total               RM  99.00
"""


@pytest.mark.parametrize("between", ["(Reg. No: IP0441728-K)", " (Co. No. 712345-K)", "       712345-K"])
def test_an_address_may_stand_in_the_middle_and_beneath_the_number_of_a_register(between: str) -> None:
    found = read_invoice(typed_reading(CENTRED.format(between=between)))
    assert value(found, "seller_address") == "Lot 3312, Jalan Bercham, 31400 Ipoh, Perak"


LETTER = """
Musterhafter
Versicherungsverein Neustadt a.G.

Herrn
Max Beispiel
Gartenstr. 11
12346 Bad Altenhausen

Versicherungsbüro
Nord
Gartenstr. 12
12345 Neustadt

Beitragsrechnung Nr. 4711                                    24. Januar 2014

Privathaftpflicht                              50,00 €
Gesamtbeitrag                                  50,00 €
Versicherungsteuer 19 %                         9,50 €
Rechnungsbetrag                                59,50 €
"""


def closely_set(text: str) -> Reading:
    """In larger type, so that an empty line between two blocks is hardly more than the type is high."""
    (page,) = typed_reading(text).pages
    lines = [
        Line(words=tuple(word._replace(box=word.box._replace(bottom=word.box.bottom + 0.0025)) for word in line.words))
        for line in page.lines
    ]
    return Reading(sha256="0" * 64, format=Format.PDF, pages=(replace(page, lines=tuple(lines)),))


def test_an_address_ends_where_another_begins() -> None:
    found = read_invoice(closely_set(LETTER))
    assert value(found, "buyer_name") == "Herrn Max Beispiel"
    assert value(found, "buyer_address") == "Gartenstr. 11, 12346 Bad Altenhausen"


def test_the_address_of_the_buyer_is_not_the_sellers() -> None:
    found = read_invoice(closely_set(LETTER))
    assert value(found, "seller_name") == "Musterhafter Versicherungsverein Neustadt a.G."
    assert "Gartenstr. 11" not in (value(found, "seller_address") or "")


def test_a_town_that_stands_apart_belongs_to_the_street() -> None:
    page = """
                                                       Luftballon GmbH
                                                       Ecke 12
                                                       12345 Stadthausen

Theodor Est
Bahnstr. 42

88802 Spielkreis

Rechnung RE-20140703 vom 03.07.2014

Menge   Produkt                     Einzelpreis     Summe
400,00  Luftballon bunt                  0,79 €    316,00 €

Summe netto                                        316,00 €
USt 19 %                                            60,04 €
Summe inkl. USt                                    376,04 €
"""
    found = read_invoice(typed_reading(page))
    assert value(found, "buyer_address") == "Bahnstr. 42, 88802 Spielkreis"


@pytest.mark.parametrize(
    ("address", "whole"),
    [
        (("Hauptstr. 1", "12345 Neustadt"), True),
        (("Am Kanal 1", "29221 Celle"), True),
        (("14 Quay Street, Galway", "Ireland"), True),
        (("Bahnstr. 42",), False),
        (("12345 Neustadt",), False),
        (("Leeds LS11 5QP",), False),
    ],
)
def test_an_address_without_town_or_street_is_doubted(address: tuple[str, ...], whole: bool) -> None:
    lines = "\n".join(address)
    page = typed_reading(f"Garten GmbH\n{lines}\n\nRechnung Nr. 4711 vom 01.02.2024\n\nGesamtbetrag EUR   119,00")
    found = finish(read_invoice(page), page, load_schema("invoice")).fields["seller_address"]
    assert found.value == ", ".join(address)
    assert (found.confidence > 0.8) is whole
    assert whole or found.confidence <= FAILED_CAP
