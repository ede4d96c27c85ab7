"""The sums of an invoice: the whole and not a part of it, however many amounts on the page add up."""

import pytest

from docmill.extraction.extracting import extract
from tests.unit.extraction.typed_pages import typed_reading

_HEAD = """
Nordlicht Handel GmbH
Hafenstrasse 4
20457 Hamburg

Bill to
Kite and Sons Ltd
12 Harbour Lane
Whitby YO21 3PU

Invoice no.  4711
Date         04.03.2026

"""
_GOODS = """Description              Qty     Price     Amount
Rope, 50 m                 2     50.00     100.00
Books on knots            10     30.00     300.00
"""


def _sums(page: str) -> tuple[str | None, ...]:
    fields = extract(typed_reading(_HEAD + page), "invoice").fields
    names = ("subtotal", "tax", "total", "amount_due")
    return tuple(fields[name].value if name in fields else None for name in names)


@pytest.mark.parametrize(
    "rates",
    [
        """
Rate          Net        Tax       Gross
20 %       100.00      20.00      120.00
5 %        300.00      15.00      315.00
Total      400.00      35.00      435.00
""",
        """
Total      400.00      35.00      435.00
of which   100.00  20 %  20.00    120.00
of which   300.00   5 %  15.00    315.00
""",
        """
Rate          Net        Tax       Gross
20 %       100.00      20.00      120.00
5 %        300.00      15.00      315.00

                         To be paid        435.00
""",
        """
Rate          Net        Tax
20 %       100.00      20.00
5 %        300.00      15.00
Sums       400.00      35.00

                         To be paid        435.00
""",
    ],
    ids=["summed beneath", "summed above", "only the gross is summed", "without a gross column"],
)
def test_rows_by_rate_are_parts_and_their_sum_is_the_whole(rates: str) -> None:
    subtotal, tax, total, due = _sums(_GOODS + rates)

    assert (tax, total, due) == ("35.00", "435.00", "435.00")
    assert subtotal == ("400.00" if "400.00" in rates else None)


def test_items_with_tax_and_gross_of_their_own_are_parts_too() -> None:
    page = """
No  Particulars               Taxable        Tax       Total
1   Support in April          3000.00     540.00     3540.00
2   Change of a connector     1000.00     180.00     1180.00
3   Hosting                    500.00      90.00      590.00
    Total                     4500.00     810.00     5310.00
"""

    assert _sums(page) == ("4500.00", "810.00", "5310.00", "5310.00")


@pytest.mark.parametrize("sum_row", ["Total                             400.00    25.00    375.00", ""])
def test_a_price_and_what_is_taken_off_it_are_no_net_and_tax(sum_row: str) -> None:
    page = f"""
Description          Rebate      Price   Discount   Amount
Rope, 50 m             10 %     100.00    10.00     90.00
Books on knots          5 %     300.00    15.00    285.00
{sum_row}

                         Total             375.00
"""

    assert _sums(page)[1:] == (None, "375.00", "375.00")


def test_a_total_may_be_rounded() -> None:
    sums = """
                         Taxable amount    400.00
                         CGST @ 9 %         36.03
                         SGST @ 9 %         36.03
                         Round off          -0.06
                         Total             472.00
"""

    assert _sums(_GOODS + sums) == ("400.00", "72.06", "472.00", "472.00")


def test_the_subtotal_is_what_was_taxed_when_a_discount_comes_first() -> None:
    sums = """
                         Sub total         400.00
                         Discount (10 %)    40.00
                         Taxable amount    360.00
                         CGST9 (9 %)        32.40
                         SGST9 (9 %)        32.40
                         Total             424.80
"""

    assert _sums(_GOODS + sums)[:3] == ("360.00", "64.80", "424.80")


@pytest.mark.parametrize("note", ["(Reverse Charge)", "reverse charge"])
def test_a_reversed_charge_is_a_tax_of_nothing(note: str) -> None:
    sums = f"""
                         Subtotal          400.00
                         VAT 0 % {note}      0.00
                         Total             400.00
"""

    assert _sums(_GOODS + sums) == ("400.00", "0.00", "400.00", "400.00")


@pytest.mark.parametrize("label", ["You owe", "Pay this amount", "Fälliger Betrag", "Importo dovuto", "Fizetendő"])
def test_what_is_owed_is_due(label: str) -> None:
    sums = f"""
                         Total             400.00
                         Insurance        -250.00
                         Your visit        -30.00
                         {label}           120.00
Accounts past due are subject to a fee of 10.00
"""

    assert _sums(_GOODS + sums)[2:] == ("400.00", "120.00")


@pytest.mark.parametrize("label", ["Your last bill", "Previous balance", "Facture précédente", "Saldo anterior"])
def test_what_was_paid_of_an_earlier_bill_is_not_taken_off(label: str) -> None:
    page = f"""
                         {label}           390.00
                         Payment received -390.00
{_GOODS}
                         Subtotal          400.00
                         VAT 20 %           80.00
                         Total             480.00
"""

    assert _sums(page) == ("400.00", "80.00", "480.00", "480.00")


@pytest.mark.parametrize("account", ["account BE55 7370 1551 8077", "sort code 20-55-41, account 73019955"])
def test_groups_of_an_account_are_not_what_is_to_be_paid(account: str) -> None:
    page = (
        _GOODS
        + f"""
Net amount                                 400.00
VAT 5 %                                     20.00
Total                                      420.00

Please pay to {account}
"""
    )
    assert _sums(page) == ("400.00", "20.00", "420.00", "420.00")


def _between(*lines: str) -> tuple[dict[str, str], list[str]]:
    """What stands between the sums of an invoice that ends with these lines, and which rules fail."""
    found = extract(typed_reading(_HEAD + _GOODS + "\n" + "\n".join(lines)), "invoice")
    names = ("allowances", "charges", "withheld")
    values = {name: field.value for name, field in found.fields.items() if name in names}
    return values, [one.name for one in found.checks if not one.passed]


def test_a_discount_and_shipping_between_subtotal_and_total_explain_it() -> None:
    found = _between(
        "Subtotal                             400.00",
        "Discount 10%                         -40.00",
        "Shipping                               9.50",
        "Tax 20%                               72.00",
        "Total USD                            441.50",
    )
    assert found == ({"allowances": "40.00", "charges": "9.50"}, [])


@pytest.mark.parametrize("label", ["Retención IRPF 15 %", "Ritenuta d'acconto 15%", "IRPF -15%", "TDS 15%"])
def test_what_the_buyer_withholds_is_neither_tax_nor_discount(label: str) -> None:
    found = _between(
        "Base imponible                       400,00",
        "IVA 21 %                              84,00",
        f"{label:<36} -60,00",
        "Total a pagar                      424,00 €",
    )
    assert found == ({"withheld": "60.00"}, [])


def test_what_is_withheld_may_be_taken_off_the_total() -> None:
    found = _between(
        "Imponibile                           400,00",
        "IVA 22%                               88,00",
        "Totale fattura                       488,00",
        "Ritenuta d'acconto 20%               -80,00",
        "Netto a pagare                     408,00 €",
    )
    assert found == ({"withheld": "80.00"}, [])


def test_shipping_may_be_what_prices_with_tax_lack_of_the_total() -> None:
    found = _between(
        "Shipping                               9.50",
        "Net                                  341.25",
        "VAT 20%                               68.25",
        "Total USD                            409.50",
    )
    assert found == ({"charges": "9.50"}, [])
