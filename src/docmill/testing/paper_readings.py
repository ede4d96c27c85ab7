"""Business papers as they would have been read: invoices, receipts, orders, letters and the like, in some languages.

Each is a `Reading` made from lines of text, without a file: for teaching and testing what looks at words and places.
"""

from collections.abc import Sequence
from hashlib import sha256
from itertools import product

from docmill.documents.reading import Box, Format, Line, Page, Reading, TextSource, Word

_A4 = (595.0, 842.0)
_ROLL = (300.0, 900.0)


def paper(lines: Sequence[str], *, size: tuple[float, float] = _A4, heading: int = 0) -> Reading:
    """Lines of text as one page, from top to bottom; the first `heading` of them in large type."""
    wide, high = size
    step = min(0.025, 0.94 / max(1, len(lines)))
    placed = []
    for number, text in enumerate(lines):
        if not text.strip():
            continue
        top = 0.03 + number * step
        height = step * (0.95 if number < heading else 0.6)
        at, words = 0.08, []
        for word in text.split():
            width = min(0.9 - at, len(word) * 5.5 / wide)
            words.append(Word(text=word, box=Box(at, top, at + max(0.005, width), top + height)))
            at = min(0.88, at + width + 4 / wide)
        placed.append(Line(words=tuple(words)))
    page = Page(number=1, width=wide, height=high, source=TextSource.EMBEDDED, lines=tuple(placed))
    return Reading(sha256=sha256("\n".join(lines).encode()).hexdigest(), format=Format.PDF, pages=(page,))


_TITLES = {
    "order": ("Purchase Order", "Bestellung", "Bon de commande", "Ordine d'acquisto", "Pedido", "Inkooporder"),
    "delivery_note": (
        "Delivery Note",
        "Lieferschein",
        "Bon de livraison",
        "Documento di trasporto",
        "Albarán",
        "Pakbon",
    ),
    "quote": ("Quotation", "Angebot", "Devis", "Preventivo", "Presupuesto", "Offerte"),
    "reminder": (
        *("Payment Reminder", "Zahlungserinnerung", "Rappel", "Sollecito di pagamento", "Recordatorio de pago"),
        "Betalingsherinnering",
    ),
    "statement": (
        *("Statement of Account", "Kontoauszug", "Relevé de compte", "Estratto conto", "Extracto de cuenta"),
        "Rekeningoverzicht",
    ),
    "letter": ("", "", "", "", "", ""),
    "invoice": ("Invoice", "Rechnung", "Facture", "Fattura", "Factura", "Factuur"),
    "credit_note": ("Credit Note", "Gutschrift", "Avoir", "Nota di credito", "Nota de crédito", "Creditnota"),
    "receipt": ("Receipt", "Kassenbon", "Ticket de caisse", "Scontrino", "Recibo", "Kassabon"),
}
_WORDS = (
    (
        "Date",
        "Number",
        "Description",
        "Quantity",
        "Unit price",
        "Total",
        "Dear Sir",
        "Kind regards",
        "VAT",
        "Cash",
        "Change",
    ),
    (
        *("Datum", "Nummer", "Bezeichnung", "Menge", "Einzelpreis", "Gesamtbetrag", "Sehr geehrte Damen und Herren"),
        *("Mit freundlichen Grüßen", "MwSt", "Bar", "Rückgeld"),
    ),
    (
        *("Date", "Numéro", "Désignation", "Quantité", "Prix unitaire", "Total TTC", "Madame, Monsieur"),
        *("Cordialement", "TVA", "Espèces", "Rendu"),
    ),
    (
        *("Data", "Numero", "Descrizione", "Quantità", "Prezzo", "Totale", "Gentile cliente", "Distinti saluti"),
        *("IVA", "Contanti", "Resto"),
    ),
    (
        *("Fecha", "Número", "Descripción", "Cantidad", "Precio", "Importe", "Estimado cliente", "Atentamente"),
        *("IVA", "Efectivo", "Cambio"),
    ),
    (
        *("Datum", "Nummer", "Omschrijving", "Aantal", "Prijs", "Totaal", "Geachte heer", "Met vriendelijke groet"),
        *("BTW", "Contant", "Wisselgeld"),
    ),
)
_PROSE = (
    "we refer to our conversation of last week and confirm that the meeting takes place as agreed between us",
    "wir beziehen uns auf unser Gespräch und bestätigen hiermit gerne den vereinbarten Termin in unserem Hause",
    "nous faisons suite à notre entretien et vous confirmons le rendez-vous convenu dans nos locaux de Lyon",
    "facciamo seguito al nostro colloquio e confermiamo con piacere l'incontro concordato presso la nostra sede",
    "nos referimos a nuestra conversación y confirmamos con mucho gusto la reunión acordada en nuestras oficinas",
    "wij verwijzen naar ons gesprek en bevestigen hierbij graag de afgesproken bijeenkomst op ons kantoor",
)
LANGUAGES = ("en", "de", "fr", "it", "es", "nl")


def papers() -> list[tuple[str, str, Reading]]:
    """One paper of each type in each language and two manners: (type, language, reading)."""
    return [
        (kind, language, _paper(kind, place, manner))
        for kind, (place, language), manner in product(_TITLES, enumerate(LANGUAGES), range(2))
    ]


def _paper(kind: str, place: int, manner: int) -> Reading:
    title = _TITLES[kind][place]
    date, number, description, quantity, price, total, dear, regards, vat, cash, change = _WORDS[place]
    sender = ["Nordlicht Handel", "Hafenweg 12", "20457 Hamburg"]
    day = ("14.03.2026", "2026-03-14")[manner]
    opening = [*sender, "", "Bergmann & Fils", "12 rue du Port", "69002 Lyon", "", title, f"{date}: {day}"]
    items = [f"{name} {count} {each} {count * float(each):.2f}" for name, count, each in _ITEMS[manner]]
    match kind:
        case "letter":
            lines = [*opening, "", f"{dear},", "", *[_PROSE[place]] * 4, "", regards, "A. Nordlicht"]
        case "receipt":
            body = [f"{name} {float(each):.2f}" for name, _, each in _ITEMS[manner]]
            lines = [*sender, "Tel 040 123456", title, f"{day} 14:2{manner}", *body, f"{total} 41.80", f"{cash} 50.00"]
            return paper([*lines, f"{change} 8.20"], size=_ROLL, heading=1)
        case "delivery_note":
            lines = [
                *opening,
                f"{number} 4711",
                f"{description} {quantity}",
                *[line.rsplit(" ", 2)[0] for line in items],
            ]
        case "reminder":
            lines = [
                *opening,
                f"{dear},",
                _PROSE[place],
                f"{total} 498.61 EUR",
                "IBAN DE89 3704 0044 0532 0130 00",
                regards,
            ]
        case "statement":
            moves = [f"{day} {name} {float(each) * 3:.2f}" for name, _, each in _ITEMS[manner] * 3]
            lines = [*opening, "IBAN DE89 3704 0044 0532 0130 00", *moves, f"{total} 3120.40"]
        case _:
            table = f"{description} {quantity} {price} {total}"
            lines = [*opening, f"{number} 4711", "", table, *items, f"{vat} 19 % 79.61", f"{total} 498.61 EUR"]
    return paper(lines, heading=(0, 1)[manner])


_ITEMS = (
    (("Lamp", 2, "12.50"), ("Cable 3 m", 4, "4.20")),
    (("Chair oak", 1, "29.00"), ("Table", 1, "118.00"), ("Desk pad", 3, "7.90")),
)
