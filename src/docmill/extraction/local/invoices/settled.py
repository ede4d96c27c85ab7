"""What a page says was paid, where no amount on it says what is left: `Paid with iDEAL`, `Bereits bezahlt 50,00`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from docmill.extraction.local.invoices.money import CENT, Money
from docmill.extraction.local.invoices.paper import Paper
from docmill.extraction.local.invoices.sheet import Cell, Token
from docmill.extraction.local.invoices.wording import plain
from docmill.extraction.phrases import Phrases

_MEANS = (
    r"(?:(?:a |your |the )?(?:credit |debit |bank )?cards?\b|cash|che(?:ck|que)|visa|mastercard|amex|american|maestro|"
    r"paypal|stripe|klarna|apple|google|bank|wire|direct debit|transfer|twint|ideal|bancontact|sofort)"
)
_DONE = Phrases(
    "|".join(
        (
            # English; `paid by` alone may be followed by the day by which to pay.
            rf"\bpaid (?:in full|with|via|using|on|{_MEANS})|\bpaid (?:by|through) {_MEANS}|\bpaid\W*$|^\W*paid\b\W|"
            rf"fully paid",
            r"(?:has|have) been paid|was paid|payment (?:was )?received|settled in full|thank you for your payment",
            r"no payment (?:is )?(?:due|required|necessary)|nothing (?:is )?(?:due|to pay)",
            # German
            r"\bbezahlt (?:per|mit|mittels|am|via|durch|uber|in bar)\b|\b(?:bereits|dankend|bar|wurde|ist|"
            r"vollstandig) bezahlt\b|"
            r"\bbezahlt\W*$|^\W*bezahlt\b",
            r"betrag (?:\w+ )?(?:\w+ )?(?:erhalten|bezahlt|beglichen)|dankend erhalten|zahlung (?:\w+ )?erhalten|"
            r"(?:bereits|vollstandig|wurde .{0,40}) ?beglichen",
            # French
            r"(?:payee?|reglee?|acquittee?)s? (?:integralement )?(?:le|par|en|via|au)\b|facture (?:acquittee|payee|"
            r"reglee)|"
            r"^\W*(?:payee?|acquittee?|reglee?)\W*$|(?:paiement|reglement) recu|deja (?:paye|regle|acquitte)e?\b",
            # Spanish, Italian, Portuguese
            r"\b(?:pagad|abonad|cobrad)[oa] (?:con|por|mediante|en|el|via|integramente)\b|^\W*pagad[oa]\W*$|"
            r"factura pagada|"
            r"pago recibido",
            r"\b(?:pagat|saldat)[oa] (?:con|tramite|in|il|mediante|via|contanti)\b|^\W*(?:pagat|saldat)[oa]\W*$|"
            r"fattura (?:gia )?(?:pagata|saldata|quietanzata)|pagamento (?:ricevuto|avvenuto|effettuato)",
            r"\b(?:pag|liquidad)[oa] (?:por|com|via|em|no dia|atraves)\b|^\W*(?:pago|liquidad[oa])\W*$|"
            r"pagamento recebido",
            # Dutch
            r"\b(?:betaald|voldaan) (?:met|via|per|op|door|middels)\b|^\W*(?:betaald|voldaan)\W*$|"
            r"\b(?:reeds|al|is|werd|volledig) (?:betaald|voldaan)\b|betaling (?:is )?ontvangen|in dank ontvangen",
            # Polish, Czech, Slovak
            r"\bzaplacono\b|\boplacon[oaey]\b|\buregulowan[oa]\b|\bzaplaceno\b|\buhrazen[oay]\b|\bneplatte\b|"
            r"\buhraden[ea]\b|"
            r"\bzaplaten[ea]\b",
            # Swedish, Danish, Norwegian, Finnish
            r"\bbetal[dt]t? (?:med|via|den|d\.|kontant|av)\b|^\W*betal[dt]\W*$|(?:ar|er) (?:\w+ )?betal[dt]\b|"
            r"betalning mottagen|betaling (?:er )?(?:modtaget|mottatt)|\bmaksettu\b",
            # Romanian, Hungarian, Turkish, Greek
            r"\bachitat[a]? (?:integral|cu|prin|in|la)\b|^\W*achitat[a]?\W*$|\bplatit[a]? (?:cu|prin|integral)\b|"
            r"\b(?:ki)?fizetve\b|\bkiegyenlitve\b|fizetest nem igenyel",
            r"\boden(?:di|mistir)\b|tahsil (?:edildi|edilmistir)|\bεξοφλη(?:θηκε|μενο)|\bπληρωθηκε\b",
        )
    )
)
_DENIED = Phrases(
    r"\b(?:not|un|if|when|once|until|unless|must|should|shall|will|be|yet|balance|after|before|within|"
    r"nicht|noch|wenn|sobald|bis|wird|werden|falls|erst|spatestens|binnen|innerhalb|nach|restbetrag|"
    r"non|pas|si|jusqu\w*|doit|doivent|devra|sera|avant|apres|hasta|cuando|sin|ser|sera|hasta|deve|essere|fino|sara|"
    r"entro|"
    r"nao|devera|ate|niet|nog|worden|dient|indien|uiterlijk|wordt|zodra|nie|nalezy|bude|nebyla|"
    r"ej|inte|ikke|ei|senest|senast|innen|daca|neachitat\w*|nincs|nem kerult|degil|"
    r"deposit|anzahlung\w*|vorauszahlung|teilweise|partially|partly|partial|acompte|anticipo|acconto|aanbetaling|"
    r"zaliczk\w*|zaloh\w*|"
    r"postage|porto|shipping|prepaid)\b"
)
"""Beside it, the same words speak of a time to come, of a condition, or of a part."""
_SENTENCE = re.compile(r"[.;!?](?:\s|$)|\s[-–—|]\s")
_LONGEST = 14
"""Words of a sentence that says it; a longer one is of terms."""
_PARTLY = Phrases(
    r"(?:amount|already|total) paid|(?<!be )\bpaid\b|payments? (?:received|made)|"
    r"\b(?:bereits |schon )?(?:be|ge)zahlt\b|"
    r"(?:geleistete|erhaltene) (?:an)?zahlung|anzahlung\b|vorschuss\b|deja (?:paye|regle|verse)|acomptes? (?:verse|"
    r"recu|paye)|"
    r"\bpagad[oa]\b|anticipo (?:recibido|pagado)|\bpagato\b|acconto (?:versato|ricevuto|pagato)|\bbetaald\b|"
    r"\bvoldaan\b|"
    r"\bpag[oa]\b|\bzaplacono\b|\bzaplaceno\b|\buhrazen|\bbetal[dt]t?\b|inbetal[dt]|innbetalt|\bmaksettu\b|\bachitat|"
    r"\bplatit\b|fizetve\b|\bodenen\b|εξοφλη|πληρωθ"
)
"""The labels of an amount that was paid; not those of one that is asked for, such as a deposit."""


@dataclass(frozen=True, kw_only=True)
class Paid:
    """What was paid, and the words that say so."""

    amount: Decimal
    text: str
    tokens: tuple[Token, ...]
    page: int


def paid_of(paper: Paper, money: Sequence[Money], total: Decimal) -> Paid | None:
    """What was paid of a total, all or part of it: by amounts that are called so, else by a sentence."""
    if total <= 0 or not (_DONE.within(paper.sheet.plain) or _PARTLY.within(paper.sheet.plain)):
        return None
    called = [
        each
        for each in money
        if not each.in_items
        and each.means.get("paid", 0.0) >= 0.5
        and _is_paid(paper, each)
        and not _of_before(money, each)
    ]
    if called:
        # Printed twice, in a sentence and among the sums, it was still paid once.
        amounts = {abs(each.number.value) for each in called}
        amount = total if total in amounts else sum(amounts, Decimal(0))
        if not 0 < amount <= total + CENT:
            return None
        first = called[0].number
        return Paid(amount=min(amount, total), text=first.text, tokens=first.tokens, page=first.cell.page)
    for cell, text in _sentences(paper):
        beside = [number for other in paper.sheet.rows[cell.row] for number in paper.numbers_of.get(id(other), ())]
        amounts = {abs(number.value) for number in beside if number.money}
        if not amounts or total in amounts:
            return Paid(amount=total, text=text, tokens=cell.tokens, page=cell.page)
    return None


def says_paid(paper: Paper) -> bool:
    """Whether a sentence says that the invoice is paid."""
    return _DONE.within(paper.sheet.plain) and next(_sentences(paper), None) is not None


def _is_paid(paper: Paper, each: Money) -> bool:
    """Whether the words around an amount say that it was paid, and not that it is to be."""
    cell = each.number.cell
    row = [other.plain for other in paper.sheet.rows[cell.row] if other.worded]
    over = [label.text for label in paper.labels(cell, each.number.start, each.number.end) if label.over]
    return any(_PARTLY.within(text) for text in (*row, *over))


def _of_before(money: Sequence[Money], each: Money) -> bool:
    """Whether what was paid is an earlier bill, which stands above it."""
    row = each.number.cell.row
    return any(other.means.get("carried", 0.0) >= 0.7 and 0 < row - other.number.cell.row < 4 for other in money)


def _sentences(paper: Paper) -> Iterator[tuple[Cell, str]]:
    """Every sentence that says that the invoice is paid."""
    for cell in paper.sheet.cells:
        if not cell.worded or not _DONE.within(cell.plain):
            continue
        for sentence in _SENTENCE.split(cell.text):
            text = plain(sentence)
            if len(text.split()) <= _LONGEST and _DONE.within(text) and not _DENIED.within(text):
                if not _labels_value(paper, cell):
                    yield cell, sentence.strip()
                break


def _labels_value(paper: Paper, cell: Cell) -> bool:
    """Whether it is the label of an amount that need not be there, and says nothing by itself: `Already paid:`."""
    below = paper.sheet.below(cell, reach=1.6)
    return cell.text.rstrip().endswith(":") or (len(cell.tokens) < 4 and any(map(paper.is_money, below)))
