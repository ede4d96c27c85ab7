"""CII: UN/CEFACT Cross Industry Invoice (D16B and its neighbours) and its forerunner in ZUGFeRD 1.0.

ZUGFeRD 1.0 (`CrossIndustryDocument`) has the same parts under other names; each path is given with both.
"""

from typing import TYPE_CHECKING

from docmill.extraction.einvoice.found import Found, Row, address, joined, kept, net, summed
from docmill.extraction.einvoice.tree import every, one, said

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

ROOTS = frozenset({"CrossIndustryInvoice", "CrossIndustryDocument"})
_MINIMUM = ":minimum"
"""How the profile is named that has no element for what was paid already."""
_NOT_TAXED = "O"
"""The category of what no tax is on: its zero is no tax."""


def read_cii(root: "Element") -> Found:
    """Everything that the invoice says."""
    document = one(root, "ExchangedDocument", "HeaderExchangedDocument")
    trade = one(root, "SupplyChainTradeTransaction", "SpecifiedSupplyChainTradeTransaction")
    agreement = one(trade, "ApplicableHeaderTradeAgreement", "ApplicableSupplyChainTradeAgreement")
    delivery = one(trade, "ApplicableHeaderTradeDelivery", "ApplicableSupplyChainTradeDelivery")
    settlement = one(trade, "ApplicableHeaderTradeSettlement", "ApplicableSupplyChainTradeSettlement")
    sums = one(
        settlement,
        "SpecifiedTradeSettlementHeaderMonetarySummation",
        "SpecifiedTradeSettlementMonetarySummation",
    )
    seller, buyer = one(agreement, "SellerTradeParty"), one(agreement, "BuyerTradeParty")
    currency = said(settlement, "InvoiceCurrencyCode")

    def amount(name: str) -> str | None:
        return _amount(sums, name, currency)

    fields = kept(
        invoice_number=said(document, "ID"),
        type_code=said(document, "TypeCode"),
        issue_date=_date(one(document, "IssueDateTime")),
        due_date=_due_date(settlement),
        delivery_date=_date(one(delivery, "ActualDeliverySupplyChainEvent/OccurrenceDateTime")),
        currency=currency,
        seller_name=said(seller, "Name", "SpecifiedLegalOrganization/TradingBusinessName"),
        seller_address=_address(seller),
        seller_tax_id=_tax_id(seller),
        buyer_name=said(buyer, "Name", "SpecifiedLegalOrganization/TradingBusinessName"),
        buyer_address=_address(buyer),
        buyer_tax_id=_tax_id(buyer),
        order_number=said(
            agreement, "BuyerOrderReferencedDocument/IssuerAssignedID", "BuyerOrderReferencedDocument/ID"
        ),
        subtotal=amount("TaxBasisTotalAmount")
        or net(amount("LineTotalAmount"), amount("AllowanceTotalAmount"), amount("ChargeTotalAmount")),
        tax=amount("TaxTotalAmount") or _sum_of_taxes(settlement, currency),
        total=amount("GrandTotalAmount"),
        amount_due=amount("DuePayableAmount"),
        allowances=amount("AllowanceTotalAmount"),
        charges=amount("ChargeTotalAmount"),
        prepaid=amount("TotalPrepaidAmount"),
        rounding=amount("RoundingAmount"),
        payment_terms=_terms(settlement),
        iban=said(settlement, "SpecifiedTradeSettlementPaymentMeans/PayeePartyCreditorFinancialAccount/IBANID"),
        bic=said(settlement, "SpecifiedTradeSettlementPaymentMeans/PayeeSpecifiedCreditorFinancialInstitution/BICID"),
    )
    taxes = [
        kept(
            rate=said(tax, "RateApplicablePercent", "ApplicablePercent"),
            base=said(tax, "BasisAmount"),
            amount=said(tax, "CalculatedAmount"),
        )
        for tax in every(settlement, "ApplicableTradeTax")
    ]
    lines = [_line(line) for line in every(trade, "IncludedSupplyChainTradeLineItem")]
    profile = said(root, "ExchangedDocumentContext/GuidelineSpecifiedDocumentContextParameter/ID") or ""
    more = frozenset({"amount_due"} if profile.endswith(_MINIMUM) else ())
    return Found(syntax="CII", fields=fields, rows={"line_items": lines, "tax_lines": taxes}, made_of_more=more)


