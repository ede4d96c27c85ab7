"""Receipts: company, address, date and total by learned rankers, the other fields by their labels, and the lines.

`read_receipt` reads one; `RECEIPT` is what `docmill.extraction.local.training` needs to fit a model.
"""

from docmill.extraction.local.receipts.reader import RECEIPT, read_receipt

__all__ = ["RECEIPT", "read_receipt"]
