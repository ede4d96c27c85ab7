"""Words around the names of sellers and buyers: legal forms, labels, addresses; compared with plain text."""

import re

from docmill.extraction.phrases import Phrases

LEGAL = Phrases(
    r"\b(?:gmbh|mbh|ag|kg|ohg|gbr|e\.?\s?k\.?|ug|se|kgaa|e\.?\s?v\.?|a\.?\s?g\.?|ltd|limited|llc|llp|plc|inc|corp|"
    r"corporation|co|"
    r"company|s[aà]rl|partg|mbb|sci|s\.?a\.?r\.?l|sas|s\.?a\.?s|sasu|eurl|sa|s\.a|sprl|bvba|srl|s\.?r\.?l|spa|s\.?p\.?a|s\.?n\.?c|"
    r"s\.?a\.?s|sl|s\.l|"
    r"slu|b\.?\s?v|"
    r"n\.?\s?v|vof|ab|aktiebolag|oy|oyj|as|a/s|aps|asa|sp\. z o\.?\s?o|s\.?r\.?o|a\.?s|kft|zrt|lda|ltda|pvt|private|"
    r"sdn|bhd|"
    r"pte|pty|gesmbh|genossenschaft|stiftung|verein|foundation|associates|industries|holdings|group|bv|nv)\b\.?",
    any_case=True,
)
LEGAL_START = Phrases(f"^{LEGAL.pattern}", any_case=True)
LEGAL_END = Phrases(rf"{LEGAL.pattern}\W*$", any_case=True)
SELLER = Phrases(
    r"verkaufer|seller|vendor|supplier|\bfrom\b|fournisseur|emetteur|leverancier|fornitore|cedente|proveedor|"
    r"vendedor|service provider|"
    r"sold by|remit to|rechnungssteller|absender|\bpayee\b|issued by|prestataire|saljare|leverantor|sprzedawca|"
    r"auftragnehmer|pay to|"
    r"kreditor|emisor|in favou?r of|issuer|vendeur|saelger|selger|myyja|fornecedor|prestador|dodavatel|furnizor"
)
HOLDER = Phrases(
    r"kontoinhaber|account holder|titulaire|beneficiary|beneficiaire|account name|kontoname|begunstigter|tenaamstelling"
)
BUYER = Phrases(
    r"bill(?:ed|ing)? ?(?:to|address|details)|invoice(?:d)? (?:to|address)|rechnung an|rechnungs(?:adresse|anschrift|"
    r"empfanger)|(?<!ver)kaufer|"
    r"leistungsempfanger|customer\b|\bclient\b|\bkunde\b|\bbuyer\b|sold to|adresse de facturation|factur\w* a\b|"
    r"\bklant\b|\bcliente\b|"
    r"destinatario|factuuradres|\battn\b|attention|guest name|\bfirma\b|recipient|\bempfanger\b|nabywca|kund\b|"
    r"faktureras|cessionario|"
    r"auftraggeber|acheteur|adresse du client|^an:?$|^to:?$|consignee|mottagare|asiakas|prepared for|bill-to|spett|"
    r"destinataire|adressee? a\b|kopare|fakturerings?adress|fakturaadress|faktureres til|intestatari|facturar a|"
    r"datos del cliente|laskutusosoite|ostaja|odberatel|zakaznik|cumparator|beneficiar\b|klantgegevens|\bt\.a\.v|"
    r"faturar a|\bexmo|\breceiver|"
    r"service (?:for|address)|(?:issued|charged|licensed) to|^(?:for|aan|pour|para):?$"
)
REFERENCE = Phrases(
    r"refer|nummer|number|\bnr\b|\bno\b|n°|executant|service\b(?! provider)|order|commande|bestell|konto\b|steuer|"
    r"ust|tva|vat"
)
ADDRESS = Phrases(r"adress|address|anschrift|direccion|indirizzo")
"""A heading that names an address is about a party, whatever references it names besides."""
ADDRESSED = re.compile(
    r"\b(?:adresse|address|adres|anschrift|indirizzo|direccion|morada|local|merce|information|info|details|data|daten|angaben|d[ei]|of|the|a|til)\b|"
    r"(?:adress?e?|anschrift)$"
)
"""What the label of a party has besides whose address it is."""
NUMBERED = Phrases(
    r"(?:#|\bn[ro°]\.?|n(?:umm|o)er|number|numero|\bid|\bcode)\W*$|^(?:code|codice|cod\.|n°|numero)\s|nr\.?$"
)
"""What a label of a number begins or ends with, and a name does not."""
REGISTERED = Phrases(
    r"capital|siret|siren|\brcs\b|\bhr[ab]\b|handelsregister|amtsgericht|\bkvk\b|siege social|registered|"
    r"company (?:no|number|reg)|"
    r"geschaftsfuhr|steuernummer|ust-?id|vat (?:no|reg|id|number)|gstin|\bcin\b|p\.? ?iva|org\.? ?nr|\biban\b|"
    r"\babn\b|\bn° tva"
)
CONTACT_PERSON = Phrases(
    r"ansprechpartner|contact|kontakt|bearbeiter|sachbearbeiter|interlocuteur|referente|our ref|ihr zeichen|payer|agent"
)
SHIP = Phrases(
    r"\bship(?:ped|ping)?(?: ?(?:to|address))?|"
    r"liefer(?!ant|er)|livraison|deliver|warenempfanger|levering|afleveradres|zahlungsempfanger|steuerbevoll|"
    r"consegna|"
    r"fiscal|entrega|destinazione|leverans|toimitus|odbiorca|\benvio\b"
)
TITLE = Phrases(
    r"rechnung|invoice|facture|factuur|fattura|factura|faktura|receipt|quittung|gutschrift|"
    r"credit (?:note|memo)|nota d[ei] credito|\bseite\W*\d|"
    r"\bpage\W*\d|"
    r"\bdate\b|datum|"
    r"original|copy|kopie|duplica|statement|\btotal|summary|sehr geehrte|dear |vielen dank|thank|bank\b|sparkasse|"
    r"iban|\bbic\b|description|"
    r"\btax(?:able)?\b|\b(?:c|i|s)gst\b|payment|zahlung|uberweisung|lastschrift|virement|prelevement|lieferschein|visualisierung|lesbarmachung|stylesheet|www\.|http|@|reference|referenz|"
    r"details|amount|betrag|"
    r"number|nummer|\bnr\b|powered by|geschaftsfuhrer|amtsgericht|handelsregister|registered|office|steuernummer|"
    r"ust-id|bestellung|order|"
    r"telefon|telefax|\bfax\b|\btel\b|e-?mail|currency|wahrung|customer service|support|signatory|terms|subtotal|"
    r"due\b|nos ref|vos ref|logo|\bfatura|\blasku\b|\bcompte\b|identifiant|registro|conditions|bedingung"
)
COUNTRY = re.compile(
    r"^(?:germany|deutschland|france|frankreich|austria|osterreich|schweiz|switzerland|suisse|nederland|netherlands|"
    r"belgium|belgie|belgique|"
    r"italia|italy|italie|espana|spain|ireland|united kingdom|uk|usa|united states(?: of america)?|india|sverige|"
    r"sweden|norge|norway|danmark|"
    r"denmark|finland|suomi|polska|poland|portugal|luxembourg|canada|australia|new zealand|singapore|malaysia|israel|"
    r"china|hong kong|de|at|ch)$"
)
POSTCODE = re.compile(
    r"(?:^|[\s,])(?:[A-Z]{1,3}[- ]{1,3})?\d{4,5}\s+[A-ZÄÖÜÉ]|\b\d{4}\s?[A-Z]{2}\b|"
    r"\b[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}\b|\b[A-Z]{2},?\s+\d{5}\b|\s\d{6}$|"
    r"\b\d{3}\s\d{2}\s+[A-ZÅÄÖ]|\b\d{2}-\d{3}\s|\b\d{5}-\d{3}\b|"
    r"\b[A-Z]\d[A-Z]\s?\d[A-Z]\d\b|\b(?:NSW|VIC|QLD|TAS|WA|SA|ACT|NT)\s+\d{4}\b"
)
STREET = Phrases(
    r"str\.|stra(?:ss|ß)e|street|\broad\b|\brue\b|avenue|\bvia\b|weg\b|platz|laan\b|straat|allee|\blane\b|\bdrive\b|"
    r"blvd|boulevard|gasse\b|"
    r"calle|\bave\b|ufer\b|\bsuite\b|\bfloor\b|gatan|vagen|vej\b|place\b|quai|chemin|\bweena|p\.?o\.? box|postfach|"
    r"ring\b|damm\b|hof\b|\bplot\b|"
    r"estate|\bsector\b|nagar|marg\b|building|tower|^[^\d]{3,30}\s\d{1,4}\s?[a-z]?$|^\d{1,5},?\s+\w+",
    any_case=True,
)
CONTACT = Phrases(
    r"\btel|phone|\bfon\b|\bfax|e-?mail|@|www\.|https?:|ust-?id|vat\b|gstin|iban|hrb|kvk|siret|tva\b|btw\b|"
    r"steuernummer",
    any_case=True,
)
PERSON = re.compile(r"^(?:herrn?|frau|mr|mrs|ms|mme|m|monsieur|madame|dhr|mevr|sig)\.?$")
LABELLED = re.compile(
    r"^(?:name|nom|firma|company(?: name)?|attn|att|attention|for|from|to|bill to|client|customer|kunde|buyer|seller|"
    r"vendor|supplier|"
    r"verkaufer|kaufer|guest name|kontoinhaber|account holder|payment received by|raison sociale|ragione sociale|"
    r"titulaire du compte|"
    r"sold by|payee|bill to address)\s*[:.]\s*(?=\S)|^for\s+(?=[A-Z])",
    re.IGNORECASE,
)
SEPARATOR = re.compile(
    r"\s+[•·●∙|–—*-]+\s+|\s*[•·●|]\s*|(?<=[a-z.])\s*,\s+(?=[\wÄÖÜ.]+(?:str|weg|platz|gasse|\s\d))|\s[–-]\s|"
    r"\s+c/o\s+"
)
FREE_MAIL = frozenset(
    [
        "gmail",
        "googlemail",
        "hotmail",
        "outlook",
        "yahoo",
        "gmx",
        "web",
        "icloud",
        "aol",
        "t-online",
        "live",
        "orange",
        "wanadoo",
        "free",
        "localhost",
        "example",
    ]
)
HONORIFIC = re.compile(r"^(?:herrn?|frau|mr|mrs|ms|mme|mlle|m|monsieur|madame|dhr|mevr|sig|sig\.ra|familie|fam)\.? \w")
PREPOSITION = re.compile(r"^(?:for|from|to|an|von|by|pour|de|per|till|fran|van|aan|para|an die|to the)\W*$")
PHONE = re.compile(r"^\W*\+?\d[\d\s()/.-]{6,}$")
LISTED = re.compile(r",\s+(?!(?:inc|llc|ltd|limited|corp|lp|l\.p|gmbh|b\.?v|s\.?[alr]|plc|kg|ag|se)\b)", re.IGNORECASE)
"""Between the parts of an address in one line."""
_SMALL = r"(?:and|und|of|de|la|le|les|von|van|der|den|du|des|et|en|y|e|di|del|the|og|och|fur|for|zu|zum|am|im|i)"
PROSE = re.compile(rf"(?:(?:^|\s)(?!{_SMALL}\b)[a-zäöüß][\w./]*(?=\s|$).*){{2}}|\./\.")
"""Two words in small letters that names do not have."""
WITHIN = re.compile(
    r"\b(?P<label>sold by|provided by|issued by|operated by|payable to|in favou?r of|t\.n\.v\.|zugunsten(?: von)?)\s+"
    r"(?P<name>[A-ZÄÖÜ][^;:()]{2,50}?)(?=\.?$|\.\s|;|\(| and | und |, (?!Inc|LLC|Ltd|L\.?P))"
)
"""A name inside a sentence that says whose it is."""
ABBREVIATED = re.compile(r"\b(?:Inc|Ltd|Corp|Co|B\.V|N\.V|S\.A|S\.L|S\.r\.l|S\.p\.A|e\.K|e\.V)$")
"""Legal forms that end in a full stop of their own."""
DEPARTMENT = Phrases(
    r"\b(?:team|department|dept|abteilung|accounts?|accounting|einkauf|buchhaltung|verwaltung|z\.? ?hd|c/o|attn|"
    r"zu handen|"
    r"comptabilite|administratie|finance)\b"
)
