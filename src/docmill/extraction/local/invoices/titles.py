"""How papers that ask for money are called, and the word for their number, in the languages of Europe.

Patterns over plain text (lower case, no accents). German, Dutch and the northern languages make compounds of these
names, Slavic languages and Finnish inflect them.
"""

import re
from functools import lru_cache

CREDIT = (
    r"(?:credit (?:note|memo|invoice)|creditnote|gutschrift(?:s?anzeige)?|rechnungskorrektur|stornorechnung|"
    r"korrekturrechnung|stornobeleg|avoir|facture d'avoir|(?:note|nota) (?:de|di) credito?|"
    r"(?:factura|fatura) rectificativa|nota d'abono|abono|creditnota|creditfactuur|kreditnota|kreditfaktura|"
    r"hyvityslasku|(?:faktura )?korekta|faktur[ay] korygujac\w+|opravny (?:danovy )?doklad|dobropis\w*|"
    r"jovairo szamla|stornoszamla|nota de creditare|factura storno|odobrenje|dobropis|kreeditarve|kreditrekins|"
    r"kreditine saskaita|πιστωτικο(?: τιμολογιο)?|кредитно известие|iade faturasi|kreditreikningur)"
)
"""A paper that gives money back."""
INVOICE = (
    # English
    r"(?:invoices?|bill|fee note|debit (?:note|memo)|folio|billing statement|statement|docket|"
    # German
    r"\w*rechnung|\w*rechnungs|honorar-?note|kosten-?note|gebuhrennote|\w*liquidation|beleg|"
    # French, Italian
    r"facture|note d'honoraires|note de frais|note de debit|quittance|memoire|fattur[ae]|fatt\.?|parcella|notula|"
    r"avviso di parcella|bolletta|"
    # Spanish, Catalan, Portuguese, Romanian
    r"facturas?|factures?|fra\.?|minuta|recibo|nota de (?:cargo|honorarios|debito)|fatura(?:[ /-]recibo)?|facturii|"
    # Dutch
    r"\w*factuur|\w*nota|declaratie|"
    # Danish, Norwegian, Swedish, Icelandic, Finnish, Estonian
    r"\w*faktura(?: vat)?|\w*regning|rakning|reikningur|reiknings|\w*lasku|laskun|\w*arve|"
    # Polish, Czech, Slovak, Croatian, Serbian, Slovene, Bulgarian
    r"\w*faktur[yae]|rachun(?:ek|ku)|nota ksiegowa|(?:danov\w+ )?doklad\w*|vyuctovani|racuna?|predracuna?|фактура|"
    # Hungarian, Greek, Turkish, Latvian, Lithuanian
    r"szamla|bizonylat|τιμολογι\w*|fatura|faturasi|rekins|pavadzime|saskait\w+(?:[ -]faktur\w+)?)"
)
"""A paper that asks for money."""
NUMBER = (
    r"(?:numbers?\b|no\b|num\w*|nr\b|n°|#|id\b|ref\w*\b|nummer|nro\b|cislo|broj\b|stevilka|sorszama?|szama\b|αριθμοσ|"
    r"номер)"
)
"""The word for its number."""
SHORT = r"(?:n|c|br|st|sz|αρ|s/n)\W*$"
"""Shorter still: only where the number follows at once."""
QUALIFIED = (
    # What stands before the name in Germanic and Slavic languages …
    r"(?:(?:tax|vat|gst|sales|commercial|final|deposit|interim|progress|service|freight|utility|original|copy|"
    r"your|our|this|ihre|unsere|deine|votre|notre|uw|onze|din|vostra|su|"
    r"telefon|strom|gas|electric|water|pro-?forma|einzel|sammel) )"
)
FOLLOWED = (
    # … and behind it in Romance ones.
    r"(?:[ /-]+(?:rectificativa|simplificada|completa|ordinaria|electronica|elettronica|eletronica|differita|immediata|"
    r"accompagnatoria|d'acompte|de solde|d'avoir|definitive|intermediaire|de situation|finale?|d'acconto|"
    r"a saldo|di vendita|commerciale?|comercial|proforma|pro forma|recibo|ricevuta|fattura|vat|zaliczkowa|koncowa|"
    r"fiscala?|danovy doklad|danovy|- danovy doklad|e doklad|credito|invoice|rechnung|facture|original|copy|kopie))"
)
_WHOLE = re.compile(rf"{QUALIFIED}{{0,2}}(?:{INVOICE}|{CREDIT}){FOLLOWED}{{0,2}}\W*")


@lru_cache(maxsize=2048)
def is_title(flat: str) -> bool:
    """Whether a plain text is nothing but the name of such a paper."""
    return _WHOLE.fullmatch(flat) is not None