def _date(node: "Element | None") -> str | None:
    return said(node, "DateTimeString", "DateTime", "DateString", "Date")


def _due_date(settlement: "Element | None") -> str | None:
    """The last day that is named without a discount: by then all of it is to be paid, the last instalment too.

    If all are with a discount, the last: the longer one may take, the less is given. A discount that only words tell
    is not known as one.
    """
    terms = [(term, day) for term in every(settlement, "SpecifiedTradePaymentTerms") if (day := _due(term))]
    plain = [day for term, day in terms if one(term, "ApplicableTradePaymentDiscountTerms") is None]
    return next(reversed(plain or [day for _, day in terms]), None)


def _due(terms: "Element") -> str | None:
    return _date(one(terms, "DueDateDateTime"))


def _terms(settlement: "Element | None") -> str | None:
    said_there = (said(terms, "Description") for terms in every(settlement, "SpecifiedTradePaymentTerms"))
    return " ".join(terms for terms in said_there if terms) or None


def _amount(sums: "Element | None", name: str, currency: str | None) -> str | None:
    """That in the currency of the invoice: there may be a second one in the currency of the accounts."""
    amounts = list(every(sums, name))
    own = [amount for amount in amounts if amount.get("currencyID") in (None, currency)]
    return next((text for amount in (own or amounts) if (text := said(amount))), None)


def _sum_of_taxes(settlement: "Element | None", currency: str | None) -> str | None:
    """For invoices that say the taxes by rate and not their sum."""
    taxes = [tax for tax in every(settlement, "ApplicableTradeTax") if said(tax, "CategoryCode") != _NOT_TAXED]
    amounts = [amount for tax in taxes for amount in every(tax, "CalculatedAmount")]
    return summed([said(amount) for amount in amounts if amount.get("currencyID") in (None, currency)])


def _tax_id(party: "Element | None") -> str | None:
    found = {number.get("schemeID"): said(number) for number in every(party, "SpecifiedTaxRegistration/ID")}
    return found.get("VA") or next((number for number in found.values() if number), None)


def _address(party: "Element | None") -> str | None:
    place = one(party, "PostalTradeAddress")
    return address(
        said(place, "LineOne"),
        said(place, "LineTwo"),
        said(place, "LineThree"),
        said(place, "StreetName"),
        joined(said(place, "PostcodeCode"), said(place, "CityName")),
        said(place, "CountryID"),
    )


def _line(line: "Element") -> Row:
    product = one(line, "SpecifiedTradeProduct")
    agreement = one(line, "SpecifiedLineTradeAgreement", "SpecifiedSupplyChainTradeAgreement")
    delivery = one(line, "SpecifiedLineTradeDelivery", "SpecifiedSupplyChainTradeDelivery")
    settlement = one(line, "SpecifiedLineTradeSettlement", "SpecifiedSupplyChainTradeSettlement")
    quantity = one(delivery, "BilledQuantity")
    status = said(line, "AssociatedDocumentLineDocument/LineStatusReasonCode")
    return kept(
        # Lines that sum up or explain others: their amounts are part of theirs.
        summary="yes" if status in ("GROUP", "INFORMATION") else None,
        description=said(product, "Name", "Description")
        or said(line, "AssociatedDocumentLineDocument/IncludedNote/Content"),
        quantity=said(quantity),
        unit=quantity.get("unitCode") if quantity is not None else None,
        unit_price=said(
            agreement, "NetPriceProductTradePrice/ChargeAmount", "GrossPriceProductTradePrice/ChargeAmount"
        ),
        tax_rate=said(settlement, "ApplicableTradeTax/RateApplicablePercent", "ApplicableTradeTax/ApplicablePercent"),
        amount=said(
            settlement,
            "SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount",
            "SpecifiedTradeSettlementMonetarySummation/LineTotalAmount",
        ),
    )
