"""Of the files that a PDF carries, the invoice of the document itself is read; what could not be read is told."""

from collections.abc import Callable
from typing import Any

import pikepdf
import pytest

from docmill.documents.limits import Limits
from docmill.documents.parsing import Outline, assemble, outline
from docmill.extraction.extracting import extract
from docmill.extraction.result import Reader
from tests.unit.documents.making import CII, UBL, edited, text_pdf

Store = Callable[[bytes], str]
LIMITS = Limits()
OTHER = UBL.replace("Grüße", "advance payment")
ORDER = (
    '<a:SCRDMCCBDACIOMessageStructure xmlns:a="urn:un:unece:uncefact:data:standard:SCRDMCCBDACIOMessageStructure:100"/>'
)
PAGE = [(72.0, 72.0, "Rechnung Nr. R-17"), (72.0, 92.0, "Datum 05.03.2026"), (72.0, 112.0, "Gesamtbetrag 119,00 EUR")]


def carrying(*files: tuple[str, str | bytes, str | None], **saving: object) -> bytes:
    """A PDF with attachments: name, content and relationship."""

    def attach(opened: Any) -> None:
        for name, content, relationship in files:
            opened.attachments[name] = content.encode() if isinstance(content, str) else content
            opened.attachments[name].obj.AFRelationship = pikepdf.Name(f"/{relationship or 'Unspecified'}")

    return edited(text_pdf(PAGE), attach, **saving)


@pytest.mark.parametrize(
    ("own", "other"),
    [
        (("factur-x.xml", None), ("a.xml", None)),
        (("ZUGFeRD-invoice.xml", None), ("a.xml", "Alternative")),
        (("XRechnung.xml", "Supplement"), ("a.xml", "Data")),
        (("z.xml", "Alternative"), ("a.xml", "Supplement")),
        (("z (1) ü.xml", "Source"), ("a.xml", None)),
        (("a.xml", None), ("z.xml", "Supplement")),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_of_several_invoices_that_of_the_document_itself_is_read(
    stored: Store, own: tuple[str, str | None], other: tuple[str, str | None], packed: bool
) -> None:
    mode = pikepdf.ObjectStreamMode.generate if packed else pikepdf.ObjectStreamMode.disable
    data = carrying((own[0], CII, own[1]), (other[0], OTHER, other[1]), object_stream_mode=mode)
    found = outline(stored(data), LIMITS)
    assert found.invoice is not None
    assert (found.invoice.attachment, found.invoice.xml) == (own[0], CII)
    assert any(repr(other[0]) in note and "more than one" in note for note in found.notes)


def test_the_same_invoice_twice_is_no_other(stored: Store) -> None:
    found = outline(stored(carrying(("a.xml", CII, None), ("factur-x.xml", CII, None))), LIMITS)
    assert found.invoice is not None
    assert not found.notes


@pytest.mark.parametrize("name", ["factur-x.xml", "beleg.bin"])
@pytest.mark.parametrize("content", [CII[:-9], "<!DOCTYPE a>" + CII], ids=["cut off", "document type"])
def test_an_invoice_that_cannot_be_read_is_told_with_the_fields_of_the_page(
    stored: Store, name: str, content: str
) -> None:
    seen = outline(stored(carrying((name, content, "Alternative"))), LIMITS)
    assert seen.invoice is None
    (note,) = seen.notes
    assert note.startswith(f"The attachment {name!r} could not be read, so the page was: ")
    found = extract(assemble(seen, ()), "invoice")
    assert found.reader is Reader.LOCAL
    assert note in found.notes


def test_what_does_no_harm_around_an_attached_invoice_does_not_stop_it(stored: Store) -> None:
    data = b'\n <?xml version="1.0" encoding="utf-16"?>' + CII.encode() + b"\x00\x00"
    found = outline(stored(carrying(("factur-x.xml", data, "Alternative"))), LIMITS)
    assert found.invoice is not None
    assert (found.invoice.xml, found.notes) == (CII, ())


def test_a_pdf_that_carries_an_order_is_one_and_is_not_filled_as_an_invoice(stored: Store) -> None:
    seen = outline(stored(carrying(("order-x.xml", ORDER, "Alternative"))), LIMITS)
    assert (seen.invoice, seen.declared) == (None, "order")
    assert Outline.from_json(seen.as_json()).declared == "order"
    whole = assemble(seen, ())
    found = extract(whole)
    assert (found.document_type, found.schema, found.fields) == ("order", "", {})
    assert "total" in extract(whole, "invoice").fields


def test_an_invoice_beside_the_order_it_is_for_is_an_invoice(stored: Store) -> None:
    found = outline(stored(carrying(("a.xml", ORDER, "Alternative"), ("b.xml", CII, "Alternative"))), LIMITS)
    assert found.invoice is not None
    assert (found.declared, found.notes) == (None, ())
