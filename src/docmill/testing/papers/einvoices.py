"""E-invoices: UBL and CII as bare XML, and PDFs that carry one as an attachment under any name."""

import io
from decimal import Decimal
from xml.sax.saxutils import escape

from docmill.testing.papers.drawing import library
from docmill.testing.papers.facts import InvoiceFacts, Party, cents, invoice_facts
from docmill.testing.papers.invoices import draw
from docmill.testing.papers.paper import Paper

_CUSTOMISATION = "urn:cen.eu:en16931:2017"


def ubl_xml(seed: int = 0, *, language: str | None = None, items: int | None = None, credit: bool = False) -> Paper:
    """An invoice or credit note in UBL."""
    facts = _facts(seed, language=language, items=items, credit=credit)
    return _xml_paper(f"ubl-{seed:04}.xml", ubl(facts), facts)


def cii_xml(seed: int = 0, *, language: str | None = None, items: int | None = None, credit: bool = False) -> Paper:
    """An invoice or credit note in UN/CEFACT's CII."""
    facts = _facts(seed, language=language, items=items, credit=credit)
    return _xml_paper(f"cii-{seed:04}.xml", cii(facts), facts)


def facturx_pdf(
    seed: int = 0,
    *,
    language: str | None = None,
    items: int | None = None,
    attachment: str = "factur-x.xml",
    layout: str = "classic",
    syntax: str = "cii",
    printed_total: Decimal | None = None,
) -> Paper:
    """A PDF with the invoice inside as XML. With `printed_total`, the page says another total than the XML does."""
    facts = _facts(seed, language=language, items=items, credit=False)
    shown = facts if printed_total is None else _with_total(facts, printed_total)
    page, pages = draw(shown, layout)
    xml = cii(facts) if syntax == "cii" else ubl(facts)
    return Paper(
        name=f"facturx-{seed:04}.pdf",
        content=with_attachment(page, attachment, xml.encode()),
        schema="invoice",
        fields=facts.fields(),
        rows=facts.rows(),
        pages=pages,
        layout="einvoice",
    )


def with_attachment(pdf: bytes, name: str, content: bytes) -> bytes:
    """The PDF with a file attached to it."""
    pikepdf = library("pikepdf")
    stream = io.BytesIO()
    with pikepdf.open(io.BytesIO(pdf)) as document:
        spec = pikepdf.AttachedFileSpec(
            document,
            content,
            filename=name,
            mime_type="text/xml",
            creation_date="D:20260101000000Z",
            mod_date="D:20260101000000Z",
            relationship=pikepdf.Name.Alternative,
        )
        document.attachments[name] = spec
        document.Root.AF = pikepdf.Array([document.attachments[name].obj])
        document.save(stream, deterministic_id=True)
    return stream.getvalue()


def _facts(seed: int, *, language: str | None, items: int | None, credit: bool) -> InvoiceFacts:
    return invoice_facts(seed, language=language, items=items, credit=credit, negative=False)


def _xml_paper(name: str, xml: str, facts: InvoiceFacts) -> Paper:
    rows = facts.rows()
    return Paper(name=name, content=xml.encode(), schema="invoice", fields=facts.fields(), rows=rows, layout="einvoice")


def _with_total(facts: InvoiceFacts, total: Decimal) -> InvoiceFacts:
    """The same invoice with a first item that makes the total another one."""
    from dataclasses import replace

    first, *rest = facts.items
    missing = total - facts.total
    price = cents(first.price + missing / (1 + Decimal(first.rate) / 100) / first.quantity)
    return replace(facts, items=(replace(first, price=price), *rest))


