"""What e-invoices say in ways of their own: national customisations, profiles that leave parts out, several taxes."""

import re

import pytest

from docmill.extraction.einvoice import read_einvoice
from docmill.extraction.result import Extraction
from docmill.extraction.schema import load_schema
from tests.unit.extraction.einvoice_texts import CII, ubl

INVOICE = load_schema("invoice")
UBL = ubl()
_TOTALS = re.compile(r"<cac:LegalMonetaryTotal>.*?</cac:LegalMonetaryTotal>", re.DOTALL)
_TAXES = re.compile(r"<cac:TaxTotal>.*</cac:TaxTotal>", re.DOTALL)
_SUMS = re.compile(
    r"(<ram:SpecifiedTradeSettlementHeaderMonetarySummation>).*?(</ram:SpecifiedTradeSettlementHeader)", re.DOTALL
)
_TERMS = re.compile(r"<ram:SpecifiedTradePaymentTerms>.*</ram:SpecifiedTradePaymentTerms>", re.DOTALL)


def value(xml: str, name: str) -> str | None:
    found = read_einvoice(xml, INVOICE).fields.get(name)
    return None if found is None else found.value


def with_totals(**amounts: str) -> str:
    said = "".join(f'<cbc:{name} currencyID="EUR">{amount}</cbc:{name}>' for name, amount in amounts.items())
    return _TOTALS.sub(f"<cac:LegalMonetaryTotal>{said}</cac:LegalMonetaryTotal>", UBL)


def customised(xml: str, customisation: str) -> str:
    return xml.replace(
        " <cbc:ID>R-2026", f" <cbc:CustomizationID>{customisation}</cbc:CustomizationID><cbc:ID>R-2026", 1
    )


def with_taxes(xml: str, *taxes: str) -> str:
    said = (f'<cac:TaxTotal><cbc:TaxAmount currencyID="EUR">{tax}</cbc:TaxAmount></cac:TaxTotal>' for tax in taxes)
    return _TAXES.sub("".join(said), xml)


def with_sums(*amounts: tuple[str, str, str]) -> str:
    said = "".join(f"<ram:{name}{currency}>{amount}</ram:{name}>" for name, currency, amount in amounts)
    return _SUMS.sub(rf"\g<1>{said}\g<2>", CII)


def with_terms(*terms: tuple[str, str, str]) -> str:
    """Each with a day, a description and what else is in it."""
    said = "".join(
        f"<ram:SpecifiedTradePaymentTerms><ram:Description>{text}</ram:Description><ram:DueDateDateTime>"
        f'<udt:DateTimeString format="102">{day}</udt:DateTimeString></ram:DueDateDateTime>{more}'
        "</ram:SpecifiedTradePaymentTerms>"
        for day, text, more in terms
    )
    return _TERMS.sub(said, CII)


def verdicts(found: Extraction) -> tuple[set[str], set[str]]:
    """Names of the rules that are broken, and of those that could not be checked."""
    return {check.name for check in found.checks if not check.passed}, {one.name for one in found.unchecked}


def test_the_sum_of_taxes_of_a_danish_invoice_is_not_its_total_without_tax() -> None:
    xml = with_totals(
        LineExtensionAmount="95.00", TaxExclusiveAmount="19.00", TaxInclusiveAmount="119.00",
        AllowanceTotalAmount="5.00", ChargeTotalAmount="10.00", PayableAmount="119.00",
    )  # fmt: skip
    assert value(customised(xml, "OIOUBL-2.02"), "subtotal") == "100.00"
    assert value(xml, "subtotal") == "19.00"


def test_a_total_without_tax_that_is_not_stated_is_that_of_lines_allowances_and_charges() -> None:
    lines = {"LineExtensionAmount": "95.00", "AllowanceTotalAmount": "5.00", "ChargeTotalAmount": "10.00"}
    assert value(with_totals(**lines, TaxInclusiveAmount="119.00"), "subtotal") == "100.00"
    assert value(with_totals(TaxInclusiveAmount="119.00"), "subtotal") is None
    sums = [("LineTotalAmount", "", "95.00"), ("ChargeTotalAmount", "", "5.00"), ("GrandTotalAmount", "", "119.00")]
    assert value(with_sums(*sums), "subtotal") == "100.00"


def test_a_total_with_tax_that_is_not_stated_is_left_empty() -> None:
    assert value(with_totals(LineExtensionAmount="100.00", PayableAmount="50.00"), "total") is None


def test_different_taxes_are_summed_if_the_total_says_so_and_the_same_tax_counts_once() -> None:
    assert value(with_taxes(UBL, "5.00", "14.00"), "tax") == "19.00"
    assert value(with_taxes(UBL, "19.00", "19.00"), "tax") == "19.00"


