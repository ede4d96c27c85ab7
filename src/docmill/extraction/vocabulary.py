"""Words by which people name their documents, in the languages documents come in."""

TITLES: dict[str, tuple[str, ...]] = {
    "invoice": (
        *("invoice", "tax invoice", "rechnung", "facture", "fattura", "factura", "fatura", "faktura", "factuur"),
        *("lasku", "számla", "faktúra", "račun", "invoice / rechnung", "abschlagsrechnung", "schlussrechnung"),
        *("teilrechnung", "rechnung nr", "note d'honoraires", "faktura vat", "inbois", "invois", "arve", "sąskaita"),
    ),
    "credit_note": (
        *("credit note", "credit memo", "creditnote", "gutschrift", "rechnungskorrektur", "korrekturrechnung"),
        *("stornorechnung", "storno", "avoir", "facture d'avoir", "note de crédit", "nota di credito"),
        *("nota de crédito", "abono", "factura rectificativa", "creditnota", "kreditnota", "kreditfaktura"),
        *("faktura korygująca", "korekta", "hyvityslasku", "dobropis", "jóváíró számla", "credit invoice"),
    ),
    "receipt": (
        *("receipt", "official receipt", "sales receipt", "cash receipt", "cash bill", "cash sale", "cash sales"),
        *("kassenbon", "kassenbeleg", "kassabon", "quittung", "ticket de caisse", "reçu"),
        *("scontrino", "documento commerciale", "ricevuta", "recibo", "factura simplificada", "kvittering", "kvitto"),
        *("paragon", "paragon fiskalny", "nyugta", "resit", "struk", "kuitti", "účtenka", "talão", "sales slip"),
        *("guest check", "pos slip", "kassenquittung"),
    ),
    "order": (
        *("purchase order", "order confirmation", "sales order", "work order", "auftragsbestätigung", "bestellung"),
        *("auftrag", "bon de commande", "confirmation de commande", "ordine", "ordine d'acquisto", "conferma d'ordine"),
        *("pedido", "orden de compra", "confirmación de pedido", "encomenda", "bestelling", "orderbevestiging"),
        *("inkooporder", "zamówienie", "tilaus", "tilausvahvistus", "orderbekräftelse", "ordrebekreftelse"),
        *("objednávka", "megrendelés", "p.o."),
    ),
    "delivery_note": (
        *("delivery note", "delivery order", "packing slip", "packing list", "dispatch note", "lieferschein"),
        *("warenbegleitschein", "bon de livraison", "bordereau de livraison", "documento di trasporto", "bolla"),
        *("albarán", "nota de entrega", "guia de remessa", "guia de transporte", "pakbon", "leveringsbon"),
        *("vrachtbrief", "følgeseddel", "följesedel", "dodací list", "szállítólevél", "lähete", "list przewozowy"),
    ),
    "quote": (
        *("quotation", "quote", "estimate", "offer", "angebot", "kostenvoranschlag", "offerte", "devis"),
        *("preventivo", "offerta", "presupuesto", "cotización", "orçamento", "oferta", "tilbud", "offert", "tarjous"),
        *("nabídka", "árajánlat", "proposal"),
    ),
    "reminder": (
        *("reminder", "payment reminder", "overdue notice", "final notice", "mahnung", "zahlungserinnerung"),
        *("rappel", "relance", "mise en demeure", "sollecito", "sollecito di pagamento", "recordatorio de pago"),
        *("aviso de cobro", "herinnering", "aanmaning", "betalingsherinnering", "betalningspåminnelse"),
        *("betalingspåminnelse", "rykker", "maksumuistutus", "wezwanie do zapłaty", "upomínka"),
    ),
    "statement": (
        *("statement", "statement of account", "account statement", "bank statement", "kontoauszug"),
        *("kontoübersicht", "relevé de compte", "relevé bancaire", "estratto conto", "extracto de cuenta"),
        *("extracto bancario", "estado de cuenta", "extrato", "extrato bancário", "rekeningoverzicht"),
        *("rekeningafschrift", "kontoutdrag", "kontoudskrift", "wyciąg z konta", "výpis z účtu", "tiliote"),
    ),
}
"""What stands over a document of each type."""

