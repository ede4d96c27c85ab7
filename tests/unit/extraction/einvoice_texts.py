"""Small e-invoices written for these tests: one invoice in each syntax, with the same content."""

_RSM = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"
_RAM = "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100"
_UDT = "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100"

CII = f"""<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- a comment before the root -->
<rsm:CrossIndustryInvoice xmlns:rsm="{_RSM}" xmlns:ram="{_RAM}" xmlns:udt="{_UDT}">
 <rsm:ExchangedDocument>
  <ram:ID>R-2026/17</ram:ID><ram:TypeCode>380</ram:TypeCode>
  <ram:IssueDateTime><udt:DateTimeString format="102">20260305</udt:DateTimeString></ram:IssueDateTime>
 </rsm:ExchangedDocument>
 <rsm:SupplyChainTradeTransaction>
  <ram:IncludedSupplyChainTradeLineItem>
   <ram:SpecifiedTradeProduct><ram:Name>Blue paint</ram:Name></ram:SpecifiedTradeProduct>
   <ram:SpecifiedLineTradeAgreement>
    <ram:NetPriceProductTradePrice><ram:ChargeAmount>12.5000</ram:ChargeAmount></ram:NetPriceProductTradePrice>
   </ram:SpecifiedLineTradeAgreement>
   <ram:SpecifiedLineTradeDelivery><ram:BilledQuantity unitCode="C62">8.0000</ram:BilledQuantity>
   </ram:SpecifiedLineTradeDelivery>
   <ram:SpecifiedLineTradeSettlement>
    <ram:ApplicableTradeTax><ram:RateApplicablePercent>19.00</ram:RateApplicablePercent></ram:ApplicableTradeTax>
    <ram:SpecifiedTradeSettlementLineMonetarySummation><ram:LineTotalAmount>100.00</ram:LineTotalAmount>
    </ram:SpecifiedTradeSettlementLineMonetarySummation>
   </ram:SpecifiedLineTradeSettlement>
  </ram:IncludedSupplyChainTradeLineItem>
  <ram:ApplicableHeaderTradeAgreement>
   <ram:SellerTradeParty><ram:Name>Müller &amp;
      Söhne GmbH</ram:Name>
    <ram:PostalTradeAddress><ram:PostcodeCode>10115</ram:PostcodeCode><ram:LineOne>Hof 1</ram:LineOne>
     <ram:CityName>Berlin</ram:CityName><ram:CountryID>DE</ram:CountryID></ram:PostalTradeAddress>
    <ram:SpecifiedTaxRegistration><ram:ID schemeID="FC">201/113/40209</ram:ID></ram:SpecifiedTaxRegistration>
    <ram:SpecifiedTaxRegistration><ram:ID schemeID="VA">DE123456789</ram:ID></ram:SpecifiedTaxRegistration>
   </ram:SellerTradeParty>
   <ram:BuyerTradeParty><ram:Name>Chat Noir SARL</ram:Name></ram:BuyerTradeParty>
   <ram:BuyerOrderReferencedDocument><ram:IssuerAssignedID>PO-9</ram:IssuerAssignedID>
   </ram:BuyerOrderReferencedDocument>
  </ram:ApplicableHeaderTradeAgreement>
  <ram:ApplicableHeaderTradeDelivery><ram:ActualDeliverySupplyChainEvent><ram:OccurrenceDateTime>
   <udt:DateTimeString format="102">20260301</udt:DateTimeString></ram:OccurrenceDateTime>
  </ram:ActualDeliverySupplyChainEvent></ram:ApplicableHeaderTradeDelivery>
  <ram:ApplicableHeaderTradeSettlement>
   <ram:InvoiceCurrencyCode>EUR</ram:InvoiceCurrencyCode>
   <ram:SpecifiedTradeSettlementPaymentMeans>
    <ram:PayeePartyCreditorFinancialAccount><ram:IBANID>DE89 3704 0044 0532 0130 00</ram:IBANID>
    </ram:PayeePartyCreditorFinancialAccount>
    <ram:PayeeSpecifiedCreditorFinancialInstitution><ram:BICID>COBADEFFXXX</ram:BICID>
    </ram:PayeeSpecifiedCreditorFinancialInstitution>
   </ram:SpecifiedTradeSettlementPaymentMeans>
   <ram:ApplicableTradeTax><ram:CalculatedAmount>19.00</ram:CalculatedAmount><ram:BasisAmount>100.00</ram:BasisAmount>
    <ram:RateApplicablePercent>19.00</ram:RateApplicablePercent></ram:ApplicableTradeTax>
   <ram:SpecifiedTradePaymentTerms><ram:Description>2 % until 12 March</ram:Description>
    <ram:DueDateDateTime><udt:DateTimeString format="102">20260312</udt:DateTimeString></ram:DueDateDateTime>
    <ram:ApplicableTradePaymentDiscountTerms/></ram:SpecifiedTradePaymentTerms>
   <ram:SpecifiedTradePaymentTerms><ram:Description>net 30 days</ram:Description>
    <ram:DueDateDateTime><udt:DateTimeString format="102">20260404</udt:DateTimeString></ram:DueDateDateTime>
   </ram:SpecifiedTradePaymentTerms>
   <ram:SpecifiedTradeSettlementHeaderMonetarySummation>
    <ram:LineTotalAmount>100.00</ram:LineTotalAmount><ram:TaxBasisTotalAmount>100.00</ram:TaxBasisTotalAmount>
    <ram:TaxTotalAmount currencyID="GBP">16.00</ram:TaxTotalAmount>
    <ram:TaxTotalAmount currencyID="EUR">19.00</ram:TaxTotalAmount>
    <ram:GrandTotalAmount>119.00</ram:GrandTotalAmount><ram:TotalPrepaidAmount>19.00</ram:TotalPrepaidAmount>
    <ram:DuePayableAmount>100.00</ram:DuePayableAmount>
   </ram:SpecifiedTradeSettlementHeaderMonetarySummation>
  </ram:ApplicableHeaderTradeSettlement>
 </rsm:SupplyChainTradeTransaction>
</rsm:CrossIndustryInvoice>"""