_DISCOUNT = "<ram:ApplicableTradePaymentDiscountTerms/>"


@pytest.mark.parametrize(
    "terms",
    [
        [("20260204", "first instalment", ""), ("20260304", "second", ""), ("20260404", "third", "")],
        [("20260312", "2 %", _DISCOUNT), ("20260404", "net", "")],
        [("20260404", "net", ""), ("20260312", "2 %", _DISCOUNT)],
        [("20260404", "zahlbar bis 4. April, 2 % Skonto bis 12. März", "")],
        [("20260312", "3 %", _DISCOUNT), ("20260404", "2 %", _DISCOUNT)],
    ],
    ids=["instalments", "discount first", "discount last", "one for both", "discounts only"],
)
def test_an_invoice_is_due_on_the_last_day_that_is_not_marked_as_one_of_a_discount(
    terms: list[tuple[str, str, str]],
) -> None:
    assert value(with_terms(*terms), "due_date") == "2026-04-04"


def test_totals_are_those_in_the_currency_of_the_invoice() -> None:
    names = {"TaxBasisTotalAmount": "100.00", "TaxTotalAmount": "19.00", "GrandTotalAmount": "119.00"}
    both = [
        (name, f' currencyID="{code}"', "7.00" if code == "USD" else own)
        for name, own in names.items()
        for code in ("USD", "EUR")
    ]
    found = read_einvoice(with_sums(*both, ("DuePayableAmount", "", "119.00")), INVOICE)
    assert [found.fields[name].value for name in ("subtotal", "tax", "total")] == ["100.00", "19.00", "119.00"]


def test_a_tax_that_is_only_said_by_rate_is_the_sum_of_the_rates() -> None:
    xml = with_sums(("TaxBasisTotalAmount", "", "100.00"), ("GrandTotalAmount", "", "119.00"))
    second = "<ram:ApplicableTradeTax><ram:CalculatedAmount>0.50</ram:CalculatedAmount></ram:ApplicableTradeTax>"
    assert value(xml, "tax") == "19.00"
    rate = "    <ram:RateApplicablePercent>19.00</ram:RateApplicablePercent></ram:ApplicableTradeTax>"
    assert value(xml.replace(rate, "<ram:CategoryCode>O</ram:CategoryCode>" + rate, 1), "tax") is None
    assert (
        value(xml.replace("   <ram:SpecifiedTradePaymentTerms>", second + "<ram:SpecifiedTradePaymentTerms>", 1), "tax")
        == "19.50"
    )


def test_a_profile_that_cannot_say_what_was_paid_breaks_no_rule_by_it() -> None:
    xml = with_sums(
        ("TaxBasisTotalAmount", "", "100.00"), ("TaxTotalAmount", "", "19.00"),
        ("GrandTotalAmount", "", "119.00"), ("DuePayableAmount", "", "69.00"),
    )  # fmt: skip
    context = (
        "<rsm:ExchangedDocumentContext><ram:GuidelineSpecifiedDocumentContextParameter><ram:ID>urn:factur-x.eu:1p0:{}"
        "</ram:ID></ram:GuidelineSpecifiedDocumentContextParameter></rsm:ExchangedDocumentContext><rsm:ExchangedDocument>"
    )
    minimum, basic = (
        verdicts(read_einvoice(xml.replace("<rsm:ExchangedDocument>", context.format(profile), 1), INVOICE))
        for profile in ("minimum", "basic")
    )
    assert "due_adds_up" not in minimum[0]
    assert "due_adds_up" in minimum[1]
    assert "due_adds_up" in basic[0]


def test_claims_of_others_in_an_xrechnung_break_no_rule_if_they_make_the_amount_due() -> None:
    paid = '<cac:PrepaidPayment><cbc:PaidAmount currencyID="EUR">30.00</cbc:PaidAmount></cac:PrepaidPayment>'
    xml = with_totals(
        LineExtensionAmount="100.00", TaxExclusiveAmount="100.00", TaxInclusiveAmount="119.00", PayableAmount="149.00"
    ).replace(" <cac:PaymentTerms>", paid + "<cac:PaymentTerms>", 1)
    extension = "urn:cen.eu:en16931:2017#conformant#urn:xeinkauf.de:kosit:extension:xrechnung_3.0"
    assert "due_adds_up" not in verdicts(read_einvoice(customised(xml, extension), INVOICE))[0]
    assert "due_adds_up" in verdicts(read_einvoice(xml, INVOICE))[0]
    wrong = customised(xml, extension).replace(">149.00<", ">150.00<")
    assert "due_adds_up" in verdicts(read_einvoice(wrong, INVOICE))[0]