GROUPS: dict[str, tuple[str, ...]] = {
    "cash": (
        *("cash", "change", "tendered", "cashier", "visa", "mastercard", "maestro", "debit", "change due", "till"),
        *("rounding", "bargeld", "bar", "rückgeld", "gegeben", "girocard", "ec-karte", "kasse", "es bediente sie"),
        *("espèces", "rendu", "carte bancaire", "caisse", "contante", "contanti", "resto", "bancomat", "efectivo"),
        *("cambio", "tarjeta", "troco", "dinheiro", "wisselgeld", "contant", "pinnen", "kontant", "byttepenge"),
        *("tunai", "baki", "gotówka", "reszta", "készpénz", "thank you", "please come again", "vielen dank"),
        *("goods sold are not returnable", "counter", "member", "terminal"),
    ),
    "bank": ("iban", "bic", "swift", "bank account", "account number", "kontonummer", "bankverbindung", "sepa", "rib"),
    "due": (
        *("due date", "payment due", "payable", "payment terms", "fällig", "fälligkeit", "zahlbar", "zahlungsziel"),
        *(
            "skonto",
            "échéance",
            "date d'échéance",
            "scadenza",
            "vencimiento",
            "vencimento",
            "vervaldatum",
            "betaaltermijn",
        ),
        *("forfaldsdato", "förfallodatum", "eräpäivä", "termin płatności", "splatnost", "amount due", "balance due"),
    ),
    "parties": (
        *("bill to", "billed to", "ship to", "sold to", "customer", "customer number", "kunde", "kundennummer"),
        *(
            "kunden-nr",
            "rechnungsempfänger",
            "client",
            "n° client",
            "adresse de facturation",
            "cliente",
            "destinatario",
        ),
        *("klant", "klantnummer", "kund", "nabywca", "odběratel", "vevő", "lieferadresse", "leistungsempfänger"),
    ),
    "tax": (
        *(
            "vat",
            "mwst",
            "ust",
            "ust-id",
            "tva",
            "iva",
            "gst",
            "sst",
            "btw",
            "moms",
            "alv",
            "dph",
            "áfa",
            "cgst",
            "sgst",
        ),
        *("umsatzsteuer", "mehrwertsteuer", "sales tax", "tax"),
    ),
    "total": (
        *("total", "grand total", "gesamt", "gesamtbetrag", "summe", "endbetrag", "totale", "montant", "total ttc"),
        *("betrag", "totaal", "importe", "razem", "celkem", "jumlah", "subtotal", "nettobetrag", "zwischensumme"),
    ),
    "table": (
        *("qty", "quantity", "unit price", "description", "menge", "einzelpreis", "bezeichnung", "pos", "artikel"),
        *("quantité", "prix unitaire", "désignation", "quantità", "prezzo", "descrizione", "cantidad", "precio"),
        *("aantal", "prijs", "omschrijving", "antal", "ilość", "cena", "množství", "einheit", "hsn", "sac"),
    ),
    "letter": (
        *("dear sir", "dear madam", "dear mr", "dear ms", "dear mrs", "dear customer", "yours sincerely", "sincerely"),
        *(
            "kind regards",
            "best regards",
            "sehr geehrte",
            "mit freundlichen grüßen",
            "madame, monsieur",
            "cordialement",
        ),
        *(
            "salutations distinguées",
            "gentile",
            "egregio",
            "distinti saluti",
            "cordiali saluti",
            "estimado",
            "estimada",
        ),
        *("atentamente", "geachte", "met vriendelijke groet", "prezado", "med venlig hilsen", "med vänlig hälsning"),
    ),
    "goods_only": (
        *("deliver to", "shipped", "carrier", "tracking", "weight", "gross weight", "lieferdatum", "versandart"),
        *("gewicht", "colis", "livré", "received by", "empfangen", "vettore", "colli", "peso"),
    ),
    "promise": (
        *("valid until", "we are pleased to offer", "gültig bis", "wir bieten", "freibleibend", "valable jusqu'au"),
        *("valido fino al", "válido hasta", "geldig tot", "please supply", "we hereby order", "bitte liefern sie"),
    ),
}
"""Words that stand on some types and not on others."""
