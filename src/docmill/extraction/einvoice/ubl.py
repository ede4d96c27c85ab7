"""UBL 2: Invoice and CreditNote."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from docmill.extraction.einvoice.found import Found, Row, address, joined, kept, net, summed, worth
from docmill.extraction.einvoice.tree import every, name_of, one, said

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

ROOTS = frozenset({"Invoice", "CreditNote"})
_OIOUBL = "OIOUBL-2"
"""How the customisation of Danish invoices begins, whose `TaxExclusiveAmount` is the sum of the taxes."""
_XRECHNUNG_EXTENSION = "kosit:extension:xrechnung"
"""In its invoices prepaid payments are claims of others that are collected with the invoice."""


def read_ubl(root: "Element") -> Found:
    """Everything that the invoice or credit note says."""
    credit = name_of(root) == "CreditNote"
    seller = one(root, "AccountingSupplierParty/Party")
    buyer = one(root, "AccountingCustomerParty/Party")
    sums = one(root, "LegalMonetaryTotal", "RequestedMonetaryTotal")
    currency = said(root, "DocumentCurrencyCode") or _currency_of(sums)
    taxes = _tax_totals(root, currency)
    subtotal, total = _subtotal(root, sums), said(sums, "TaxInclusiveAmount")
    counted = _counted(taxes, subtotal, total)
    fields = kept(
        invoice_number=said(root, "ID"),
        type_code=said(root, "CreditNoteTypeCode", "InvoiceTypeCode") or ("381" if credit else None),
        issue_date=said(root, "IssueDate"),
        due_date=said(root, "DueDate", "PaymentMeans/PaymentDueDate", "PaymentTerms/PaymentDueDate"),
        delivery_date=said(root, "Delivery/ActualDeliveryDate"),
        currency=currency,
        seller_name=_name(seller),
        seller_address=_address(seller),
        seller_tax_id=_tax_id(seller),
        buyer_name=_name(buyer),
        buyer_address=_address(buyer),
        buyer_tax_id=_tax_id(buyer),
        order_number=said(root, "OrderReference/ID"),
        subtotal=subtotal,
        tax=said(counted[0], "TaxAmount") if len(counted) == 1 else _sum_of(counted),
        total=total,
        amount_due=said(sums, "PayableAmount"),
        allowances=said(sums, "AllowanceTotalAmount"),
        charges=said(sums, "ChargeTotalAmount"),
        prepaid=said(sums, "PrepaidAmount"),
        rounding=said(sums, "PayableRoundingAmount"),
        payment_terms=" ".join(note for terms in every(root, "PaymentTerms") if (note := said(terms, "Note"))) or None,
        iban=said(root, "PaymentMeans/PayeeFinancialAccount/ID"),
        bic=said(
            root,
            "PaymentMeans/PayeeFinancialAccount/FinancialInstitutionBranch/ID",
            "PaymentMeans/PayeeFinancialAccount/FinancialInstitutionBranch/FinancialInstitution/ID",
        ),
    )
    shares = [
        kept(
            rate=said(share, "TaxCategory/Percent", "Percent"),
            base=said(share, "TaxableAmount"),
            amount=said(share, "TaxAmount"),
        )
        for tax in counted
        for share in every(tax, "TaxSubtotal")
    ]
    kind = "CreditNoteLine" if credit else "InvoiceLine"
    lines = [_line(line) for line in every(root, kind)]
    more = frozenset({"amount_due"} if _collects_for_others(root, fields) else ())
    return Found(syntax="UBL", fields=fields, rows={"line_items": lines, "tax_lines": shares}, made_of_more=more)


def _subtotal(root: "Element", sums: "Element | None") -> str | None:
    danish = (said(root, "CustomizationID") or "").startswith(_OIOUBL)
    stated = None if danish else said(sums, "TaxExclusiveAmount")
    return stated or net(
        said(sums, "LineExtensionAmount"), said(sums, "AllowanceTotalAmount"), said(sums, "ChargeTotalAmount")
    )


def _tax_totals(root: "Element", currency: str | None) -> "list[Element]":
    """Those in the currency of the invoice; there may be another in the currency of the accounts."""

    def foreign(total: "Element") -> bool:
        amount = one(total, "TaxAmount")
        return amount is not None and amount.get("currencyID") not in (None, currency)

    taxes = list(every(root, "TaxTotal"))
    return [tax for tax in taxes if not foreign(tax)] or taxes[:1]


def _counted(taxes: "list[Element]", subtotal: str | None, total: str | None) -> "list[Element]":
    """All of them where they are different taxes that make the total; else the first: one tax may be said twice."""
    net_of, gross, tax = worth(subtotal), worth(total), worth(_sum_of(taxes))
    different = net_of is not None and gross is not None and tax is not None and net_of + tax == gross
    return taxes if different else taxes[:1]


def _sum_of(taxes: "list[Element]") -> str | None:
    return summed([said(tax, "TaxAmount") for tax in taxes])


def _collects_for_others(root: "Element", fields: Mapping[str, str]) -> bool:
    """Whether the amount due holds claims of others, and they are what it has beyond the total."""
    if _XRECHNUNG_EXTENSION not in (said(root, "CustomizationID") or ""):
        return False
    claims = worth(summed([said(paid, "PaidAmount") for paid in every(root, "PrepaidPayment")]))
    total, due = worth(fields.get("total")), worth(fields.get("amount_due"))
    if claims is None or total is None or due is None:
        return False
    paid, rounding = worth(fields.get("prepaid") or "0"), worth(fields.get("rounding") or "0")
    return paid is not None and rounding is not None and total - paid + rounding + claims == due


def _currency_of(sums: "Element | None") -> str | None:
    payable = one(sums, "PayableAmount", "TaxInclusiveAmount")
    return payable.get("currencyID") if payable is not None else None


def _name(party: "Element | None") -> str | None:
    person = one(party, "Person")
    return said(party, "PartyLegalEntity/RegistrationName", "PartyName/Name") or joined(
        said(person, "FirstName"), said(person, "FamilyName")
    )


def _tax_id(party: "Element | None") -> str | None:
    schemes = list(every(party, "PartyTaxScheme"))
    vat = [scheme for scheme in schemes if (said(scheme, "TaxScheme/ID") or "").upper() == "VAT"]
    return next((number for scheme in [*vat, *schemes] if (number := said(scheme, "CompanyID"))), None)


def _address(party: "Element | None") -> str | None:
    place = one(party, "PostalAddress")
    return address(
        joined(said(place, "StreetName"), said(place, "BuildingNumber")),
        said(place, "AdditionalStreetName"),
        *(said(line) for line in every(place, "AddressLine/Line")),
        joined(said(place, "PostalZone"), said(place, "CityName")),
        said(place, "CountrySubentity"),
        said(place, "Country/IdentificationCode"),
    )


def _line(line: "Element") -> Row:
    quantity = one(line, "InvoicedQuantity", "CreditedQuantity")
    return kept(
        description=said(line, "Item/Name", "Item/Description"),
        quantity=said(quantity),
        unit=quantity.get("unitCode") if quantity is not None else None,
        unit_price=said(line, "Price/PriceAmount"),
        tax_rate=said(line, "Item/ClassifiedTaxCategory/Percent", "TaxTotal/TaxSubtotal/TaxCategory/Percent"),
        amount=said(line, "LineExtensionAmount"),
    )
