"""How invoices are worded, and how amounts and dates are written, in several languages and countries.

On purpose not the vocabulary of the local reader, though words repeat: papers made from the reader's own list would
prove only that it knows its list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

MONTHS: Mapping[str, tuple[str, ...]] = {
    "en": (
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ),
    "de": (
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ),
    "fr": (
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ),
    "nl": (
        "januari",
        "februari",
        "maart",
        "april",
        "mei",
        "juni",
        "juli",
        "augustus",
        "september",
        "oktober",
        "november",
        "december",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """Words and habits of one country."""

    code: str
    country: str
    """ISO code of the country that sellers are in."""
    currency: str
    symbol: str
    symbol_first: bool
    thousands: str
    point: str
    dates: tuple[str, ...]
    """Ways to write a date; `{month}` is the name of the month."""
    words: Mapping[str, str]
    rates: tuple[int, ...]
    """Percent of tax."""
    sellers: tuple[str, ...]
    buyers: tuple[str, ...]
    streets: tuple[str, ...]
    cities: tuple[tuple[str, str], ...]
    """Postcode (or state and code) and name."""
    goods: tuple[str, ...]
    tax_id: str
    """With `#` for digits."""
    iban: str | None = None

    def amount(self, value: Decimal, *, symbol: bool = False, code: bool = False) -> str:
        """An amount as people of the country write it."""
        whole, _, cents = f"{abs(value):,.2f}".partition(".")
        text = whole.replace(",", self.thousands) + self.point + cents
        if symbol:
            text = f"{self.symbol}{text}" if self.symbol_first else f"{text} {self.symbol}"
        elif code:
            text = f"{text} {self.currency}"
        return f"-{text}" if value < 0 else text

    def day(self, value: date, form: int = 0) -> str:
        """A date in one of the country's ways."""
        pattern = self.dates[form % len(self.dates)]
        months = MONTHS.get(self.code[:2], MONTHS["en"])
        return value.strftime(pattern.replace("{month}", months[value.month - 1]))


def _words(text: str) -> dict[str, str]:
    """`key=words; key=words`."""
    return dict(part.strip().split("=", 1) for part in text.split(";"))


