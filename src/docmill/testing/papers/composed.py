"""Invoices composed at random: words, names, blocks and their places are each drawn apart from the others.

The four layouts of `invoices` are what a reader is made for. These are what it meets: numbers and dates of other things
beside those that count, labels left out, two addresses, a letterhead above, below or nowhere, sums in other places.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from docmill.testing.papers.drawing import Sheet
from docmill.testing.papers.facts import InvoiceFacts, Party, invoice_facts
from docmill.testing.papers.paper import Paper
from docmill.testing.papers.wordings import company, label, root

LEFT, RIGHT = 18.0, 192.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How one invoice is written; drawn once, so that it is all of a piece."""

    random: Random
    language: str
    usual: float
    """How often a thing is called by its most usual name."""
    colon: str
    size: float
    symbol: bool

    def label(self, key: str) -> str:
        """A label as this invoice writes it."""
        return label(self.language, key, self.random, usual=self.usual) + self.colon

    def chance(self, share: float) -> bool:
        """True this often."""
        return self.random.random() < share


def composed_pdf(seed: int = 0) -> Paper:
    """An invoice drawn from a seed, with labels of what stands on it."""
    random = Random(f"composed {seed}")
    facts = invoice_facts(seed, paid=random.random() < 0.2)
    language = facts.language.code[:2]
    facts = replace(
        facts,
        seller=replace(facts.seller, name=company(language, random)),
        buyer=replace(facts.buyer, name=_buyer(language, random)),
    )
    manner = Manner(
        random=random,
        language=language,
        usual=random.choice((0.2, 0.5, 0.8)),
        colon=random.choice((":", ":", "", " :")),
        size=random.choice((8.0, 9.0, 10.0)),
        symbol=random.random() < 0.6,
    )
    sheet = Sheet(random.choice(("helvetica", "times", "courier")))
    told = _draw(sheet, facts, manner)
    return Paper(
        name=f"composed-{seed:04}.pdf",
        content=sheet.finish(),
        schema="invoice",
        fields={name: value for name, value in facts.fields().items() if name in told},
        rows=facts.rows(),
        pages=sheet.pages,
        layout="composed",
    )


def _buyer(language: str, random: Random) -> str:
    return company(language, random) if random.random() < 0.75 else f"{root(random)} {root(random)}"


def _draw(sheet: Sheet, facts: InvoiceFacts, manner: Manner) -> set[str]:
    """Everything on the sheet; returns the names of the fields that can be seen on it."""
    told = {"invoice_number", "issue_date", "seller_name", "buyer_name", "total"}
    y = _letterhead(sheet, facts, manner)
    aside = manner.chance(0.6)
    bottom = _buyer_block(sheet, facts, manner, y + 10, alone=not aside)
    below, due = _particulars(sheet, facts, manner, 120.0 if aside else LEFT, y + 10 if aside else bottom + 8)
    told |= {"due_date"} if due else set()
    y = _items(sheet, facts, manner, max(bottom, below) + 10)
    y, sums = _sums(sheet, facts, manner, y + 6)
    _foot(sheet, facts, manner, max(y + 12, 262.0 if manner.chance(0.5) else 0.0))
    # Whose money it is can be seen if a sign or a code stands anywhere.
    return told | sums | ({"currency"} if manner.symbol else set())


def _about(party: Party, manner: Manner) -> tuple[str, ...]:
    """How to reach a seller."""
    site = "".join(filter(str.isalpha, party.name.split()[0].lower())) or "mail"
    lines = [*party.lines]
    if manner.chance(0.5):
        lines.append(f"Tel. {manner.random.randint(100, 999)} {manner.random.randint(100_000, 999_999)}")
    if manner.chance(0.5):
        lines.append(manner.random.choice((f"info@{site}.example", f"www.{site}.example")))
    if manner.chance(0.5):
        lines.append(party.tax_id)
    return tuple(lines)


def _letterhead(sheet: Sheet, facts: InvoiceFacts, manner: Manner) -> float:
    """The seller and the title, at the head; sometimes the seller stands in one small line only, or in the foot."""
    title = facts.language.words["invoice"]
    seller, where = facts.seller, manner.random.choice(("left", "right", "middle", "line"))
    top = 16.0
    if where == "line":
        sheet.text(LEFT, 42, " - ".join((seller.name, *seller.lines)), size=7)
        top = 40.0
    else:
        x = {"left": LEFT, "right": 120.0, "middle": 80.0}[where]
        large = manner.random.choice((manner.size, 14.0, 18.0))
        sheet.text(x, top, seller.name, size=large, bold=manner.chance(0.6))
        top = sheet.block(x, top + 6, _about(seller, manner), size=manner.size)
    if manner.chance(0.85):
        x = manner.random.choice((LEFT, 130.0))
        place = 16.0 if where not in ("left", "middle") and x == LEFT else top + 6
        sheet.text(x, place, title, size=manner.random.choice((12.0, 16.0, 20.0)), bold=True)
        top = max(top, place)
    return top


def _buyer_block(sheet: Sheet, facts: InvoiceFacts, manner: Manner, y: float, *, alone: bool) -> float:
    """To whom it is addressed; where there is room, sometimes where the goods went stands beside it."""
    if manner.chance(0.6):
        sheet.text(LEFT, y, manner.label("to"), size=manner.size, bold=manner.chance(0.5))
        y += 5
    end = sheet.block(LEFT, y, (facts.buyer.name, *facts.buyer.lines), size=manner.size)
    if alone and manner.chance(0.4):
        sheet.text(120, y - 5, manner.label("ship"), size=manner.size)
        elsewhere = (f"{root(manner.random)} {root(manner.random)}", facts.buyer.street, facts.buyer.lines[-1])
        end = max(end, sheet.block(120, y, elsewhere, size=manner.size))
    return end