_OLD_NAMES = {
    "CrossIndustryInvoice ": "CrossIndustryDocument ",
    "CrossIndustryInvoice>": "CrossIndustryDocument>",
    "ExchangedDocument>": "HeaderExchangedDocument>",
    "rsm:SupplyChainTradeTransaction": "rsm:SpecifiedSupplyChainTradeTransaction",
    "SpecifiedLineTrade": "SpecifiedSupplyChainTrade",
    "ApplicableHeaderTrade": "ApplicableSupplyChainTrade",
    "RateApplicablePercent": "ApplicablePercent",
    "IssuerAssignedID": "ID",
    "SpecifiedTradeSettlementHeaderMonetarySummation": "SpecifiedTradeSettlementMonetarySummation",
    "SpecifiedTradeSettlementLineMonetarySummation": "SpecifiedTradeSettlementMonetarySummation",
}


def zugferd_1() -> str:
    """The invoice under the names that ZUGFeRD 1.0 had for its parts."""
    text = CII
    for new, old in _OLD_NAMES.items():
        text = text.replace(new, old)
    return text


_CBC = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"
_CAC = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"


def ubl(kind: str = "Invoice") -> str:
    """The invoice in UBL, or as a credit note of the same amounts."""
    quantity = "CreditedQuantity" if kind == "CreditNote" else "InvoicedQuantity"
    code = "381" if kind == "CreditNote" else "380"
    due = "" if kind == "CreditNote" else "<cbc:DueDate>2026-04-04</cbc:DueDate>"
    means = "<cbc:PaymentDueDate>2026-04-04</cbc:PaymentDueDate>" if kind == "CreditNote" else ""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<{kind} xmlns="urn:oasis:names:specification:ubl:schema:xsd:{kind}-2" xmlns:cbc="{_CBC}" xmlns:cac="{_CAC}">
 <cbc:ID>R-2026/17</cbc:ID><cbc:IssueDate>2026-03-05</cbc:IssueDate>{due}
 <cbc:{kind}TypeCode>{code}</cbc:{kind}TypeCode><cbc:DocumentCurrencyCode>EUR</cbc:DocumentCurrencyCode>
 <cac:OrderReference><cbc:ID>PO-9</cbc:ID></cac:OrderReference>
 <cac:AccountingSupplierParty><cac:Party>
  <cac:PartyName><cbc:Name>The painters</cbc:Name></cac:PartyName>
  <cac:PostalAddress><cbc:StreetName>Hof 1</cbc:StreetName><cbc:CityName>Berlin</cbc:CityName>
   <cbc:PostalZone>10115</cbc:PostalZone><cac:Country><cbc:IdentificationCode>DE</cbc:IdentificationCode></cac:Country>
  </cac:PostalAddress>
  <cac:PartyTaxScheme><cbc:CompanyID>201/113/40209</cbc:CompanyID><cac:TaxScheme><cbc:ID>FC</cbc:ID></cac:TaxScheme>
  </cac:PartyTaxScheme>
  <cac:PartyTaxScheme><cbc:CompanyID>DE123456789</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme>
  </cac:PartyTaxScheme>
  <cac:PartyLegalEntity><cbc:RegistrationName>Müller &amp; Söhne GmbH</cbc:RegistrationName></cac:PartyLegalEntity>
 </cac:Party></cac:AccountingSupplierParty>
 <cac:AccountingCustomerParty><cac:Party><cac:PartyName><cbc:Name>Chat Noir SARL</cbc:Name></cac:PartyName></cac:Party>
 </cac:AccountingCustomerParty>
 <cac:Delivery><cbc:ActualDeliveryDate>2026-03-01</cbc:ActualDeliveryDate></cac:Delivery>
 <cac:PaymentMeans>{means}<cac:PayeeFinancialAccount><cbc:ID>DE89370400440532013000</cbc:ID>
  <cac:FinancialInstitutionBranch><cbc:ID>COBADEFFXXX</cbc:ID></cac:FinancialInstitutionBranch>
 </cac:PayeeFinancialAccount></cac:PaymentMeans>
 <cac:PaymentTerms><cbc:Note>net 30 days</cbc:Note></cac:PaymentTerms>
 <cac:TaxTotal><cbc:TaxAmount currencyID="GBP">16.00</cbc:TaxAmount></cac:TaxTotal>
 <cac:TaxTotal><cbc:TaxAmount currencyID="EUR">19.00</cbc:TaxAmount>
  <cac:TaxSubtotal><cbc:TaxableAmount currencyID="EUR">100.00</cbc:TaxableAmount>
   <cbc:TaxAmount currencyID="EUR">19.00</cbc:TaxAmount>
   <cac:TaxCategory><cbc:Percent>19.00</cbc:Percent></cac:TaxCategory></cac:TaxSubtotal></cac:TaxTotal>
 <cac:LegalMonetaryTotal><cbc:LineExtensionAmount currencyID="EUR">100.00</cbc:LineExtensionAmount>
  <cbc:TaxExclusiveAmount currencyID="EUR">100.00</cbc:TaxExclusiveAmount>
  <cbc:TaxInclusiveAmount currencyID="EUR">119.00</cbc:TaxInclusiveAmount>
  <cbc:PrepaidAmount currencyID="EUR">19.00</cbc:PrepaidAmount>
  <cbc:PayableAmount currencyID="EUR">100.00</cbc:PayableAmount></cac:LegalMonetaryTotal>
 <cac:{kind}Line><cbc:ID>1</cbc:ID><cbc:{quantity} unitCode="C62">8</cbc:{quantity}>
  <cbc:LineExtensionAmount currencyID="EUR">100.00</cbc:LineExtensionAmount>
  <cac:Item><cbc:Name>Blue paint</cbc:Name>
   <cac:ClassifiedTaxCategory><cbc:Percent>19</cbc:Percent></cac:ClassifiedTaxCategory></cac:Item>
  <cac:Price><cbc:PriceAmount currencyID="EUR">12.5</cbc:PriceAmount></cac:Price></cac:{kind}Line>
</{kind}>"""