def ubl(facts: InvoiceFacts) -> str:
    """The XML text; a credit note has a root element of its own."""
    kind, line, quantity = ("CreditNote", "CreditNoteLine", "CreditedQuantity")
    if not facts.credit:
        kind, line, quantity = ("Invoice", "InvoiceLine", "InvoicedQuantity")
    currency = facts.language.currency

    def amount(tag: str, value: Decimal) -> str:
        return f'<cbc:{tag} currencyID="{currency}">{cents(value)}</cbc:{tag}>'

    subtotals = "".join(
        f"<cac:TaxSubtotal>{amount('TaxableAmount', base)}{amount('TaxAmount', tax)}<cac:TaxCategory><cbc:ID>S</cbc:ID>"
        f"<cbc:Percent>{rate}</cbc:Percent><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:TaxCategory>"
        "</cac:TaxSubtotal>"
        for rate, (base, tax) in facts.taxes.items()
    )
    lines = "".join(
        f'<cac:{line}><cbc:ID>{place}</cbc:ID><cbc:{quantity} unitCode="C62">{item.quantity}</cbc:{quantity}>'
        f"{amount('LineExtensionAmount', item.amount)}<cac:Item><cbc:Name>{escape(item.description)}</cbc:Name>"
        f"<cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>{item.rate}</cbc:Percent><cac:TaxScheme>"
        "<cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:ClassifiedTaxCategory></cac:Item><cac:Price>"
        f"{amount('PriceAmount', item.price)}</cac:Price></cac:{line}>"
        for place, item in enumerate(facts.items, 1)
    )
    code = (
        "CreditNoteTypeCode>381</cbc:CreditNoteTypeCode" if facts.credit else "InvoiceTypeCode>380</cbc:InvoiceTypeCode"
    )
    due = "" if facts.credit else f"<cbc:DueDate>{facts.due}</cbc:DueDate>"
    means = (
        f"<cac:PaymentMeans><cbc:PaymentMeansCode>58</cbc:PaymentMeansCode>"
        f"{f'<cbc:PaymentDueDate>{facts.due}</cbc:PaymentDueDate>' if facts.credit else ''}"
        + (
            f"<cac:PayeeFinancialAccount><cbc:ID>{facts.iban.replace(' ', '')}</cbc:ID></cac:PayeeFinancialAccount>"
            if facts.iban
            else ""
        )
        + "</cac:PaymentMeans>"
    )
    prepaid = amount("PrepaidAmount", facts.paid) if facts.paid else ""
    space = "urn:oasis:names:specification:ubl:schema:xsd"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{kind} xmlns="{space}:{kind}-2" '
        f'xmlns:cac="{space}:CommonAggregateComponents-2" xmlns:cbc="{space}:CommonBasicComponents-2">'
        f"<cbc:CustomizationID>{_CUSTOMISATION}</cbc:CustomizationID><cbc:ID>{facts.number}</cbc:ID>"
        f"<cbc:IssueDate>{facts.issued}</cbc:IssueDate>{due}<cbc:{code}>"
        f"<cbc:DocumentCurrencyCode>{currency}</cbc:DocumentCurrencyCode>"
        f"<cac:AccountingSupplierParty>{_ubl_party(facts.seller)}</cac:AccountingSupplierParty>"
        f"<cac:AccountingCustomerParty>{_ubl_party(facts.buyer)}</cac:AccountingCustomerParty>{means}"
        f"<cac:PaymentTerms><cbc:Note>{escape(facts.language.words['terms'].format(days=facts.days))}</cbc:Note>"
        f"</cac:PaymentTerms><cac:TaxTotal>{amount('TaxAmount', facts.tax)}{subtotals}</cac:TaxTotal>"
        f"<cac:LegalMonetaryTotal>{amount('LineExtensionAmount', facts.subtotal)}"
        f"{amount('TaxExclusiveAmount', facts.subtotal)}{amount('TaxInclusiveAmount', facts.total)}{prepaid}"
        f"{amount('PayableAmount', facts.payable)}</cac:LegalMonetaryTotal>{lines}</{kind}>\n"
    )


def _ubl_party(party: Party) -> str:
    return (
        f"<cac:Party><cac:PartyName><cbc:Name>{escape(party.name)}</cbc:Name></cac:PartyName><cac:PostalAddress>"
        f"<cbc:StreetName>{escape(party.street)}</cbc:StreetName><cbc:CityName>{escape(party.city)}</cbc:CityName>"
        f"<cbc:PostalZone>{escape(party.postcode)}</cbc:PostalZone><cac:Country><cbc:IdentificationCode>{party.country}"
        "</cbc:IdentificationCode></cac:Country></cac:PostalAddress><cac:PartyTaxScheme><cbc:CompanyID>"
        f"{escape(party.tax_id)}</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>"
        f"<cac:PartyLegalEntity><cbc:RegistrationName>{escape(party.name)}</cbc:RegistrationName></cac:PartyLegalEntity>"
        "</cac:Party>"
    )


