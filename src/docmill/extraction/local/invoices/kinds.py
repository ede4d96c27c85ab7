"""Whether it is an invoice or a credit note, by how it calls itself."""

import re

from docmill.extraction.local.invoices.sheet import Sheet

_CREDIT = re.compile(
    r"credit (?:note|memo)|gutschrift(?:snummer|s-nr|\b)|rechnungskorrektur|stornorechnung|korrekturrechnung|"
    r"\bavoir\b|note de credit|"
    r"nota di credito|nota de credito|factura rectificativa|creditnota|creditfactuur|kreditnota|kreditfaktura|"
    r"hyvityslasku|korekta"
)
_INVOICE = re.compile(r"rechnung(?!skorrektur)|invoice|facture|factuur|fattura|factura|faktura|fatura|lasku|\bbill\b")
CREDIT_NOTE = "credit_note"


def names_an_invoice(label: str) -> bool:
    """Whether a plain label speaks of an invoice: on a credit note, of the one that it corrects."""
    return bool(_INVOICE.search(label)) and not _CREDIT.search(label)


def kind_of(sheet: Sheet) -> str:
    """`credit_note` when that is how it is headed, else `invoice`."""
    for cell in sheet.cells:
        if cell.page > 1 or cell.depth > 0.5 or len(cell.tokens) > 6:
            continue
        if _CREDIT.search(cell.plain):
            return CREDIT_NOTE
        if _INVOICE.search(cell.plain) and (cell.height > 1.25 * sheet.height or len(cell.tokens) <= 2):
            return "invoice"
    return "invoice"
