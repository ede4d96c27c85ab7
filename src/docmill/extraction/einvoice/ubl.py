"""UBL 2: Invoice and CreditNote."""

from typing import TYPE_CHECKING

from docmill.extraction.einvoice.found import Found, Row, address, joined, kept
from docmill.extraction.einvoice.tree import every, name_of, one, said

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

ROOTS = frozenset({"Invoice", "CreditNote"})


def read_ubl(root: "Element") -> Found:
    """Everything that the invoice or credit note says."""
    credit = name_of(root) == "CreditNote"
    seller = one(root, "AccountingSupplierParty/Party")
    buyer = one(root, "AccountingCustomerParty/Party")
    sums = one(root, "LegalMonetaryTotal", "RequestedMonetaryTotal")
    currency = said(root, "DocumentCurrencyCode")
    taxes = _tax_totals(root, currency)
    fields = kept(
        invoice_number=said(root, "ID"),
        type_code=said(root, "CreditNoteTypeCode", "InvoiceTypeCode") or ("381" if credit else None),
        issue_date=said(root, "IssueDate"),
        due_date=said(root, "DueDate", "PaymentMeans/PaymentDueDate", "PaymentTerms/PaymentDueDate"),
        delivery_date=said(root, "Delivery/ActualDeliveryDate"),
        currency=currency or _currency_of(sums),
        seller_name=_name(seller),
        seller_address=_address(seller),
        seller_tax_id=_tax_id(seller),
        buyer_name=_name(buyer),
        buyer_address=_address(buyer),
        buyer_tax_id=_tax_id(buyer),
        order_number=said(root, "OrderReference/ID"),
        subtotal=said(sums, "TaxExclusiveAmount", "LineExtensionAmount"),
        tax=said(taxes[0], "TaxAmount") if taxes else None,
        total=said(sums, "TaxInclusiveAmount"),
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
        for total in taxes[:1]
        for share in every(total, "TaxSubtotal")
    ]
    kind = "CreditNoteLine" if credit else "InvoiceLine"
    lines = [_line(line) for line in every(root, kind)]
    return Found(syntax="UBL", fields=fields, rows={"line_items": lines, "tax_lines": shares})


def _tax_totals(root: "Element", currency: str | None) -> "list[Element]":
    """Those in the currency of the invoice first: there may be a second one in the currency of the accounts."""

    def foreign(total: "Element") -> bool:
        amount = one(total, "TaxAmount")
        return amount is not None and amount.get("currencyID") not in (None, currency)

    return sorted(every(root, "TaxTotal"), key=foreign)


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
