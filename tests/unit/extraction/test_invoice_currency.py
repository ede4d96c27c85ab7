"""The currency of an invoice: what a sign means in the country of the page, and what only looks like a code."""

import pytest

from docmill.extraction.local.invoices import read_invoice
from docmill.extraction.values.currencies import find_currencies
from tests.unit.extraction.typed_pages import typed_reading


def currency(*lines: str, sign: str = "$") -> str | None:
    """The currency of an invoice whose amounts are printed with a sign, and that says these lines too."""
    page = f"""
Harbour Lights Supplies
Invoice no. 55012
Invoice date: 3 April 2031

Description                    Qty    Price        Amount
Steel brackets, galvanised       4    {sign}12.50       {sign}50.00
Mounting rails                   2    {sign}25.00       {sign}50.00

Total                                         {sign}100.00
"""
    found = read_invoice(typed_reading("\n".join(lines) + page)).fields.get("currency")
    return found.value if found else None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        *[
            ("Amount due (CAD)", "CAD"),
            ("HST 10203 0405 RT0001", "CAD"),
            ("Halifax, Nova Scotia B3H 1A1, Canada", "CAD"),
        ],
        *[("NZBN 9429000000017", "NZD"), ("GST no: 98-765-432", "NZD"), ("Total (NZD)", "NZD")],
        *[("ABN 51 824 753 556   GST included", "AUD"), ("Fremantle, Australia", "AUD")],
        *[("Harbour Lights Pte Ltd, UEN 200312345K", "SGD"), ("14 Queen's Road Central, Hong Kong", "HKD")],
        *[("Portland, ME 04101", "USD"), ("All amounts in US dollars", "USD"), ("", "USD")],
        *[("Amounts in Canadian dollars", "CAD"), ("Bill to: Portland, ME 04101. Ship to: Toronto, Canada", "USD")],
    ],
)
def test_the_page_says_whose_dollars_are_meant(line: str, expected: str) -> None:
    assert currency(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [("Org.nr. 987 654 321 MVA", "NOK"), ("CVR 12345678", "DKK"), ("Bankgiro 123-4567", "SEK"), ("Kennitala 1", "ISK")],
)
def test_the_page_says_whose_crowns_are_meant(line: str, expected: str) -> None:
    assert currency(line, sign="kr ") == expected


def test_rand_are_amounts_with_an_r_before_them() -> None:
    assert currency("ART-GRD Garden hose", sign="R ") == "ZAR"


def test_a_code_of_an_exchange_rate_says_nothing_about_the_sign() -> None:
    assert currency("Boston, MA 02109", "Exchange rate CAD 1.37") == "USD"


@pytest.mark.parametrize("text", ["ART-GRD", "LAGER-KR-17-204", "Twin bed, Rm 312", "MODEL_SEK 4"])
def test_parts_of_numbers_and_rooms_are_no_money(text: str) -> None:
    assert find_currencies(text) == []


def test_a_code_behind_a_word_and_a_dash_is_one() -> None:
    assert [found.code for found in find_currencies("Betrag-EUR Rm 12.50 RM 7")] == ["EUR", "MYR", "MYR"]


@pytest.mark.parametrize(
    "line", ["Hose, 27 ft, and cord, 50 ft", "Gross weight 18,420 KGS", "LTL freight", "Bolt Pte. Ltd."]
)
def test_feet_kilograms_and_money_of_the_past_are_no_currency_beside_another(line: str) -> None:
    assert currency(line, "All amounts in USD") == "USD"


def test_forints_are_forints_where_nothing_else_is_named() -> None:
    assert currency(sign="Ft ") == "HUF"
