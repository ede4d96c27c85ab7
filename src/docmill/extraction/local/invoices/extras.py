"""What is beside the main fields: addresses, what was paid or taken off, and what labels alone tell."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

from docmill.documents.reading import Reading
from docmill.extraction.confidence import DOUBTED_BY_READER
from docmill.extraction.labelled import read_labelled
from docmill.extraction.local.invoices.amounts import Sums
from docmill.extraction.local.invoices.items import Items
from docmill.extraction.local.invoices.money import CENT, Money, money_text
from docmill.extraction.local.invoices.paper import Option, Paper
from docmill.extraction.local.invoices.party_words import CONTACT, COUNTRY, PHONE, POSTCODE, STREET
from docmill.extraction.local.invoices.settled import Paid
from docmill.extraction.local.invoices.sheet import Cell, evidence_of
from docmill.extraction.local.invoices.tables import heading_kind
from docmill.extraction.local.invoices.wording import letters, plain
from docmill.extraction.result import FieldValue
from docmill.extraction.schema import FieldSchema

LABELLED = ("seller_tax_id", "buyer_tax_id", "order_number", "payment_terms", "iban", "bic")
"""Fields that the reader for any schema finds by their labels."""
_LINES = 7
_NEAR = 1.6
"""Heights of a line within which the next one stands."""
_TERM_LINES = 5
_LEAST_TERM = 8
"""Letters that a term of payment has at least."""
_REGISTERED = re.compile(
    r"\W*(?:(?:(?:co(?:mpany)?\W{0,2})?(?:reg(?:istration)?\W{1,2})?(?:no|nr|number)|uen|abn|acn|brn|crn|roc)\b\W{0,3}\w*\d{4}.*"
    r"|\d{5,}\s?-\s?[a-z]\W*)"
)
"""A line with the number in a register, which may stand between a name and its address: `(Reg. No: 712345-K)`."""
_PARTS = {"prepaid": "paid", "rounding": "rounding", "allowances": "discount", "charges": "shipping"}


def by_label(reading: Reading, schema: FieldSchema, paper: Paper) -> Mapping[str, FieldValue]:
    """Tax numbers, bank data, order number and terms."""
    names = [name for name in LABELLED if name in schema.fields]
    found = read_labelled(reading, schema, names) if names else {}
    terms = found.get("payment_terms")
    if terms is not None and (head := _table_head(paper, terms)) is not None:
        del found["payment_terms"]
        if (beneath := _terms_beneath(paper, head, terms)) is not None:
            found["payment_terms"] = beneath
    return found


def _table_head(paper: Paper, terms: FieldValue) -> Cell | None:
    """Where a value stands, if that is the head of a column: in a row of several short texts, none a value."""
    for place in terms.evidence[:1]:
        for row in paper.sheet.rows:
            for cell in row:
                if cell.text != terms.value or len(row) < 2 or heading_kind(cell) is None:
                    continue
                at = evidence_of(cell.tokens, cell.page)[0]
                if at.page == place.page and abs(at.box.middle - place.box.middle) < place.box.height:
                    return None if any(paper.is_value(other) or len(other.tokens) > 3 for other in row) else cell
    return None


def _terms_beneath(paper: Paper, head: Cell, terms: FieldValue) -> FieldValue | None:
    """The text in the column of terms."""
    lines: list[Cell] = []
    for cell in paper.sheet.below(head, reach=_TERM_LINES * 1.5):
        near = cell.top - (lines[-1] if lines else head).bottom < 1.6 * head.height
        if not near or abs(cell.left - head.left) > 0.02 or len(lines) >= _TERM_LINES:
            break
        lines.append(cell)
    text = " ".join(line.text for line in lines)
    if sum(map(str.isalpha, text)) < _LEAST_TERM:
        return None
    evidence = tuple(place for line in lines for place in evidence_of(line.tokens, line.page))
    return replace(terms, value=text, raw=text, evidence=evidence, alternatives=())


def address_of(
    paper: Paper, name: Option | None, mentions: Sequence[Option], other: Option | None
) -> FieldValue | None:
    """The address of a party: beneath one of the places where its name stands, or beside it in the line of a sender.

    It ends where the name of the other party begins.
    """
    if name is None:
        return None
    same = [name, *(option for option in mentions if letters(option.value) == letters(name.value))]
    for option in same:
        if not option.features.get("sender_line") and (found := _beneath(paper, option, other)) is not None:
            return found
    return next((found for option in same if (found := _beside(paper, option)) is not None), None)


def _beneath(paper: Paper, name: Option, other: Option | None) -> FieldValue | None:
    cell = _cell(paper, name)
    if cell is None:
        return None
    foreign = other.tokens if other is not None else ()
    lines: list[Cell] = []
    last = cell
    for below in paper.sheet.below(cell, reach=9.0):
        if any(token in below.tokens for token in foreign):
            break
        if not _aligned(below, cell, name.tokens[0].left) or len(lines) >= _LINES:
            continue
        gap = (below.top - last.bottom) / cell.height
        if not lines and gap < _NEAR and _REGISTERED.fullmatch(below.plain):
            last = below
            continue
        if CONTACT.within(below.plain) or ":" in below.text or PHONE.search(below.text):
            break
        if gap >= _near(lines, below, cell):
            break
        lines.append(below)
        last = below
    places = [index for index, line in enumerate(lines) if _of_address(line.text)]
    if not places:
        return None
    end = places[-1] + 1
    if end < len(lines) and COUNTRY.match(plain(lines[end].text)):
        end += 1
    return _address(lines[places[0] : end], ", ".join(line.text.strip(" ,") for line in lines[places[0] : end]))


def _aligned(below: Cell, cell: Cell, left: float) -> bool:
    """Whether a line begins where the name does, or both have the same middle, as in the head of a till slip."""
    return abs(below.left - left) <= 0.02 or abs(below.left + below.right - cell.left - cell.right) <= 0.03


def _near(lines: Sequence[Cell], below: Cell, cell: Cell) -> float:
    """How far below, in heights of a line, the next line of an address may stand.

    The town may stand apart from the street; what stands apart behind the town belongs to somebody else.
    """
    if any(POSTCODE.search(line.text) for line in lines):
        spaces = [(second.top - first.bottom) / cell.height for first, second in pairwise([cell, *lines])]
        return min(_NEAR, 0.6 + max(0.0, min(spaces)))
    apart = bool(lines) and STREET.within(lines[-1].text) and bool(POSTCODE.search(below.text))
    return 3.0 if apart else _NEAR


def _beside(paper: Paper, name: Option) -> FieldValue | None:
    cell = _cell(paper, name)
    if cell is None:
        return None
    row = [other for other in (cell, *reversed(paper.sheet.after(cell))) if other.left - cell.left < 0.5]
    text = "  ".join(other.text for other in row)
    behind = text[text.find(name.tokens[-1].text) + len(name.tokens[-1].text) :]
    pieces = [piece.strip(" ,") for piece in re.split(r"\s*[•·●|∙]\s*|\s+[–—-]\s+|,\s+|\s{2,}", behind)]
    kept = [piece for piece in pieces if piece and not CONTACT.within(plain(piece))][:3]
    if not any(POSTCODE.search(f" {piece}") for piece in kept):
        return None
    return _address([cell], ", ".join(kept))


def _cell(paper: Paper, name: Option) -> Cell | None:
    last = name.tokens[-1] if name.tokens else None
    return next((cell for cell in paper.sheet.cells if last in cell.tokens), None)


def _address(lines: Sequence[Cell], text: str) -> FieldValue:
    evidence = tuple(place for line in lines for place in evidence_of(line.tokens, line.page))
    signals = {"score": float(len(lines)), "postcode": float(bool(POSTCODE.search(f" {text}")))}
    if not _whole(text):
        signals[DOUBTED_BY_READER] = 1.0
    return FieldValue(value=text, raw=text, confidence=0.7, evidence=evidence, signals=signals)


def _whole(text: str) -> bool:
    """Whether an address has both a town, told by its postcode or by a country behind it, and a street."""
    parts = [f" {part.strip()}" for part in text.split(",")]
    abroad = len(parts) > 2 and COUNTRY.match(plain(parts[-1].strip()))
    # Without the postcode: `20095 Hamburg` begins with a number, too.
    rest = [POSTCODE.sub("", part).strip() for part in parts]
    street = any(STREET.within(part) or any(map(str.isdigit, part)) for part in rest)
    return street and bool(abroad or any(map(POSTCODE.search, parts)))


def _of_address(text: str) -> bool:
    return bool(POSTCODE.search(text) or STREET.within(text) or re.match(r"\d{1,5}\w?[, ]", text))


def parts(money: Sequence[Money], items: Items, sums: Sums) -> dict[str, FieldValue]:
    """What was paid, rounded, taken off or added: only amounts that explain a difference between two sums."""
    found: dict[str, FieldValue] = {}
    total, due, subtotal = (_value(sums, name) for name in ("total", "amount_due", "subtotal"))
    if total is not None and due is not None and total != due:
        for name in ("prepaid", "rounding"):
            for each in _called(money, _PARTS[name]):
                value = abs(each.number.value) if name == "prepaid" else each.number.value
                gap = total - due if name == "prepaid" else due - total
                if value and abs(gap - value) <= CENT:
                    found.setdefault(name, _part(each, value))
        if sums.settled is not None:
            found.setdefault("prepaid", _said(sums.settled))
    amounts = [item.amount.value for item in items.items if item.amount]
    if subtotal is not None and amounts and len(amounts) == len(items.items):
        gap = subtotal - sum(amounts, Decimal(0))
        for name in ("allowances", "charges"):
            for each in _called(money, _PARTS[name]):
                value = abs(each.number.value)
                if value and abs((gap if name == "charges" else -gap) - value) <= CENT:
                    found.setdefault(name, _part(each, value))
    return found


def _value(sums: Sums, name: str) -> Decimal | None:
    option = sums.chosen.get(name)
    return Decimal(option.value) if option is not None else None


def _called(money: Iterable[Money], meaning: str) -> list[Money]:
    return [each for each in money if each.means.get(meaning, 0.0) >= 0.5]


def _part(each: Money, value: Decimal) -> FieldValue:
    number = each.number
    return FieldValue(
        value=money_text(value),
        raw=number.text,
        confidence=0.9,
        evidence=evidence_of(number.tokens, number.cell.page),
        signals={"arithmetic": 1.0, "score": 1.0},
    )


def _said(paid: Paid) -> FieldValue:
    """What was paid, by the words that say so."""
    return FieldValue(
        value=money_text(paid.amount),
        raw=paid.text,
        confidence=0.85,
        evidence=evidence_of(paid.tokens, paid.page),
        signals={"arithmetic": 1.0, "score": 1.0},
    )
