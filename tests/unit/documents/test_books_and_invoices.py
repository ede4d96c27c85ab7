"""EPUB books are read in the order of their spine, e-invoices in any encoding; neither fetches or unpacks anything."""

import stat
import zipfile
from collections.abc import Callable
from io import BytesIO

import pytest

from docmill.documents.faults import ArchiveRefused, DamagedFile, EncryptedEpub, NotAnInvoice, XmlRefused
from docmill.documents.limits import Limits
from docmill.documents.parsing import outline
from docmill.documents.reading import Format
from docmill.documents.xml_invoice import parse_invoice
from docmill.extraction.einvoice.tree import parsed
from tests.unit.documents.making import CII, CONTAINER, UBL, chapter, epub, opf, zipped

Store = Callable[[bytes], str]
LIMITS = Limits()
DECLARED = '<?xml version="1.0" encoding="{}"?>'
LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
XXE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


def test_chapters_come_in_the_order_of_the_spine_with_their_titles(stored: Store) -> None:
    book = epub(
        {
            "b.xhtml": chapter("Loomings", "Call me <i>Ishmael</i>.", "Some years&nbsp;ago &amp; so on"),
            "a.xhtml": chapter("The Carpet-Bag", "I stuffed a shirt"),
        }
    )
    read = outline(stored(book), LIMITS)
    assert (read.format, read.page_count, read.needs_ocr) == (Format.EPUB, 0, ())
    assert [(part.path, part.title) for part in read.sections] == [
        ("OPS/b.xhtml", "Loomings"),
        ("OPS/a.xhtml", "The Carpet-Bag"),
    ]
    assert read.sections[0].text == "Loomings\nCall me Ishmael.\nSome years ago & so on"
    assert read.metadata["title"] == "A Book"


def test_titles_come_from_the_table_of_contents(stored: Store) -> None:
    package = opf("a.xhtml").replace(
        "</manifest>", '<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/></manifest>'
    )
    nav = chapter("Contents", '<a href="a.xhtml#x">The First</a>')
    book = epub({"a.xhtml": chapter("1", "x")}, **{"OPS/book.opf": package, "OPS/nav.xhtml": nav})
    assert [part.title for part in outline(stored(book), LIMITS).sections] == ["The First"]


def test_scripts_and_broken_markup_do_no_harm(stored: Store) -> None:
    book = epub({"a.xhtml": "<html><body><script>alert(1)</script><p>One<br>two</body>"})
    assert outline(stored(book), LIMITS).sections[0].text == "One\ntwo"


def test_entries_that_lead_out_of_the_book_do_not_exist(stored: Store) -> None:
    book = epub(
        {"a.xhtml": chapter("A", "x"), "../../etc/passwd": "root", "/etc/passwd": "root"},
        **{"../evil.xhtml": chapter("E", "evil")},
    )
    read = outline(stored(book), LIMITS)
    assert [part.path for part in read.sections] == ["OPS/a.xhtml"]


def test_symbolic_links_in_a_book_do_not_exist(stored: Store) -> None:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "OPS/book.opf": opf("a.xhtml", "b.xhtml"),
            "OPS/a.xhtml": chapter("A", "x"),
        }.items():
            archive.writestr(name, text)
        link = zipfile.ZipInfo("OPS/b.xhtml")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    read = outline(stored(out.getvalue()), LIMITS)
    assert [part.path for part in read.sections] == ["OPS/a.xhtml"]
    assert "OPS/b.xhtml" in read.notes[0]


@pytest.mark.parametrize("doctype", [LAUGHS, XXE])
@pytest.mark.parametrize("place", ["META-INF/container.xml", "OPS/book.opf", "OPS/a.xhtml"])
def test_entities_are_refused_wherever_in_the_book_they_stand(stored: Store, doctype: str, place: str) -> None:
    text = {"META-INF/container.xml": CONTAINER, "OPS/book.opf": opf("a.xhtml"), "OPS/a.xhtml": chapter("A", "&a;")}
    book = epub({"a.xhtml": chapter("A", "x")}, **{place: doctype + text[place]})
    with pytest.raises(XmlRefused):
        outline(stored(book), LIMITS)


