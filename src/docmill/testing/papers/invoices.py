"""Invoices as PDFs with text: four layouts, in the words and habits of several countries."""

from collections.abc import Callable, Mapping
from decimal import Decimal

from docmill.testing.papers.drawing import Sheet
from docmill.testing.papers.facts import InvoiceFacts, invoice_facts
from docmill.testing.papers.paper import Paper

_LAST_LINE = 235.0
"""Millimetres: below it, items go on to the next page."""


def invoice_pdf(
    seed: int = 0,
    *,
    language: str | None = None,
    layout: str | None = None,
    items: int | None = None,
    credit: bool = False,
    paid: bool | None = None,
) -> Paper:
    """An invoice drawn from a seed; what is not asked for is drawn too."""
    facts = invoice_facts(seed, language=language, items=items, credit=credit, paid=paid)
    chosen = layout or sorted(LAYOUTS)[seed % len(LAYOUTS)]
    content, pages = draw(facts, chosen)
    return Paper(
        name=f"invoice-{seed:04}.pdf",
        content=content,
        schema="invoice",
        fields=facts.fields(),
        rows=facts.rows(),
        pages=pages,
        layout=chosen,
    )


def draw(facts: InvoiceFacts, layout: str = "classic", *, password: str | None = None) -> tuple[bytes, int]:
    """The invoice as a PDF, and its number of pages."""
    sheet = LAYOUTS[layout](facts)
    return sheet.finish(password=password), sheet.pages


def _title(facts: InvoiceFacts) -> str:
    return facts.language.words["credit" if facts.credit else "invoice"]


def _money(facts: InvoiceFacts, value: Decimal) -> str:
    return facts.language.amount(value, symbol=True)


def _head(facts: InvoiceFacts) -> tuple[tuple[str, str], ...]:
    """Number and dates, each with its label."""
    words, language = facts.language.words, facts.language
    return (
        (words["number"], facts.number),
        (words["date"], language.day(facts.issued, facts.date_form)),
        (words["due"], language.day(facts.due, facts.date_form)),
    )


def _sums(facts: InvoiceFacts) -> tuple[tuple[str, Decimal], ...]:
    """What stands below the items."""
    words = facts.language.words
    rows = [(words["subtotal"], facts.subtotal)]
    rows += [(f"{words['tax']} {rate}%", tax) for rate, (_, tax) in facts.taxes.items()]
    rows.append((words["total"], facts.total))
    if facts.paid:
        rows += [(words["paid"], -facts.paid), (words["payable"], facts.payable)]
    return tuple(rows)


def _items(
    sheet: Sheet,
    facts: InvoiceFacts,
    top: float,
    *,
    columns: tuple[float, float, float, float],
    lines: bool,
    size: float = 9,
) -> float:
    """The table of items; returns where the sums may begin."""
    words, language = facts.language.words, facts.language
    description, quantity, price, amount = columns

    def heads(y: float) -> float:
        sheet.text(description, y, words["description"], size=size, bold=True)
        for x, key in ((quantity, "quantity"), (price, "price"), (amount, "line")):
            sheet.text(x, y, words[key], size=size, bold=True, align="right")
        if lines:
            sheet.rule(description, y + 1.5, amount)
        return y + 7

    y = heads(top)
    for item in facts.items:
        if y > _LAST_LINE:
            sheet.new_page()
            sheet.text(amount, 15, f"{words['page']} {sheet.pages}", size=8, align="right")
            y = heads(25)
        sheet.text(description, y, item.description, size=size)
        sheet.text(quantity, y, str(item.quantity), size=size, align="right")
        sheet.text(price, y, language.amount(item.price), size=size, align="right")
        sheet.text(amount, y, language.amount(item.amount), size=size, align="right")
        y += 6
    if y > _LAST_LINE - 10:
        sheet.new_page()
        y = 25
    if lines:
        sheet.rule(description, y - 2, amount)
    return y + 4


def _classic(facts: InvoiceFacts) -> Sheet:
    """Letterhead left, facts right, sums below their column."""
    sheet, words = Sheet(), facts.language.words
    sheet.block(20, 22, (facts.seller.name, *facts.seller.lines), bold_first=True)
    sheet.text(20, 40, f"{words['tax_id']}: {facts.seller.tax_id}", size=8)
    sheet.text(190, 24, _title(facts), size=20, bold=True, align="right")
    sheet.text(20, 58, words["to"], size=8, bold=True)
    sheet.block(20, 63, (facts.buyer.name, *facts.buyer.lines))
    y = 58.0
    for label, value in _head(facts):
        sheet.text(130, y, f"{label}:", size=9)
        sheet.text(190, y, value, size=9, align="right")
        y += 5
    y = _items(sheet, facts, 95, columns=(20, 120, 155, 190), lines=True)
    for label, amount in _sums(facts):
        final = label in (words["total"], words["payable"])
        sheet.text(155, y, label, bold=final, align="right")
        sheet.text(190, y, _money(facts, amount), bold=final, align="right")
        y += 6
    _foot(sheet, facts, y + 10)
    return sheet


