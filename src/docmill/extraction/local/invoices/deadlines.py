"""What a sentence says about a day in it: that it is the one by which to pay, or on which money is collected.

A label stands beside its value; in a sentence the verb may stand far before the day or behind it: `wird am 3. Mai von
Ihrem Konto abgebucht`. The day is written as `@`; text is plain.
"""

import re
from collections.abc import Mapping

from docmill.extraction.local.invoices.sheet import Cell, Sheet
from docmill.extraction.local.invoices.wording import plain

_REACH = 90
"""Characters before and behind the day that are looked at."""
_PAY = (
    r"(?:\bpa(?:y|id\b|yable)|payment|remit|settle|\btransfer|"
    r"zahl|uberweis|begleich|entricht|anweis|rechnungsbetrag|"
    r"\bpaie|\bpaye|paiement|regl|virement|vers(?:er|ement)|acquitt|"
    r"\bpag[aohu]|versa(?:re|mento)|bonific|salda(?:re|to)|\babon[ae]|ingres[aeo]|liquid|"
    r"beta(?:al|len|ling)|voldoe|voldaan|overma|over te maken|betal|maks[aeu]|suorit|"
    r"zaplat|zaplac|platn|wplat|przel[ae]|uregul|uhrad|\bplat|uplat|placil|placan|poravna|"
    r"fizet|atutal|kiegyenlit|\bplat[ai]|achit|tasu|apmak|samaks|apmok|sumok|greid|ode(?:me|yin)|"
    r"πληρω|εξοφλ|плат)"
)
"""Stems of paying, in the languages of Europe."""
_BY = (
    r"(?:\bby|before|until|no later than|not later than|latest|on or before|"
    r"\bbis(?: zum| spatestens| langstens| am)*|spatestens(?: am| zum)?|vor dem|zum|"
    r"avant le|avant|au plus tard(?: le)?|jusqu'au|pour le|d'ici(?: le| au)?|\bau|"
    r"entro(?: e non oltre)?(?: il)?|prima del|antes del?|hasta(?: el)?|a mas tardar(?: el)?|"
    r"\bate(?: ao| a)?(?: dia)?|\bvoor|uiterlijk(?: op)?|\btot(?: en met)?|voor of op|"
    r"sen[ae]st(?: den| d\.)?|inden|innen|fore|for den|viimeistaan|"
    r"\bdo(?: dnia)?|najpozniej|nejpozdeji|najneskor(?: do)?|najkasneje(?: do)?|pana (?:la|in)(?: data de)?|"
    r"hiljemalt|\blidz|\biki|\bfyrir|μεχρι|εωσ|до)"
)
"""That it is the last day."""
_ON = (
    r"(?:\bon|on or after|on or around|\bam|\ble|\bel(?: dia)?|\bil(?: giorno)?|\bop|\bden|\bdne|\bem|\bdnia|\bzum|"
    r"\bper|\bla)"
)
"""That it is the day."""
_DEBIT = (
    r"(?:direct debit|be (?:debited|collected|charged|taken)|(?:will|we'll|shall) (?:debit|collect|charge|take)|"
    r"auto-?pay|abgebucht|abbuch|eingezogen|einzieh|\beinzug|\blastschrift|\w+lastschrift|belastet|"
    r"(?:buchen|ziehen) wir|wir (?:buchen|ziehen)|schrijven (?:wij|we)|incasseer|incasser|"
    r"prelev\w+|sera (?:debite|preleve)|addebit\w+|sdd\b|rid\b|cargo|adeud\w+|domicili\w+|"
    r"debito direto|debitado|incasso|afgeschreven|automatisch|autogiro|avtalegiro|betalingsservice|trækkes|"
    r"suoraveloitus|veloitetaan|inkaso|inkasem|obciaz\w+|debitat|terhel)"
)
"""That the seller takes the money."""
_LATER = re.compile(
    r"(?:erstmals|abschlag\w* (?:ab|zum)|neue[rn]? abschlag|next (?:bill|invoice|payment)|prochaine?|prossima|"
    r"proxim[ao]|volgende|nastepn\w+|pristi|vertrag|contra[ct]t?o?|laufzeit|kundig|valid|gultig|geldig|valable|"
    r"guarant|garanti|lauft|endet|ablauf|expire|\bends\b|"
    r"mandat\w*(?: ref\w*)? (?:vom|du|of|from|dated|del|van)\W*@|vorherig|previous|"
    r"last (?:bill|payment)|precedent|ulti[mn]\w+)"
)
"""That it is about another invoice, or about none."""
_DONE = re.compile(
    r"(?:received|erhalten|bezahlt|eingegangen|recue?|payee?|ricevuto|pagato|recibid[oa]|pagad[oa]|abonad[oa]|ontvangen|"
    r"betaald|zaplacono|zaplaceno|deposit\w*|anzahlung|acompte|caparra|anticipo|aanbetaling|zaliczk\w+) ?"
    r"(?:on|am|le|il|el|op|vom|du|del|van|dnia|z)?\W*@"
)
_PROMISES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_PAY}.{{0,70}}{_BY}\W{{0,3}}@",
        rf"{_BY}\W{{0,3}}@.{{0,60}}?{_PAY}",
        rf"{_DEBIT}.{{0,60}}@",
        rf"{_ON}\W{{0,3}}@.{{0,70}}?{_DEBIT}",
        r"@ ?(?:mennessa|-?ig\b|tarihine kadar)",
    )
)
_UNTIL = re.compile(r"\b(?:bis|bis zum|until)\W*@")
_OWED = re.compile(rf"{_PAY}|fallig|\bdue\b|frist|netto|abzug|skonto|remit|begl")
_STOP = re.compile(r"(?<=[a-z)])[.;!?] ")
_ENDS = (".", ";", "!", "?")
_WORD = re.compile(r"[a-z]{2}")


def speaks_of_paying(text: str) -> bool:
    """Whether a plain text speaks of paying at all."""
    return _OWED.search(text) is not None


def promised(sheet: Sheet, cell: Cell, start: int, end: int) -> Mapping[str, float]:
    """What the sentence around a day makes of it: `due`, or `later`; nothing if it is no sentence or says neither."""
    before, after = plain(cell.text[:start]), plain(cell.text[end:])
    if not _WORD.search(before) and not _WORD.search(after):
        return {}
    before = _STOP.split(before)[-1]
    parts = _STOP.split(after, maxsplit=1)
    after = parts[0]
    if len(parts) == 1 and len(cell.tokens) > 5 and not after.endswith(_ENDS):
        # The sentence goes on in the next line, if it is one of several.
        after += " " + " ".join(_STOP.split(other.plain, maxsplit=1)[0] for other in sheet.below(cell, reach=1.2)[:1])
    text = f"{before[-_REACH:]}@{after[:_REACH]}"
    if _DONE.search(text):
        return {}
    if _LATER.search(text):
        return {"later": 1.0}
    if any(pattern.search(text) for pattern in _PROMISES):
        return {"due": 1.0}
    return {"later": 1.0} if _UNTIL.search(text) and not _OWED.search(text) else {}