def test_the_document_type_of_old_books_is_no_reason_to_refuse_them(stored: Store) -> None:
    doctype = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">'
    book = epub({"a.xhtml": doctype + chapter("A", "caf&eacute;")})
    assert outline(stored(book), LIMITS).sections[0].text == "A\ncafé"


def test_an_entry_that_unpacks_to_far_more_is_refused(stored: Store) -> None:
    with pytest.raises(ArchiveRefused):
        outline(stored(epub({"a.xhtml": chapter("A", "x" * 3_000_000)})), LIMITS)


def test_an_entry_that_lies_about_its_size_is_counted(stored: Store) -> None:
    data = epub({"a.xhtml": chapter("A", "x" * 3_000_000)})
    size = len(chapter("A", "x" * 3_000_000)).to_bytes(4, "little")
    assert data.count(size) == 2
    with pytest.raises((ArchiveRefused, DamagedFile)):
        outline(stored(data.replace(size, (100).to_bytes(4, "little"))), LIMITS)


def test_too_many_entries_are_refused_before_the_directory_is_read(stored: Store) -> None:
    entries = {f"{number}": "" for number in range(30)}
    with pytest.raises(ArchiveRefused, match="entries"):
        outline(stored(epub({"a.xhtml": "x"}, **entries)), Limits(archive_entries=20))


def test_a_whole_book_has_a_limit_too(stored: Store) -> None:
    book = epub({f"{number}.xhtml": chapter("A", "x" * 3000) for number in range(5)})
    with pytest.raises(ArchiveRefused):
        outline(stored(book), Limits(archive_bytes=10_000))


def test_a_book_under_drm_says_so(stored: Store) -> None:
    listed = '<encryption><EncryptedData><CipherReference URI="OPS/a.xhtml"/></EncryptedData></encryption>'
    with pytest.raises(EncryptedEpub):
        outline(stored(epub({"a.xhtml": chapter("A", "x")}, **{"META-INF/encryption.xml": listed})), LIMITS)


def test_a_book_without_chapters_is_damaged(stored: Store) -> None:
    for broken in (epub({}), zipped({"mimetype": "application/epub+zip", "META-INF/container.xml": "<a/>"})):
        with pytest.raises(DamagedFile):
            outline(stored(broken), LIMITS)


@pytest.mark.parametrize(
    "data",
    [
        UBL.encode(),
        b'\xef\xbb\xbf<?xml version="1.0" encoding="UTF-8"?>' + UBL.encode(),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>' + UBL).encode("latin-1"),
        ('<?xml version="1.0" encoding="UTF-16"?>' + UBL).encode("utf-16"),
        b"<!-- made by a program --><?style x?>\n" + UBL.encode(),
    ],
)
def test_an_invoice_is_read_in_any_encoding(stored: Store, data: bytes) -> None:
    read = outline(stored(data), LIMITS)
    assert read.invoice is not None
    assert (read.format, read.invoice.xml, read.invoice.attachment) == (Format.XML, UBL, None)


@pytest.mark.parametrize(
    "root",
    [
        '<CreditNote xmlns="urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2"/>',
        '<a:CrossIndustryDocument xmlns:a="urn:ferd:CrossIndustryDocument:invoice:1p0"/>',
        CII,
    ],
)
def test_every_kind_of_invoice_is_known(root: str) -> None:
    assert parse_invoice(root.encode(), LIMITS) == root


def test_an_invoice_in_its_envelope_is_taken_out() -> None:
    wrapped = f"<s:StandardBusinessDocument xmlns:s='urn:s'><s:Header/>{UBL}</s:StandardBusinessDocument>"
    assert "<Note>Grüße</Note>" in parse_invoice(wrapped.encode(), LIMITS)