LANGUAGES: Mapping[str, Language] = {
    language.code: language
    for language in (
        Language(
            code="en-US",
            country="US",
            currency="USD",
            symbol="$",
            symbol_first=True,
            thousands=",",
            point=".",
            dates=("%m/%d/%Y", "{month} %d, %Y"),
            words=_words(
                "invoice=INVOICE;credit=CREDIT MEMO;number=Invoice #;date=Invoice Date;due=Due Date;to=Bill To;"
                "from=From;description=Description;quantity=Qty;price=Unit Price;line=Amount;subtotal=Subtotal;"
                "tax=Sales Tax;total=Total;payable=Balance Due;paid=Amount Paid;tax_id=EIN;iban=Account;page=Page;"
                "terms=Please pay within {days} days. Thank you for your business!"
            ),
            rates=(6, 8),
            sellers=("Harbor Light Supply Co.", "Bluestone Consulting LLC", "Prairie Print Works, Inc."),
            buyers=("Northfield Academy", "Cascade Outdoor Outfitters", "Mercer & Lane Architects"),
            streets=("410 Juniper Avenue", "88 Wharf Street", "1200 Old Mill Road"),
            cities=(("OR 97204", "Portland"), ("TX 78701", "Austin"), ("VT 05401", "Burlington")),
            goods=(
                "Printed brochures",
                "Consulting hours",
                "Oak shelving",
                "Network switch",
                "Delivery",
                "Toner cartridge",
            ),
            tax_id="##-#######",
        ),
        Language(
            code="en-GB",
            country="GB",
            currency="GBP",
            symbol="£",
            symbol_first=True,
            thousands=",",
            point=".",
            dates=("%d/%m/%Y", "%d {month} %Y"),
            words=_words(
                "invoice=Invoice;credit=Credit Note;number=Invoice No.;date=Date;due=Payment due;to=Invoice to;"
                "from=From;description=Item;quantity=Quantity;price=Price;line=Net;subtotal=Net total;tax=VAT;"
                "total=Total incl. VAT;payable=Amount due;paid=Received;tax_id=VAT Reg No;iban=IBAN;page=Page;"
                "terms=Terms: {days} days net. Please quote the invoice number."
            ),
            rates=(20, 5),
            sellers=("Thistle & Rowan Ltd", "Pennine Instruments plc", "Marlow Catering Services"),
            buyers=("Saltmarsh Primary School", "Kestrel Engineering Ltd", "The Old Granary Hotel"),
            streets=("14 Abbey Lane", "Unit 7, Forge Park", "203 Kingsway"),
            cities=(("LS1 4DY", "Leeds"), ("BS1 6QA", "Bristol"), ("EH3 9DR", "Edinburgh")),
            goods=("Calibration service", "Lunch buffet", "Garden bench", "Pressure gauge", "Carriage", "Site survey"),
            tax_id="GB #########",
            iban="GB##DOCM##############",
        ),
        Language(
            code="de",
            country="DE",
            currency="EUR",
            symbol="€",
            symbol_first=False,
            thousands=".",
            point=",",
            dates=("%d.%m.%Y", "%d. {month} %Y"),
            words=_words(
                "invoice=Rechnung;credit=Gutschrift;number=Rechnungsnummer;date=Rechnungsdatum;due=Fällig am;"
                "to=Rechnung an;from=Von;description=Bezeichnung;quantity=Menge;price=Einzelpreis;line=Gesamt;"
                "subtotal=Zwischensumme netto;tax=USt.;total=Gesamtbetrag;payable=Zu zahlen;paid=Bereits gezahlt;"
                "tax_id=USt-IdNr.;iban=IBAN;page=Seite;terms=Zahlbar innerhalb von {days} Tagen ohne Abzug."
            ),
            rates=(19, 7),
            sellers=("Lindenhof Möbel GmbH", "Bürotechnik Krüger KG", "Gärtnerei Sonnenfeld e.K."),
            buyers=("Stadtwerke Eichental AG", "Praxis Dr. Weiß", "Hansen & Söhne OHG"),
            streets=("Ahornweg 12", "Industriestraße 45", "Am Mühlbach 3"),
            cities=(("20095", "Hamburg"), ("80331", "München"), ("04109", "Leipzig")),
            goods=("Schreibtisch Buche", "Wartung Drucker", "Blumenschmuck", "Montage", "Versandkosten", "Ordner A4"),
            tax_id="DE#########",
            iban="DE## #### #### #### #### ##",
        ),
        Language(
            code="fr",
            country="FR",
            currency="EUR",
            symbol="€",
            symbol_first=False,
            thousands=" ",
            point=",",
            dates=("%d/%m/%Y", "%d {month} %Y"),
            words=_words(
                "invoice=FACTURE;credit=AVOIR;number=Facture n°;date=Date de facture;due=Date d'échéance;to=Facturé à;"
                "from=Émetteur;description=Désignation;quantity=Qté;price=Prix unitaire HT;line=Montant HT;"
                "subtotal=Total HT;tax=TVA;total=Total TTC;payable=Net à payer;paid=Acompte versé;"
                "tax_id=N° TVA;iban=IBAN;page=Page;terms=Paiement à {days} jours par virement."
            ),
            rates=(20, 10),
            sellers=("Atelier du Verger SARL", "Imprimerie Desmarais", "Sécurité Plus SAS"),
            buyers=("Mairie de Valbonne", "Hôtel des Deux Rives", "Librairie L'Encre Bleue"),
            streets=("12 rue des Tilleuls", "4 avenue Jean Moulin", "27 quai de la Fontaine"),
            cities=(("69002", "Lyon"), ("33000", "Bordeaux"), ("67000", "Strasbourg")),
            goods=("Affiches couleur", "Entretien annuel", "Table en chêne", "Main d'œuvre", "Frais de port", "Caméra"),
            tax_id="FR ## #########",
            iban="FR## #### #### #### #### #### ###",
        ),
        Language(
            code="it",
            country="IT",
            currency="EUR",
            symbol="€",
            symbol_first=True,
            thousands=".",
            point=",",
            dates=("%d/%m/%Y", "%d-%m-%Y"),
            words=_words(
                "invoice=FATTURA;credit=NOTA DI CREDITO;number=Fattura n.;date=Data;due=Scadenza;to=Destinatario;"
                "from=Mittente;description=Descrizione;quantity=Quantità;price=Prezzo unitario;line=Importo;"
                "subtotal=Imponibile;tax=IVA;total=Totale fattura;payable=Netto a pagare;paid=Acconto;tax_id=P. IVA;"
                "iban=IBAN;page=Pagina;terms=Pagamento a {days} giorni data fattura."
            ),
            rates=(22, 10),
            sellers=("Officina Bellini S.r.l.", "Tessuti Moretti S.p.A.", "Studio Grafico Aurora"),
            buyers=("Cantina San Lorenzo", "Comune di Montefiore", "Ristorante La Pergola"),
            streets=("Via Garibaldi 18", "Corso Italia 102", "Piazza del Duomo 5"),
            cities=(("50122", "Firenze"), ("20121", "Milano"), ("40121", "Bologna")),
            goods=("Manutenzione impianto", "Tessuto di lino", "Progetto grafico", "Trasporto", "Ricambi", "Etichette"),
            tax_id="IT###########",
            iban="IT##X##########000000######",
        ),
        Language(
            code="es",
            country="ES",
            currency="EUR",
            symbol="€",
            symbol_first=False,
            thousands=".",
            point=",",
            dates=("%d/%m/%Y", "%d-%m-%Y"),
            words=_words(
                "invoice=FACTURA;credit=FACTURA RECTIFICATIVA;number=Nº de factura;date=Fecha;due=Vencimiento;"
                "to=Cliente;from=Emisor;description=Concepto;quantity=Cantidad;price=Precio;line=Importe;"
                "subtotal=Base imponible;tax=IVA;total=Total factura;payable=Total a pagar;paid=Anticipo;"
                "tax_id=NIF;iban=IBAN;page=Página;terms=Forma de pago: transferencia a {days} días."
            ),
            rates=(21, 10),
            sellers=("Cerámicas del Sur S.L.", "Talleres Ibarra S.A.", "Viveros La Encina"),
            buyers=("Colegio Santa Marta", "Hostal El Faro", "Constructora Núñez S.L."),
            streets=("Calle Mayor 21", "Avenida del Puerto 9", "Plaza de España 3"),
            cities=(("41001", "Sevilla"), ("46002", "Valencia"), ("48001", "Bilbao")),
            goods=("Azulejos esmaltados", "Mano de obra", "Olivo en maceta", "Transporte", "Reparación", "Pintura"),
            tax_id="B########",
            iban="ES## #### #### #### #### ####",
        ),
        Language(
            code="nl",
            country="NL",
            currency="EUR",
            symbol="€",
            symbol_first=True,
            thousands=".",
            point=",",
            dates=("%d-%m-%Y", "%d {month} %Y"),
            words=_words(
                "invoice=FACTUUR;credit=CREDITNOTA;number=Factuurnummer;date=Factuurdatum;due=Vervaldatum;to=Aan;from=Van;"
                "description=Omschrijving;quantity=Aantal;price=Prijs;line=Bedrag;subtotal=Subtotaal;tax=BTW;"
                "total=Totaal;payable=Te betalen;paid=Reeds voldaan;tax_id=BTW-nummer;iban=IBAN;page=Pagina;"
                "terms=Gelieve binnen {days} dagen te betalen."
            ),
            rates=(21, 9),
            sellers=("Drukkerij De Haan B.V.", "Fietsatelier Noord", "Van Dijk Installaties B.V."),
            buyers=("Gemeente Waterland", "Café Het Anker", "Museum De Molen"),
            streets=("Kerkstraat 8", "Havenweg 61", "Dorpsplein 2"),
            cities=(("1012 AB", "Amsterdam"), ("3511 CD", "Utrecht"), ("9711 EF", "Groningen")),
            goods=("Drukwerk A5", "Onderhoud cv-ketel", "Stadsfiets", "Arbeidsuren", "Verzendkosten", "Slotset"),
            tax_id="NL#########B01",
            iban="NL##DOCM##########",
        ),
    )
}
