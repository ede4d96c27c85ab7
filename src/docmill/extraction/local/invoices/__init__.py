"""Invoices without XML: fields, line items and taxes from what stands on the page.

A document is laid out once (`sheet`: rows and cells; `paper`: with its numbers, dates and their labels), its tables are
found (`tables`, `items`), and each field gets its candidates with features (`amounts`, `dates`, `numbers`, `parties`,
`currency`). `reader` has the rankers score them and chooses what fits together; `learning` fits them.
"""

from docmill.extraction.local.invoices.learning import KIND
from docmill.extraction.local.invoices.reader import read_invoice

__all__ = ["KIND", "read_invoice"]
