"""Other ways to say what invoices say: labels that people use besides the usual ones, and names that nobody has."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What one country calls the parts of an invoice; every list begins with what is most usual."""

    labels: Mapping[str, tuple[str, ...]]
    ends: tuple[str, ...]
    """Legal forms, and none."""


def _wording(text: str, ends: str) -> Wording:
    """`key=one|another; key=…`, and legal forms with bars between."""
    pairs = (part.strip().split("=", 1) for part in text.split(";"))
    return Wording(labels={key: tuple(words.split("|")) for key, words in pairs}, ends=tuple(ends.split("|")))


WORDINGS: Mapping[str, Wording] = {
    "en": _wording(
        "number=Invoice No.|Invoice #|Ref|Document|Our reference|No.|Inv.;"
        "date=Invoice date|Date|Issued|Dated|Tax point;"
        "due=Due date|Pay by|Payable until|Due;to=Bill to|Invoice to|Client|To|For;ship=Ship to|Deliver to|Site;"
        "order=Order No.|PO number|Your reference|Job;customer=Customer No.|Account|Client ID;"
        "supplied=Delivery date|Service period|Supplied on|Order date;subtotal=Subtotal|Net|Goods|Total excl. tax;"
        "tax=VAT|Tax|Sales tax;total=Total|Grand total|Invoice total|Total incl. tax|Sum;paid=Paid|Deposit|Received;"
        "payable=Balance due|Amount due|To pay|Outstanding;discount=2 % discount if paid by {day};"
        "contact=Your contact: {name}",
        "Ltd|Inc.|LLC|plc|& Co.|",
    ),
    "de": _wording(
        "number=Rechnungsnummer|Rechnung Nr.|Beleg|Nr.|RG-Nr.|Vorgang|Unser Zeichen;date=Rechnungsdatum|Datum|"
        "Ausgestellt am|Belegdatum;due=Fällig am|Zahlbar bis|Zahlungsziel;to=Rechnung an|Kunde|An|Auftraggeber;"
        "ship=Lieferanschrift|Lieferung an|Baustelle;order=Bestellnummer|Auftrag|Ihr Zeichen;"
        "customer=Kundennummer|Kd-Nr.|Debitor;supplied=Lieferdatum|Leistungszeitraum|Bestellt am;"
        "subtotal=Nettobetrag|Summe netto|Zwischensumme|Warenwert;tax=MwSt.|USt.|Umsatzsteuer;"
        "total=Gesamtbetrag|Rechnungsbetrag|Bruttobetrag|Summe|Endsumme;paid=Anzahlung|Bereits gezahlt;"
        "payable=Zu zahlen|Restbetrag|Zahlbetrag;discount=2 % Skonto bei Zahlung bis {day};"
        "contact=Es betreut Sie: {name}",
        "GmbH|KG|AG|e.K.|GmbH & Co. KG|",
    ),
    "fr": _wording(
        "number=Facture n°|N° de facture|Référence|Pièce n°|Réf.;date=Date de facture|Date|Le|Émise le;"
        "due=Échéance|À régler avant le|Date limite;to=Facturé à|Client|À l'attention de|Destinataire;"
        "ship=Livré à|Chantier;order=Commande n°|Votre réf.|Bon de commande;customer=Code client|N° client;"
        "supplied=Date de livraison|Prestation du|Commandé le;subtotal=Total HT|Montant HT|Net HT;tax=TVA|Taxe;"
        "total=Total TTC|Montant TTC|Total|À payer TTC;paid=Acompte|Déjà réglé;payable=Net à payer|Reste dû|Solde;"
        "discount=Escompte 2 % avant le {day};contact=Votre interlocuteur : {name}",
        "SARL|SAS|SA|EURL|& Fils|",
    ),
    "it": _wording(
        "number=Fattura n.|Numero|Documento|Rif.;date=Data|Data fattura|Del|Emessa il;due=Scadenza|Da pagare entro;"
        "to=Spett.le|Cliente|Destinatario;ship=Destinazione merce|Consegna a;order=Ordine n.|Vs. rif.;"
        "customer=Codice cliente;supplied=Data consegna|Data ordine;subtotal=Imponibile|Totale netto;tax=IVA|Imposta;"
        "total=Totale fattura|Totale documento|Totale;paid=Acconto|Versato;payable=Netto a pagare|Saldo;"
        "discount=Sconto 2 % entro il {day};contact=Referente: {name}",
        "S.r.l.|S.p.A.|S.n.c.|di Rossi|",
    ),
    "es": _wording(
        "number=Factura nº|Nº factura|Número|Ref.;date=Fecha|Fecha factura|Emitida el;due=Vencimiento|Pagar antes del;"
        "to=Cliente|Facturar a|Para;ship=Entregar en|Obra;order=Pedido|Su referencia;customer=Nº cliente|Código;"
        "supplied=Fecha de entrega|Fecha pedido;subtotal=Base imponible|Subtotal|Importe neto;tax=IVA|Cuota;"
        "total=Total factura|Total|Importe total;paid=Anticipo|Pagado;payable=Total a pagar|Pendiente|Líquido;"
        "discount=2 % de descuento antes del {day};contact=Contacto: {name}",
        "S.L.|S.A.|S.L.U.|e Hijos|",
    ),
    "nl": _wording(
        "number=Factuurnummer|Factuur nr.|Kenmerk|Nr.;date=Factuurdatum|Datum|Opgemaakt;"
        "due=Vervaldatum|Te voldoen voor;"
        "to=Aan|Klant|Factuur voor;ship=Afleveradres|Locatie;order=Ordernummer|Uw kenmerk;customer=Klantnummer|Relatie;"
        "supplied=Leverdatum|Besteld op;subtotal=Subtotaal|Netto|Totaal excl. BTW;tax=BTW;"
        "total=Totaal|Totaal incl. BTW|Factuurbedrag;paid=Voldaan|Aanbetaling;payable=Te betalen|Nog te voldoen|Saldo;"
        "discount=2 % korting bij betaling voor {day};contact=Contactpersoon: {name}",
        "B.V.|N.V.|V.O.F.|& Zn.|",
    ),
}
_FIRST = (
    "Al",
    "Bor",
    "Cas",
    "Dor",
    "El",
    "Fen",
    "Gar",
    "Hol",
    "Ing",
    "Jas",
    "Kel",
    "Lum",
    "Mar",
    "Nor",
    "Or",
    "Pel",
    "Quin",
    "Ros",
    "Sol",
    "Tor",
    "Ul",
    "Ver",
    "Wil",
    "Yar",
    "Zan",
)
_LAST = (
    "adis",
    "bach",
    "berg",
    "dale",
    "eta",
    "feld",
    "gard",
    "ico",
    "inga",
    "lund",
    "mont",
    "nova",
    "olis",
    "port",
    "rano",
    "stad",
    "tec",
    "ura",
    "vale",
    "wick",
)
_TRADE: Mapping[str, tuple[str, ...]] = {
    "en": ("Trading", "Design", "Supplies", "Catering", "Print", "Systems", ""),
    "de": ("Technik", "Handel", "Bau", "Verlag", "Elektro", "Medien", ""),
    "fr": ("Services", "Bâtiment", "Conseil", "Transports", "Éditions", ""),
    "it": ("Impianti", "Forniture", "Grafica", "Trasporti", ""),
    "es": ("Servicios", "Suministros", "Talleres", "Obras", ""),
    "nl": ("Techniek", "Handel", "Bouw", "Drukwerk", ""),
}


def root(random: Random) -> str:
    """A word that could be a name."""
    return random.choice(_FIRST) + random.choice(_LAST)


def company(language: str, random: Random) -> str:
    """The name of a company: one or two words of its own, its trade, its legal form, any of these left out."""
    own = [root(random)] if random.random() < 0.7 else [root(random), random.choice("&-"), root(random)]
    name = " ".join([*own, random.choice(_TRADE[language]), random.choice(WORDINGS[language].ends)])
    name = " ".join(name.split()).replace(" - ", "-")
    return name.upper() if random.random() < 0.15 else name


def label(language: str, key: str, random: Random, *, usual: float) -> str:
    """What something is called: by the most usual word this often, else by any."""
    words = WORDINGS[language].labels[key]
    return words[0] if random.random() < usual else random.choice(words)
