"""Words that the labels of printed forms are made of, in plain text: what has no others is no name."""

import re
from functools import lru_cache

_SMALL = """
a al an and at by d da das de dei del della den der des di die do du e el en et for fur fra i ihr ihre im in is it l
la le les mit no nos notre of on or our per por pour sur the this til to u un und unser unsere uw van vart var vom von
vor vos votre vs we with your y zu zum zur ihrer er ert din deres su sus nuestra nuestro suo vostro vasa nasa nr num
nos no n nn yr
"""
_PARTIES = """
client cliente clientes customer empresa emetteur firma fournisseur kund kunde kunden kundin klant nabywca name nom
odberatel dodavatel proveedor recipient supplier vendedor vendeur vendor asiakas
"""
"""Who is who: no label of a number or a date, unless with another word."""
_WORDS = """
ref refs re id cod tlf tlfn

account accounts acct adjustment adjustments advice agent agente agreement arrival article articles attention balance
bank banking batch bill billing booking branch brought card cardholder carried carrier cash cashier charge charges
cheque class client code comments condition conditions confirmation contact contract contractual copy cost courier
credit currency current customer date dates day days debit delivery department departure deposit detail details
discount discounts docket document driver due electric email enclosed energy fax fee fees flight folio form forward
freight from general goods grade gross gst gstin guest gas help hours hsn hst information insurance invoice item items
job kwh last late line location logo loyalty machine manager matter meter method mobile mode month monthly name need
net new note notes number office online operator order origin original other others outstanding overview owner owing
pack page paid pan party passenger patient pay payable payee payer payment payments period person phone pickup place
please po policy portal post previous price print procedure product program project property purchase qty quantity
rate reading receipt received recipient recovery reference references refund registered registration rep
representative request resp responsible return room rounding route sac sale sales salesman salesperson schedule
service services sheet ship shipment shipped shipper shipping signature site sku slip sort speed state statement
status subject subtotal summary supplier supply support surcharge table tax taxable taxes tel telephone term terminal
terms ticket time title total totals tracking transaction transport travel type unit units upc usage used vat vehicle
vendor visit week weight work worker year you

charges debits credits

abreise abschlag absender adresse allgemein anfahrt angebot angebots anlage anlagen anreise ansprechpartner anz anzahl
artikel auftrag auftrags auftragsnummer auftragsdatum ausfuhrung bank bankverbindung bearbeiter beginn beleg
belegdatum belegnummer bemerkung bemerkungen beschreibung bestell bestelldatum bestellnummer bestellung betrag betreff
bezeichnung blatt brutto buchung buchungsnummer datum debitor einheit einheiten einzelpreis ende fahrer fallig
falligkeit falligkeitsdatum filiale firma gast gebuhr gesamt gesamtbetrag gutschrift haben honorar kasse kassierer konto
kontakt kunde kunden kundennr kundennummer kundenservice kundin leistung leistungen leistungsdatum leistungszeitraum
lieferdatum lieferschein lieferscheinnummer lieferung liquidation mandant marktlokation mahnung mehrwertsteuer menge
mietobjekt mwst nachzahlung netto objekt ort patient pos position positionen preis projekt projektnummer rabatt
rechnung rechnungsdatum rechnungsnr rechnungsnummer referenz sachbearbeiter saldo satz seite seiten skonto soll
sprechzeiten steuer steuersatz strom summe tarif telefon text ubertrag umsatzsteuer unterschrift ust valuta verbrauch
verbrauchsstelle versand versandart vertrag vertragskonto vertragsnummer vertreter verwendungszweck wahrung zahlbar
zahler zahlernummer zahlung zahlungsart zahlungsbedingung zahlungsbedingungen zahlungsziel zeichen zeit zeitraum
zimmer zwischensumme

abonnement acompte adherent adresse affaire agence articles avoir base bl bon bons caisse chambre chantier client
commande commandes commercial commerciale compte conditions contrat date debiteur depart designation devis dossier du
echeance emission emetteur expedition facture facturation fournisseur frais hors ht libelle ligne lignes livraison
livre mode modalite modalites montant montants motif net nom numero numeros objet ordre page paiement payer periode
piece prelevement prestation prestations prix produit produits qte quantite reglement reference references remise
releve representant reservation sejour service siege solde sous suivi tarif taux taxe taxes telephone titre total
transport ttc tva type unite vendeur virement votre

abono abonos agente albaran albaranes almacen articulo base cantidad
cargo cargos debe haber cif cliente clientes codigo comercial concepto
condiciones consumo contrato cuenta cuota datos descripcion descuento direccion documento domiciliacion emision
empresa entrega fecha forma factura facturacion fra habitacion hoja importe impuestos iva lectura matricula nif numero
obra observaciones orden oferta pago pagina pais pedido periodo poblacion potencia precio precios proveedor proyecto
recibo referencia reserva resumen servicio subtotal suministro telefono tipo titular total unidad unidades uds
vencimiento vendedor vto

aliquota arrivo articolo aspetto banca banche bonifico cambio camera causale cig cliente codice colli commessa
condizioni consegna conto corrispettivo cup data ddt descrizione destinatario destinazione documento doc esteriore
fattura firma fiscale imballo imponibile importo imposta indirizzo iva luogo mandato merce mezzo modalita netto numero
oggetto ordine ospite pag pagamento pagina partenza partita peso porto prezzo quantita resa riferimento riga scadenza
scadenze sconto spedizione spese tipo totale totali trasporto unitario valuta vettore vostro

aantal adres artikel bedrag betaling betalingskenmerk betalingsvoorwaarden betreft btw bestelling contactpersoon datum
debiteur debiteurnr debiteurnummer factuur factuurdatum factuurgegevens factuurnr factuurnummer gegevens klant klantnr
klantnummer kenmerk kvk iban leverdatum levering naam omschrijving onderwerp opdracht order pagina periode prijs
project projectnummer referentie relatie rekening rekeningnummer stuks subtotaal tarief te totaal vervaldatum
verzending voldoen voorwaarden werk

adress antal avser bankgiro belopp benamning beskrivning bestallning betalingsbetingelser betalning betalningsvillkor
dato datum dage drojsmalsranta enhed enhet faktura fakturadato fakturadatum fakturanr fakturanummer forfall
forfallodatum forfallsdato forfaldsdato foretaksregisteret kid konto kontonummer kund kunde kundenr kundnr kundnummer
kundenummer leveransdatum leveransvillkor leveringsdato levering mangde mengde moms momsreg mva netto ocr ordernr
ordre ordrenr organisationsnummer orgnr pris rabat rabatt referens referanse referense reference sate side sida sidan
sum summa tekst telefon til titel totalt varenr vare vat villkor asiakasnumero asiakas erapaiva era hinta lasku
laskunumero laskun maara maksuehto paivamaara saaja sivu tilausnumero toimituspaiva viite viitenumero viitteenne
viitteemme yhteensa yksikko

adres cena data dnia dostawy faktura forma ilosc jednostka jm kwota lp miejsce nabywca nazwa netto nip numer opis
platnosc platnosci pozycja razem rachunek rabat sprzedazy stawka strona sposob telefon termin towar uslugi wartosc
wystawienia zamowienie zamowienia castka celkem cena cislo datum dodavatel dph dodani faktura forma mnozstvi nazev
objednavka odberatel plneni platba popis predmet splatnost splatnosti strana uhrada uhrady symbol variabilni vystaveni
zakazka zaklad konstantni ar afa adoszam datum darab esedekes fizetesi hatarido kelte mennyiseg mod netto osszesen
szamla szamlaszam teljesites client cantitate data denumire factura numar pret scadenta serie suma valoare
contribuinte condicoes data descricao encomenda exmo fatura guia local morada pagamento preco quantidade valor
vencimento

amex american express apple visa mastercard maestro paypal klarna giropay sepa twint bancomat contactless zelle stripe
upi sofort swish vipps bizum ideal
"""
_FORM = frozenset(_WORDS.split()) - frozenset(_PARTIES.split())
_ANY = _FORM | frozenset(_PARTIES.split()) | frozenset(_SMALL.split())
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=2048)
def is_form(flat: str) -> bool:
    """Whether a plain text consists of nothing but words of labels, such as `our ref`, `forma de pago`, `bl n°`."""
    words = _WORD.findall(flat)
    return _ANY.issuperset(words) and not _FORM.isdisjoint(words)
