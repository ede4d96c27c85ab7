"""E-invoices: UBL, CII and ZUGFeRD 1.0, read exactly as their XML says; and whether the printed page says the same.

Finding the XML in a PDF is not done here (that is `docmill.documents`), nor are sums corrected: what the XML says is
what is returned, and the checks of the schema tell where it contradicts itself.
"""

from docmill.extraction.einvoice.agreement import PAGE_AGREES, compared_with_page
from docmill.extraction.einvoice.reader import read_einvoice
from docmill.extraction.einvoice.tree import EInvoiceInvalid

__all__ = ["PAGE_AGREES", "EInvoiceInvalid", "compared_with_page", "read_einvoice"]
