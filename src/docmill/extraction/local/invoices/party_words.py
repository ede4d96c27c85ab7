"""Words around the names of sellers and buyers: legal forms, labels, addresses; compared with plain text."""

import re
from functools import lru_cache

from docmill.extraction.phrases import Phrases

_FORMS = (
    # German, Austrian, Swiss.
    r"gmbh|ggmbh|mbh|ges\.?\s?m\.?\s?b\.?\s?h|gesmbh|ag|a\.?\s?g\.?|kg|kgaa|ohg|gbr|egbr|e\.?\s?k\.?|ug|se|e\.?\s?v\.?|"
    r"partg|mbb|e\.u|(?-i:OG|eG)|genossenschaft|stiftung|verein|"
    # English.
    r"ltd|limited|l\.?l\.?c|l\.?l\.?p|pllc|p\.?l\.?c|inc|corp|corporation|co|company|pvt|private|pte|pty|(?-i:DAC|"
    r"CLG|CC|L\.P|P\.C|P\.A|P\.S)|"
    r"foundation|associates|industries|holdings|group|cooperative|sdn|bhd|berhad|"
    # French.
    r"s[aà]rl|s\.?a\.?r\.?l|sas|s\.?a\.?s|sasu|eurl|e\.u\.r\.l|sa|s\.a|sci|selarl|selas|scop|earl|gaec|sprl|asbl|"
    # Dutch.
    r"bvba|b\.?\s?v|n\.?\s?v|bv|nv|vof|v\.o\.f|vzw|stichting|vereniging|cooperatie|coöperatie|(?-i:C\.V)|"
    # Italian, Spanish, Portuguese, Romanian.
    r"srl|s\.?r\.?l|s\.?r\.?l\.?s|spa|s\.?p\.?a|s\.?n\.?c|s\.?c\.?a\.?r\.?l|sl|s\.l|s\.?l\.?u|s\.a\.u|s\.l\.[lp]|"
    r"(?:soc|s)\.?\s?coop(?:\.\s?agr)?|lda|ltda|unipessoal|(?-i:C\.B|S\.C|CRL|PFA)|"
    # Nordic and Baltic.
    r"ab|aktiebolag|handelsbolag|kommanditbolag|(?-i:HB|KB)|oy|oyj|tmi|as|a/s|aps|asa|(?-i:I/S|K/S|P/S|ANS|ENK)|ehf|"
    r"(?-i:UAB|SIA|OÜ)|"
    # Polish, Czech, Slovak, Hungarian, of the south-east.
    r"sp\. z o\.?\s?o|sp\.\s?[jk]|s\.?r\.?o|a\.?s|spol|v\.o\.s|kft|zrt|nyrt|(?-i:Bt)|d\.?\s?o\.?\s?o|d\.d|(?-i:a\.ş|"
    r"A\.Ş)|"
    r"е?оод|е?ад"
)
LEGAL = re.compile(rf"\b(?:{_FORMS})\b\.?", re.IGNORECASE)
_IN_SMALL = re.sub(r"\(\?-i:([^)]*)\)", lambda exact: f"(?:{exact[1].lower()})", _FORMS)
_FORM = Phrases(rf"\b(?:{_IN_SMALL})\b", any_case=True)
"""What could be a legal form, in whatever letters: told of most texts in a fraction of the time that `LEGAL` takes."""
BEHIND_FORM = (
    r"(?:\s?\((?i:haftungsbeschr[äa]nkt)\)|\s(?:a socio unico|unipersonale|in liquidazione|en liquidation|"
    r"i\.\s?[lg]\.)|"
    r"\s(?-i:di(?:\s[A-Z][\w.']*){1,4}(?:\s(?:&|e)\sC\.)?))"
)
"""What a legal form may have behind it that is part of the name."""
LEGAL_END = re.compile(LEGAL.pattern + BEHIND_FORM + r"?\W*$", re.IGNORECASE)
LEGAL_START = re.compile(
    r"^(?:SARL|S\.A\.R\.L\.|SAS|S\.A\.S\.|SASU|EURL|E\.U\.R\.L\.|SA|SCI|SELARL|SNC|SCP|SCOP|EARL|GAEC|UAB|SIA|OÜ|"
    r"Stichting|Vereniging|Società|PT)\s+(?!au\s|del?\s)(?=\S{2})"
)
"""Legal forms that stand before the name."""
TRADING = re.compile(
    r"\s(?:t/as?|o/a|d/?b/?a|trading as|doing business as|handelend onder de naam|h\.?o\.?d\.?n\.?)\s", re.IGNORECASE
)
"""Between whoever it is by law and the name over the shop."""
SELLER = re.compile(
    r"verkaufer|seller|vendor|supplier|\bfrom\b|fournisseur|emetteur|leverancier|fornitore|cedente|proveedor|"
    r"vendedor|service provider|"
    r"sold by|remit(?:tance)? to|rechnungssteller|absender|\bpayee\b|issued by|prestataire|saljare|leverantor|"
    r"sprzedawca|"
    r"auftragnehmer|pay to|zahlbar an|payable a\b|pagabile a\b|©|copyright|operated by|provided by|"
    r"trading (?:name|style) of|brand of|division of|marke der|marque d|marchio di|marca d|handelsnaam van|"
    r"kreditor|emisor|in favou?r of|issuer|vendeur|saelger|selger|myyja|fornecedor|prestador|dodavatel|furnizor|"
    r"leverandor|elado|szallito|prodavac|prodavatel|dobavitelj|izdavatelj|pardavejas|tiekejas|pardevejs|muuja"
)
HOLDER = re.compile(
    r"kontoinhaber|account holder|titulaire|beneficiary|beneficiaire|account name|kontoname|begunstigter|"
    r"tenaamstelling|"
    r"zahlungsempfanger|betalningsmottagare|betalingsmottager|betalingsmottaker|maksun saaja|payable to|payments? to"
)
BUYER = re.compile(
    r"bill(?:ed|ing)? ?(?:to|address|details)|\bbill\b.{2,24} to\b|invoice(?:d)? (?:to|address)|rechnung (?:an|fur)\b|"
    r"rechnungs(?:adresse|anschrift|empfanger)|(?<!ver)kaufer|"
    r"leistungsempfanger|customer\b|\bclient[es]?\b|\bkunde\b|\bbuyer\b|sold to|adresse de facturation|factur\w* a\b|"
    r"\bklant\b|"
    r"destinatario|factuuradres|guest(?: name)?\b|\bfirma\b|recipient|\bempfanger\b|nabywca|kund\b|"
    r"faktureras|cessionario|\bpatient(?:in)?\b|responsible party|\bmandant(?:in)?\b|versicherungsnehmer|"
    r"auftraggeber|acheteur|adresse du client|^an:?$|^to:?$|consignee|(?<!betalnings)mottagare|asiakas|prepared for|"
    r"bill-to|"
    r"spett|^doit\b|"
    r"destinataire|adressee? a\b|kopare|fakturerings?adress|fakturaadress|faktureres til|intestatari|facturar a|"
    r"datos del cliente|\btitular\b|laskutusosoite|ostaja|maksaja|odberatel|objednatel|zakaznik|cumparator|"
    r"beneficiar\b|"
    r"klantgegevens|"
    r"faturar a|\bexmo|\breceiver|zahlbar durch|payable par|pagabile da|zahlungspflichtig|betalningsavsandare|"
    r"\bkober\b|\bkjoper\b|platnik|zamawiajacy|\bvevo\b|\bkupac\b|\bkupec\b|narucitelj|pirkejas|pircejs|\bostja\b|"
    r"(?:issued|charged|licensed) to|^(?:for|aan|pour|para|til|till|pro|dla):?$|"
    r"service (?:for|address)|account of"
)
GUEST = Phrases(r"consignee|guest|\bgast\b|patient|titular|mandant|ospite|huesped")
"""Labels of who came or gets the goods: often the buyer, but not where a company stands beside."""
REFERENCE = Phrases(
    r"refer|nummer|number|\bnr\b|\bno\b|n°|executant|service\b(?! provider| for| address)|order|commande|bestell|"
    r"konto\b(?! /)|steuer|"
    r"\bust|umsatzst|tva|\bvat|\bcode\b|\bcod\b|codice|codigo|\brefs?\b|\bid\b|gstin|\bp\.?o\b|compte(?! de)|"
    r"\baccount\b(?! holder| name| of)|\bpan\b|"
    r"#|\bfee|care\b|portal|support|espace|atencion|dienst\b"
)
ADDRESS = Phrases(r"adress|address|anschrift|direccion|indirizzo")
"""A heading that names an address is about a party, whatever references it names besides."""
ADDRESSED = re.compile(
    r"\b(?:adresse|address|adres|anschrift|indirizzo|direccion|morada|local|merce|information|info|details|data|"
    r"daten|angaben|d[ei]|of|the|a|til)\b|"
    r"(?:adress?e?|anschrift)$"
)
"""What the label of a party has besides whose address it is."""
NUMBERED = Phrases(
    r"(?:#|\bn[ro°]\.?|n(?:umm|o)er|number|numero|\bid|\bcode)\W*$|^(?:code|codice|cod\.|n°|numero)\s|nr\.?$"
)
"""What a label of a number begins or ends with, and a name does not."""
OWNED = (
    r"capital|cap\. soc|\brcs\b|\br\.c\.s|\bhr[ab]\b|handelsregister|firmenbuch|amtsgericht|\bkvk\b|"
    r"kamer van koophandel|"
    r"siege social|sede legale|sede social|registro mercantil|registered (?:in|office)|registrar|trade register|"
    r"company (?:no|number|reg)|geschaftsfuhr|directors?:|foretaksregist|\biban\b|bankgiro|plusgiro|sort code|\bkrs\b"
)
REGISTERED = Phrases(
    OWNED + r"|siret|siren|registered|"
    r"steuernummer|ust-?id|vat (?:no|reg|id|number)|gstin|\bcin\b|p\.? ?iva|org\.? ?nr|"
    r"\babn\b|\bn° tva|\brea\b|\bcvr\b|\bnip\b|y-tunnus|trading name of"
)
OWNER = Phrases(OWNED)
"""What only those who write an invoice say about themselves; numbers for taxes are told of both."""
CONTACT_PERSON = re.compile(
    r"ansprechpartner|contact|kontakt|bearbeiter|sachbearbeiter|interlocuteur|referen(?:te|s|t)\b|referanse|(?:our|"
    r"your) ref|"
    r"ihr zeichen|unser zeichen|agent|representant|rappresentante|salesman|sales ?(?:person|rep)|account manager|"
    r"driver|"
    r"cashier|attorney|prepared by|served by|bediente|handled by|worker|passenger|technici|mechanic|kassierer|fahrer"
)
SHIP = re.compile(
    r"\bship(?:ped|ping)?(?: ?(?:to|address))?|"
    r"liefer(?!ant|er)|abweichend|livraison|deliver|warenempfanger|levering|afleveradres|steuerbevoll|"
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
    r"\btax(?:able)?\b|\b[cis]gst\b|payment|zahlung|uberweisung|lastschrift|virement|prelevement|lieferschein|"
    r"visualisierung|lesbarmachung|stylesheet|www\.|http|@|reference|referenz|"
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
    r"(?:business|industrial|retail|technology|science|trade) park\b|gewerbepark|poligono|pol[ií]gono|pol\. ?ind|"
    r"zone industrielle|"
    r"^(?:unit|flat|apt|lot|level|shop|b[aâ]t|stand|bte)\b\.?\s\S{0,2}\d|^(?:postbus|avda|avd|c/)|"
    r"estate|\bsector\b|nagar|marg\b|building|tower|^[^\d]{3,30}\s\d{1,4}\s?[a-z]?$|^\d{1,5},?\s+\w+",
    any_case=True,
)
CONTACT = Phrases(
    r"\btel|phone|\bfon\b|\bfax|e-?mail|@|www\.|https?:|ust-?id|vat\b|gstin|iban|hrb|kvk|siret|tva\b|btw\b|"
    r"steuernummer",
    any_case=True,
)
REACHED = Phrases(r"\btel|phone|\bfon\b|\bfax|e-?mail|@|www\.|https?:")
PERSON = re.compile(
    r"^(?:herrn?|frau|eheleute|mr|mrs|ms|mme|m|monsieur|madame|dhr|mevr|de heer|mevrouw|sig|firma|fa)\.?$"
)
FORMAL = re.compile(
    r"(?:M/s\.?|Messrs\.?|D\.(?=\s[^\W\d_]{3,}\s)|D\.?[ªº]\.?|D(?:oñ|ñ)a\.?|Don|Eheleute|Firma|Fa\.|Spett\.?(?:le|"
    r"\.le)?(?:\s[Dd]itta)?|"
    r"Exm[oa]s?\.?(?:\s\(?s?\)?\.?)?(?:\sSr[as]*\.?)?|OSOB\.)\s+(?=\S)"
)
"""Forms of address in front of a name that are no part of it."""
CARE_OF = re.compile(
    r"(?:c/o|attn|att[.:]|attention|a l'attention|z\.? ?hd|zu hd|zu handen|z\.? ?h\.? ?v|t\.? ?a\.? ?v|ter attentie|"
    r"fao|f\.a\.o|"
    r"for the attention|all'attenzione|alla c\.? ?a|c\.a\.|a la atencion|a/a\b|at\.te|v/|p\.a\.)(?:\b|\W)"
)
"""Begins the line with the person, the desk or the house that letters for a company go to."""
NUMBERS_BEHIND = re.compile(
    r",?\s+\(?(?=(?:abn|acn|vat|gst(?:in)?|tva|btw|kvk|n\.?i\.?f|c\.?i\.?f|p\.? ?iva|p\.?i\.|uid|ust|mwst|siret|"
    r"siren|rcs|hr[ab]|(?-i:CIN|PAN|EIN|IČ)|"
    r"nip|regon|i[cč]o|di[cč]|cvr|org\.? ?n(?:r|o)|reg\.? ?n|company n|co\. reg|tel|ph|phone|fax|mobile?|fein|tax id|"
    r"crn|nzbn|oib|eik|cui|y-tunnus)\b[^a-z]{0,12}(?:n[ro°]\.?\W*|number\W*|id\W*)?[a-z]{0,4}[\s-]?\d)",
    re.IGNORECASE,
)
"""Where the numbers of a company follow its name in one line."""
LABELLED = re.compile(
    r"^(?:name|nom|firma|company(?: name)?|attn|att|attention|for|from|to|bill to|client|customer|kunde|buyer|seller|"
    r"vendor|supplier|"
    r"verkaufer|kaufer|guest name|kontoinhaber|account holder|payment received by|raison sociale|ragione sociale|"
    r"titulaire du compte|"
    r"sold by|payee|bill to address)\s*[:.]\s*(?=\S)|^for\s+(?=[A-Z])|^(?:issued|sold|provided|operated) by\s+(?=\S)",
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
HONORIFIC = re.compile(
    r"^(?:herrn?|frau|eheleute|mr|mrs|ms|miss|mme|mlle|m|mm|monsieur|madame|dhr|mevr|mevrouw|de heer|sig|sig\.ra|sr|"
    r"sra|familie|fam|"
    r"pan|pani)\.? \w"
)
PREPOSITION = re.compile(r"^(?:for|from|to|an|von|by|pour|de|per|till|fran|van|aan|para|an die|to the)\W*$")
PHONE = re.compile(r"^\W*\+?\d[\d\s()/.-]{6,}$")
LISTED = re.compile(r",\s+(?!(?:inc|llc|ltd|limited|corp|lp|l\.p|gmbh|b\.?v|s\.?[alr]|plc|kg|ag|se)\b)", re.IGNORECASE)
"""Between the parts of an address in one line."""
_SMALL = (
    "and und of de la le les von van der den du des et en y e di del da do dos della the og och fur for zu zum am im i"
)
SMALL = frozenset([*_SMALL.split(), "vom", "voor", "pour", "a", "al", "w", "z"])
"""Words in small letters that names have between others."""
PROSE = re.compile(rf"(?:(?:^|\s)(?!(?:{'|'.join(sorted(SMALL))})\b)[a-zäöüß][\w./]*(?=\s|$).*){{2}}|\./\.")
"""Two words in small letters that names do not have."""
WITHIN = re.compile(
    r"\b(?P<label>sold by|provided by|issued by|operated by|payable to|in favou?r of|t\.n\.v\.|zugunsten(?: von)?)\s+"
    r"(?P<name>[A-ZÄÖÜ][^;:()]{2,50}?)"
    r"(?=\.?$|\.\s(?!(?i:bhd|ltd|lda|z o)\b)|;|\(| and | und |, (?!Inc|LLC|Ltd|L\.?P))"
)
"""A name inside a sentence that says whose it is."""
ABBREVIATED = re.compile(r"\b(?:Inc|Ltd|Corp|Co|B\.V|N\.V|S\.A|S\.L|S\.r\.l|S\.p\.A|e\.K|e\.V)$")
"""Legal forms that end in a full stop of their own."""
DEPARTMENT = Phrases(
    r"\b(?:team|department|dept|abteilung|accounts?|accounting|einkauf|buchhaltung|verwaltung|z\.? ?hd|c/o|attn|"
    r"zu handen|"
    r"comptabilite|administratie|finance)\b"
)


@lru_cache(maxsize=4096)
def has_form(text: str) -> bool:
    """Whether a text holds a legal form. Asked of the same names and lines many times over."""
    return _FORM.within(text) and LEGAL.search(text) is not None


def ends_in_form(text: str) -> bool:
    """Whether a legal form is the last that a text says."""
    return has_form(text) and LEGAL_END.search(text) is not None


@lru_cache(maxsize=4096)
def in_town(text: str) -> bool:
    """Whether a line holds the town of an address: its postcode tells."""
    return POSTCODE.search(text) is not None


@lru_cache(maxsize=4096)
def in_address(text: str) -> tuple[bool, bool]:
    """Whether a line holds the town of an address, and whether it holds the street."""
    return in_town(text), STREET.within(text)