def _particulars(sheet: Sheet, facts: InvoiceFacts, manner: Manner, x: float, y: float) -> tuple[float, bool]:
    """Number, dates and references: one under the other, side by side, or in two columns. With whether a due date."""
    language, random = facts.language, manner.random
    other = language.day(facts.issued - timedelta(days=random.randint(2, 20)), facts.date_form)
    pairs = [
        ("number", facts.number),
        ("date", language.day(facts.issued, facts.date_form)),
    ]
    due = manner.chance(0.7)
    more = [
        ("due", language.day(facts.due, facts.date_form), due),
        ("order", f"{random.randint(1000, 99_999)}", manner.chance(0.5)),
        ("customer", f"{random.choice(('K', 'C-', ''))}{random.randint(100, 9_999)}", manner.chance(0.5)),
        ("supplied", other, manner.chance(0.4)),
    ]
    pairs += [(key, value) for key, value, wanted in more if wanted]
    random.shuffle(pairs)
    named = {key: manner.label(key) for key, _ in pairs}
    if x == LEFT and manner.chance(0.5):
        step = (RIGHT - LEFT) / len(pairs)
        for place, (key, value) in enumerate(pairs):
            sheet.text(LEFT + place * step, y, named[key], size=7)
            sheet.text(LEFT + place * step, y + 5, value, size=manner.size)
        return y + 6, due
    gap = max(sheet.width(name, size=manner.size) for name in named.values()) + random.choice((3.0, 9.0))
    for key, value in pairs:
        sheet.text(x, y, named[key], size=manner.size)
        sheet.text(x + gap, y, value, size=manner.size)
        y += 5
    return y, due


def _items(sheet: Sheet, facts: InvoiceFacts, manner: Manner, y: float) -> float:
    """The table; columns in one of several orders, with or without a head."""
    words, language = facts.language.words, facts.language
    columns = {"description": LEFT + 12, "quantity": 118.0, "price": 150.0, "line": RIGHT - 2}
    if manner.chance(0.3):
        columns = {"quantity": LEFT + 12, "description": LEFT + 20, "price": 150.0, "line": RIGHT - 2}
    numbered = manner.chance(0.4)
    if manner.chance(0.9):
        for key, x in columns.items():
            sheet.text(x, y, words[key], size=manner.size, bold=True, align="left" if key == "description" else "right")
        sheet.rule(LEFT, y + 1.5, RIGHT)
    for place, item in enumerate(facts.items, 1):
        y += 6
        if numbered:
            sheet.text(LEFT, y, str(place), size=manner.size)
        cells = {
            "description": item.description,
            "quantity": str(item.quantity),
            "price": language.amount(item.price),
            "line": language.amount(item.amount),
        }
        for key, x in columns.items():
            sheet.text(x, y, cells[key], size=manner.size, align="left" if key == "description" else "right")
    return y + 3


def _sums(sheet: Sheet, facts: InvoiceFacts, manner: Manner, y: float) -> tuple[float, set[str]]:
    """What it comes to; returns where it ends and which sums are told."""
    rates = ", ".join(f"{rate} %" for rate in facts.taxes)
    told = {"total"}
    rows = [(manner.label("total"), facts.total)]
    if manner.chance(0.85):
        rows = [
            (manner.label("subtotal"), facts.subtotal),
            (f"{manner.label('tax').rstrip(' :')} {rates}{manner.colon}", facts.tax),
            *rows,
        ]
        told |= {"subtotal", "tax"}
    if facts.paid:
        rows += [(manner.label("paid"), facts.paid), (manner.label("payable"), facts.payable)]
        told |= {"amount_due"}
    where = manner.random.choice(("right", "right", "left", "across"))
    if where == "across":
        step = (RIGHT - LEFT) / len(rows)
        for place, (name, value) in enumerate(rows):
            sheet.text(LEFT + place * step, y, name, size=7)
            sheet.text(LEFT + place * step, y + 5, facts.language.amount(value, symbol=manner.symbol), size=manner.size)
        return y + 8, told
    start, end = (120.0, RIGHT - 2) if where == "right" else (LEFT, 90.0)
    for name, value in rows:
        sheet.text(start, y, name, size=manner.size)
        text = facts.language.amount(value, symbol=manner.symbol)
        sheet.text(end, y, text, size=manner.size, align="right", bold=manner.chance(0.3))
        y += 5.5
    return y, told


def _foot(sheet: Sheet, facts: InvoiceFacts, manner: Manner, y: float) -> None:
    """Terms, accounts and who is asked; each may be missing."""
    words, language = facts.language.words, facts.language
    lines = []
    if manner.chance(0.5):
        lines.append(words["terms"].format(days=facts.days))
    if manner.chance(0.2):
        early = language.day(facts.issued + timedelta(days=max(3, facts.days // 2)), facts.date_form)
        lines.append(manner.label("discount").rstrip(" :").format(day=early))
    if manner.chance(0.3):
        name = f"{root(manner.random)} {root(manner.random)}"
        lines.append(manner.label("contact").rstrip(" :").format(name=name))
    if facts.iban and manner.chance(0.6):
        lines.append(f"{facts.seller.name} | {words['iban']} {facts.iban}")
    sheet.block(LEFT, y, tuple(lines), size=8)