@pytest.mark.parametrize("root", ["<Invoice/>", "<html/>", '<Invoice xmlns="urn:other"/>', "<Order>1</Order>"])
def test_other_xml_is_not_taken_for_an_invoice(root: str) -> None:
    with pytest.raises(NotAnInvoice, match="UBL"):
        parse_invoice(root.encode(), LIMITS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-7"])
@pytest.mark.parametrize("doctype", [LAUGHS, XXE, "<!DOCTYPE Invoice>", '<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd">'])
def test_any_document_type_is_refused(doctype: str, encoding: str) -> None:
    head = "" if encoding.startswith("utf-16-") else f'<?xml version="1.0" encoding="{encoding}"?>'
    with pytest.raises((XmlRefused, DamagedFile)):
        parse_invoice((head + doctype + UBL).encode(encoding), LIMITS)


def test_nothing_is_included_or_fetched() -> None:
    included = (
        '<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" '
        'xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="/etc/hostname" parse="text"/></Invoice>'
    )
    assert parse_invoice(included.encode(), LIMITS) == included


@pytest.mark.parametrize(
    "data",
    [
        b"\n  " + DECLARED.format("UTF-8").encode() + UBL.encode(),
        b"\xef\xbb\xbf\r\n\xef\xbb\xbf" + UBL.encode(),
        UBL.encode() + b"\n\x00\x00\x00",
        DECLARED.format("utf-16").encode() + UBL.encode(),
        (DECLARED.format("UTF-8") + UBL).encode("utf-16"),
        ("\n " + DECLARED.format("utf-8") + UBL + "\n\x00").encode("utf-16-be"),
    ],
    ids=["blank before", "marks before", "NULs behind", "says utf-16, is utf-8", "says utf-8, is utf-16", "all of it"],
)
def test_what_does_no_harm_around_an_invoice_does_not_stop_it(stored: Store, data: bytes) -> None:
    read = outline(stored(data), LIMITS)
    assert read.invoice is not None
    assert read.invoice.xml == UBL


@pytest.mark.parametrize("before", ["\n ", "\ufeff\n", DECLARED.format("utf-16")])
def test_a_document_type_does_not_hide_behind_what_is_tidied_away(before: str) -> None:
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        with pytest.raises(XmlRefused, match="DOCTYPE"):
            parse_invoice((before + LAUGHS + UBL).encode(encoding), LIMITS)


def test_an_invoice_that_was_cut_off_is_damaged() -> None:
    with pytest.raises(DamagedFile):
        parse_invoice(UBL.encode()[:-5], LIMITS)


def test_an_attachment_in_an_invoice_may_be_as_long_as_the_limit_allows() -> None:
    long = UBL.replace("Grüße", "A" * 12_000_000)
    assert parse_invoice(long.encode(), LIMITS) == long
    assert parsed(long).tag.endswith("Invoice")
    with pytest.raises(XmlRefused, match="limit"):
        parse_invoice(long.encode(), Limits(max_xml_bytes=11_000_000))


def test_long_invoices_are_neither_deep_nor_of_endless_parts_nor_do_they_declare_anything() -> None:
    long = "A" * 10_500_000
    with pytest.raises(XmlRefused, match="deep"):
        parse_invoice(UBL.replace("Grüße", "<a>" * 300 + long + "</a>" * 300).encode(), LIMITS)
    with pytest.raises(XmlRefused, match="elements"):
        parse_invoice(UBL.replace("Grüße", "<a/>" * 100).encode(), Limits(max_xml_elements=100))
    laughs = DECLARED.format("utf-7") + LAUGHS + UBL.replace("Grüße", long)
    with pytest.raises((XmlRefused, DamagedFile)):
        parse_invoice(laughs.encode("utf-7"), LIMITS)


def test_xml_beyond_measure_is_refused() -> None:
    with pytest.raises(XmlRefused, match="limit"):
        parse_invoice(UBL.encode(), Limits(max_xml_bytes=10))
    with pytest.raises(XmlRefused):
        parse_invoice(b"<a>" * 5000, LIMITS)


@pytest.mark.parametrize(
    "data", [b"<a><b></a>", b"<", b"<?xml version='1.0' encoding='nonsense'?><a/>", b"<a>\xff</a>"]
)
def test_xml_that_is_not_well_formed_is_damaged(data: bytes) -> None:
    with pytest.raises(DamagedFile, match="new copy"):
        parse_invoice(data, LIMITS)