def _modern(facts: InvoiceFacts) -> Sheet:
    """A coloured band, parties side by side, the total in a box."""
    sheet, words = Sheet(), facts.language.words
    sheet.band(0, 0, 210, 34, (226, 236, 240))
    sheet.text(20, 20, facts.seller.name, size=17, bold=True)
    sheet.text(190, 20, f"{_title(facts)} {facts.number}", size=12, align="right")
    sheet.text(20, 46, words["from"].upper(), size=7, grey=110)
    sheet.block(20, 51, (facts.seller.name, *facts.seller.lines, f"{words['tax_id']} {facts.seller.tax_id}"), size=9)
    sheet.text(80, 46, words["to"].upper(), size=7, grey=110)
    sheet.block(80, 51, (facts.buyer.name, *facts.buyer.lines), size=9)
    for place, (label, value) in enumerate(_head(facts)[1:]):
        sheet.text(145, 46 + 12 * place, label.upper(), size=7, grey=110)
        sheet.text(145, 51 + 12 * place, value, size=9)
    y = _items(sheet, facts, 84, columns=(20, 115, 150, 190), lines=False)
    *rows, (label, amount) = _sums(facts)
    for name, part in rows:
        sheet.text(120, y, name, size=9)
        sheet.text(190, y, _money(facts, part), size=9, align="right")
        y += 5.5
    sheet.band(115, y - 3, 78, 11, (226, 236, 240))
    sheet.text(120, y + 4, label, size=12, bold=True)
    sheet.text(190, y + 4, _money(facts, amount), size=12, bold=True, align="right")
    _foot(sheet, facts, y + 20)
    return sheet


def _letter(facts: InvoiceFacts) -> Sheet:
    """As for a window envelope: the sender in small print above the address, the seller's data in the foot."""
    sheet, words = Sheet("times"), facts.language.words
    sender = " · ".join((facts.seller.name, *facts.seller.lines))
    sheet.text(25, 48, sender, size=7)
    sheet.rule(25, 49.5, 100, width=0.1)
    sheet.block(25, 56, (facts.buyer.name, *facts.buyer.lines), size=11)
    (_, number), (date_label, issued), (due_label, due) = _head(facts)
    sheet.text(190, 85, f"{facts.seller.city}, {issued}", size=10, align="right")
    sheet.text(25, 98, f"{_title(facts)} {words['number']} {number}", size=13, bold=True)
    sheet.text(25, 105, f"{date_label}: {issued}", size=10)
    y = _items(sheet, facts, 116, columns=(25, 115, 150, 185), lines=True, size=10)
    for label, amount in _sums(facts):
        sheet.text(100, y, label, size=10, bold=label == words["total"])
        text = facts.language.amount(amount, code=True)
        sheet.text(185, y, text, size=10, bold=label == words["total"], align="right")
        y += 5.5
    sheet.text(25, y + 8, words["terms"].format(days=facts.days), size=10)
    sheet.text(25, y + 14, f"{due_label}: {due}", size=10)
    foot = [facts.seller.name, *facts.seller.lines, f"{words['tax_id']} {facts.seller.tax_id}"]
    sheet.rule(25, 272, 185, width=0.1)
    sheet.text(25, 277, " | ".join(foot), size=7)
    if facts.iban:
        sheet.text(25, 281, f"{words['iban']} {facts.iban}", size=7)
    return sheet


def _boxed(facts: InvoiceFacts) -> Sheet:
    """A form: every fact in a frame of its own, labels above values."""
    sheet, words = Sheet(), facts.language.words
    sheet.text(105, 20, _title(facts), size=18, bold=True, align="middle")
    sheet.block(20, 32, (facts.seller.name, *facts.seller.lines, f"{words['tax_id']}: {facts.seller.tax_id}"), size=9)
    sheet.frame(20, 52, 80, 28)
    sheet.text(22, 56, words["to"], size=7)
    sheet.block(22, 62, (facts.buyer.name, *facts.buyer.lines), size=10)
    for place, (label, value) in enumerate(_head(facts)):
        sheet.frame(110, 52 + place * 9.4, 80, 9.4)
        sheet.text(112, 55.5 + place * 9.4, label, size=7)
        sheet.text(112, 60 + place * 9.4, value, size=10)
    y = _items(sheet, facts, 92, columns=(22, 115, 150, 188), lines=True)
    sums = _sums(facts)
    width = 170 / len(sums)
    for place, (label, amount) in enumerate(sums):
        sheet.frame(20 + place * width, y, width, 12)
        sheet.text(22 + place * width, y + 4, label, size=7)
        sheet.text(18 + (place + 1) * width, y + 9.5, _money(facts, amount), size=9.5, bold=True, align="right")
    _foot(sheet, facts, y + 24)
    return sheet


def _foot(sheet: Sheet, facts: InvoiceFacts, y: float) -> None:
    words = facts.language.words
    sheet.text(20, y, words["terms"].format(days=facts.days), size=8)
    if facts.iban:
        sheet.text(20, y + 5, f"{words['iban']}: {facts.iban}", size=8)


LAYOUTS: Mapping[str, Callable[[InvoiceFacts], Sheet]] = {
    "boxed": _boxed,
    "classic": _classic,
    "letter": _letter,
    "modern": _modern,
}
