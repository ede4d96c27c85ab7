"""Why a document was not read: one error for each reason, none of them worth another attempt.

Every error names what a person can do. They are permanent: the same bytes give the same answer, so the engine fails the
step at once.
"""

from docmill.model.errors import PermanentError


class DocumentFault(PermanentError):
    """A document that cannot be read as it is."""

    code = "unreadable_document"


class EmptyFile(DocumentFault):
    """There are no bytes."""

    code = "empty_file"


class UnsupportedFile(DocumentFault):
    """The content is of no kind that is read here, whatever the name says."""

    code = "unsupported_file"


class FileTooLarge(DocumentFault):
    """More bytes than the limit."""

    code = "file_too_large"


class EncryptedPdf(DocumentFault):
    """The PDF opens only with a password."""

    code = "encrypted_pdf"


class DamagedFile(DocumentFault):
    """The format is known, but the content is broken beyond reading."""

    code = "damaged_file"


class TooManyPages(DocumentFault):
    """More pages than the limit; nothing was read."""

    code = "too_many_pages"


class TooManyPixels(DocumentFault):
    """An image that would take more memory than a child may use; refused before it is decoded."""

    code = "too_many_pixels"


class TooMuchText(DocumentFault):
    """More characters than the limit, as only a file made to exhaust its reader has."""

    code = "too_much_text"


class ArchiveRefused(DocumentFault):
    """A zip archive (an EPUB) that unpacks to more than the limits, or is built to mislead."""

    code = "archive_refused"


class EncryptedEpub(DocumentFault):
    """The text of the book is locked by its seller (DRM)."""

    code = "encrypted_epub"


class XmlRefused(DocumentFault):
    """XML with a document type declaration, too large or too deep: never needed by an invoice, used by attacks."""

    code = "xml_refused"


class NotAnInvoice(DocumentFault):
    """Well-formed XML that is neither UBL nor CII."""

    code = "not_an_invoice_xml"


class NoSuchPage(DocumentFault):
    """A page was asked for that the document does not have."""

    code = "no_such_page"


class ReaderDied(DocumentFault):
    """The child that read the document ended or ran out of memory, more than once: the file is at fault."""

    code = "reader_died"


class ReaderTimedOut(DocumentFault):
    """Reading took longer than its limit, more than once."""

    code = "reader_timed_out"


CODES_OF_BYTES = frozenset(
    fault.code for fault in DocumentFault.__subclasses__() if fault not in (ReaderDied, ReaderTimedOut)
)
"""Of what is wrong with the bytes themselves: whoever tries again gets the same answer. A reader that died or took too
long may have been on a machine with too much to do."""