def cii(facts: InvoiceFacts) -> str:
    """The XML text."""

    def day(tag: str, value: object, space: str = "udt") -> str:
        text = str(value).replace("-", "")
        return f'<ram:{tag}><{space}:DateTimeString format="102">{text}</{space}:DateTimeString></ram:{tag}>'

    def rate(percent: int) -> str:
        return (
            "<ram:TypeCode>VAT</ram:TypeCode><ram:CategoryCode>S</ram:CategoryCode>"
            f"<ram:RateApplicablePercent>{percent}</ram:RateApplicablePercent>"
        )

    taxes = "".join(
        f"<ram:ApplicableTradeTax><ram:CalculatedAmount>{tax}</ram:CalculatedAmount><ram:TypeCode>VAT</ram:TypeCode>"
        f"<ram:BasisAmount>{base}</ram:BasisAmount><ram:CategoryCode>S</ram:CategoryCode>"
        f"<ram:RateApplicablePercent>{percent}</ram:RateApplicablePercent></ram:ApplicableTradeTax>"
        for percent, (base, tax) in facts.taxes.items()
    )
    lines = "".join(
        "<ram:IncludedSupplyChainTradeLineItem><ram:AssociatedDocumentLineDocument>"
        f"<ram:LineID>{place}</ram:LineID></ram:AssociatedDocumentLineDocument><ram:SpecifiedTradeProduct>"
        f"<ram:Name>{escape(item.description)}</ram:Name></ram:SpecifiedTradeProduct><ram:SpecifiedLineTradeAgreement>"
        f"<ram:NetPriceProductTradePrice><ram:ChargeAmount>{item.price}</ram:ChargeAmount>"
        "</ram:NetPriceProductTradePrice></ram:SpecifiedLineTradeAgreement><ram:SpecifiedLineTradeDelivery>"
        f'<ram:BilledQuantity unitCode="C62">{item.quantity}</ram:BilledQuantity></ram:SpecifiedLineTradeDelivery>'
        f"<ram:SpecifiedLineTradeSettlement><ram:ApplicableTradeTax>{rate(item.rate)}</ram:ApplicableTradeTax>"
        f"<ram:SpecifiedTradeSettlementLineMonetarySummation><ram:LineTotalAmount>{item.amount}</ram:LineTotalAmount>"
        "</ram:SpecifiedTradeSettlementLineMonetarySummation></ram:SpecifiedLineTradeSettlement>"
        "</ram:IncludedSupplyChainTradeLineItem>"
        for place, item in enumerate(facts.items, 1)
    )
    iban = ""
    if facts.iban:
        iban = (
            "<ram:SpecifiedTradeSettlementPaymentMeans><ram:TypeCode>58</ram:TypeCode>"
            f"<ram:PayeePartyCreditorFinancialAccount><ram:IBANID>{facts.iban.replace(' ', '')}</ram:IBANID>"
            "</ram:PayeePartyCreditorFinancialAccount></ram:SpecifiedTradeSettlementPaymentMeans>"
        )
    prepaid = f"<ram:TotalPrepaidAmount>{facts.paid}</ram:TotalPrepaidAmount>" if facts.paid else ""
    currency = facts.language.currency
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rsm:CrossIndustryInvoice '
        'xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100" '
        'xmlns:ram="urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100" '
        'xmlns:udt="urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100">'
        "<rsm:ExchangedDocumentContext><ram:GuidelineSpecifiedDocumentContextParameter>"
        f"<ram:ID>{_CUSTOMISATION}</ram:ID></ram:GuidelineSpecifiedDocumentContextParameter>"
        f"</rsm:ExchangedDocumentContext><rsm:ExchangedDocument><ram:ID>{facts.number}</ram:ID>"
        f"<ram:TypeCode>{381 if facts.credit else 380}</ram:TypeCode>{day('IssueDateTime', facts.issued)}"
        f"</rsm:ExchangedDocument><rsm:SupplyChainTradeTransaction>{lines}<ram:ApplicableHeaderTradeAgreement>"
        f"<ram:SellerTradeParty>{_cii_party(facts.seller)}</ram:SellerTradeParty>"
        f"<ram:BuyerTradeParty>{_cii_party(facts.buyer)}</ram:BuyerTradeParty></ram:ApplicableHeaderTradeAgreement>"
        "<ram:ApplicableHeaderTradeDelivery/><ram:ApplicableHeaderTradeSettlement>"
        f"<ram:InvoiceCurrencyCode>{currency}</ram:InvoiceCurrencyCode>{iban}{taxes}<ram:SpecifiedTradePaymentTerms>"
        f"<ram:Description>{escape(facts.language.words['terms'].format(days=facts.days))}</ram:Description>"
        f"{day('DueDateDateTime', facts.due)}</ram:SpecifiedTradePaymentTerms>"
        "<ram:SpecifiedTradeSettlementHeaderMonetarySummation>"
        f"<ram:LineTotalAmount>{facts.subtotal}</ram:LineTotalAmount><ram:TaxBasisTotalAmount>{facts.subtotal}"
        f'</ram:TaxBasisTotalAmount><ram:TaxTotalAmount currencyID="{currency}">{facts.tax}</ram:TaxTotalAmount>'
        f"<ram:GrandTotalAmount>{facts.total}</ram:GrandTotalAmount>{prepaid}"
        f"<ram:DuePayableAmount>{facts.payable}</ram:DuePayableAmount>"
        "</ram:SpecifiedTradeSettlementHeaderMonetarySummation></ram:ApplicableHeaderTradeSettlement>"
        "</rsm:SupplyChainTradeTransaction></rsm:CrossIndustryInvoice>\n"
    )


def _cii_party(party: Party) -> str:
    return (
        f"<ram:Name>{escape(party.name)}</ram:Name><ram:PostalTradeAddress><ram:PostcodeCode>{escape(party.postcode)}"
        f"</ram:PostcodeCode><ram:LineOne>{escape(party.street)}</ram:LineOne><ram:CityName>{escape(party.city)}"
        f"</ram:CityName><ram:CountryID>{party.country}</ram:CountryID></ram:PostalTradeAddress>"
        f'<ram:SpecifiedTaxRegistration><ram:ID schemeID="VA">{escape(party.tax_id)}</ram:ID>'
        "</ram:SpecifiedTaxRegistration>"
    )
