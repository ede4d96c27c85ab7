"""Sample documents that the project makes itself: tests, the demo and `make bench-docs` read them.

Everything is drawn from a seed, so the same call gives the same bytes on every machine, together with what is truly
written on it. No fonts or pictures are shipped. Writing PDFs needs fpdf2 (and pikepdf for attachments), which only
developers have; images and XML need nothing beyond the base install.
"""

from docmill.testing.papers.composed import composed_pdf
from docmill.testing.papers.drawing import SamplesUnavailable
from docmill.testing.papers.einvoices import cii_xml, facturx_pdf, ubl_xml
from docmill.testing.papers.facts import InvoiceFacts, ReceiptFacts, invoice_facts, receipt_facts
from docmill.testing.papers.invoices import LAYOUTS, invoice_pdf
from docmill.testing.papers.languages import LANGUAGES
from docmill.testing.papers.oddities import broken_pdf, epub, locked_pdf, nonsense, truncated_pdf
from docmill.testing.papers.paper import Paper
from docmill.testing.papers.scans import FORMATS, receipt_image, scanned, scanned_pdf

__all__ = [
    "FORMATS",
    "LANGUAGES",
    "LAYOUTS",
    "InvoiceFacts",
    "Paper",
    "ReceiptFacts",
    "SamplesUnavailable",
    "broken_pdf",
    "cii_xml",
    "composed_pdf",
    "epub",
    "facturx_pdf",
    "invoice_facts",
    "invoice_pdf",
    "locked_pdf",
    "nonsense",
    "receipt_facts",
    "receipt_image",
    "scanned",
    "scanned_pdf",
    "truncated_pdf",
    "ubl_xml",
]
