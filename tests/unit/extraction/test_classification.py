"""Types of documents: papers in six languages are told apart, and whatever comes gets an answer."""

from dataclasses import replace

import pytest

from docmill.documents.reading import Format, Line, Reading, Section, StructuredInvoice
from docmill.extraction.classification import Classifier, DocumentType, classify, features, shipped
from docmill.extraction.extracting import extract
from docmill.extraction.result import Extraction
from docmill.extraction.type_training import TypedDocument, fit_types
from docmill.model.documents import NothingRead
from docmill.testing.paper_readings import paper, papers


@pytest.mark.parametrize(
    ("kind", "language", "reading"),
    [pytest.param(*each, id=f"{n}-{each[0]}-{each[1]}") for n, each in enumerate(papers())],
)
def test_a_paper_is_told_by_its_title_and_its_words(kind: str, language: str, reading: Reading) -> None:
    assert classify(reading, shipped()).type.value == kind


def test_the_schema_follows_the_type() -> None:
    by_kind = {kind: classify(reading, shipped()).schema for kind, _, reading in papers()}
    assert by_kind["invoice"] == by_kind["credit_note"] == "invoice"
    assert by_kind["receipt"] == "receipt"


def test_prose_is_something_else() -> None:
    prose = ["the old harbour lay quiet under the morning fog and nobody spoke a word about it"] * 30
    found = classify(paper(prose), shipped())
    assert found.type is DocumentType.OTHER
    assert found.schema in ("invoice", "receipt")


def test_an_e_invoice_is_an_invoice_whatever_its_page_says() -> None:
    reading = Reading(sha256="0", format=Format.XML, invoice=StructuredInvoice(xml="<Invoice/>", attachment=None))
    assert classify(reading, shipped()).type is DocumentType.INVOICE


@pytest.mark.parametrize(
    "reading",
    [
        Reading(sha256="0", format=Format.PDF),
        paper([]),
        paper(["\u202e", "€€€ 1.1.1 ,,, …"]),
        Reading(sha256="0", format=Format.EPUB, sections=(Section(path="a", title=None, text="Call me\n" * 9),)),
    ],
)
def test_whatever_comes_has_a_type(reading: Reading) -> None:
    found = classify(reading, shipped())
    assert 0 <= found.confidence <= 1


def test_an_invoice_that_names_an_order_is_an_invoice() -> None:
    lines = [
        "Nordlicht Handel",
        "Rechnung",
        "Bestellung: 4711",
        "Lieferschein Nr. 12",
        "Gesamtbetrag 119,00 EUR",
        "MwSt 19,00",
    ]
    assert classify(paper(lines), shipped()).type is DocumentType.INVOICE


_GOODS = ["Regalböden  4  12,50  50,00", "Winkel verzinkt  2  25,00  50,00", "Dübel  1  20,00  20,00"]


@pytest.mark.parametrize(
    ("title", "total"),
    [
        *[("Honorarnote Nr. 77", "Honorar brutto 120,00"), ("Liquidation Nr. 77", "Rechnungsbetrag 120,00")],
        *[("Lidmaatschapsnota 77", "Totaal te voldoen 120,00"), ("Stroomfactuur 77", "Te betalen 120,00")],
        *[("Freight Bill 77", "Pay this amount 120.00"), ("Fee Note 77", "Total 120.00")],
        *[
            ("Fakturanummer 77", "Å betale 120,00"),
            ("Regning 77", "I alt at betale 120,00"),
            ("Räkning", "Summa 120,00"),
        ],
        *[
            ("Sähkölasku 77", "Maksettava 120,00"),
            ("Rachunek 77", "Do zapłaty 120,00"),
            ("Vyúčtování", "K úhradě 120,00"),
        ],
        *[("Parcella n. 77", "Totale 120,00"), ("Minuta 77", "Total 120,00"), ("Τιμολόγιο 77", "Σύνολο 120,00")],
    ],
)
def test_an_invoice_is_one_under_any_of_its_names(title: str, total: str) -> None:
    reading = paper(["Birkenhof", title, *_GOODS, total, "IBAN DE02 1203 0000 0000 2020 51"])
    assert classify(reading, shipped()).type is DocumentType.INVOICE


def test_a_paper_without_a_known_title_is_an_invoice_by_its_shape() -> None:
    lines = ["Birkenhof", "Skipper's memorandum 77", "Customer 4711", *_GOODS, "Total 120.00", "VAT 20.00"]
    assert classify(paper([*lines, "Account number 12-34-56"]), shipped()).type is DocumentType.INVOICE


_PAID_BY_CARD = (
    *("Seeblick Hotel", "Invoice 2031-77", "Cashier: Ines 08:41", "Visa ****1234", "Cash 0.00", "Change 0.00"),
    *("Thank you, please come again", "Terminal 4", "Total 120.00", "VAT 20.00"),
)


def test_a_whole_page_in_fine_print_that_was_paid_by_card_is_an_invoice_and_a_slip_is_a_receipt() -> None:
    long = "Overnight stay in a double room with breakfast for two and a view of the lake, 3 nights   120.00"
    assert classify(paper([*_PAID_BY_CARD, long]), shipped()).type is DocumentType.INVOICE
    slip = paper([*_PAID_BY_CARD, "Room 120.00"], size=(300.0, 900.0))
    assert classify(slip, shipped()).type is DocumentType.RECEIPT


def test_a_page_that_calls_itself_a_receipt_and_an_invoice_is_an_invoice() -> None:
    long = "Pernottamento in camera doppia uso singola con prima colazione e parcheggio coperto, 2 notti   120,00"
    titled = [line.replace("Invoice 2031-77", "Ricevuta/Fattura n. 77") for line in _PAID_BY_CARD]
    assert classify(paper([*titled, long]), shipped()).type is DocumentType.INVOICE
    receipt = [line.replace("Invoice 2031-77", "Receipt") for line in _PAID_BY_CARD]
    assert classify(paper([*receipt, long]), shipped()).type is DocumentType.RECEIPT


def test_a_classifier_can_be_written_down_and_read_again() -> None:
    typed = [
        TypedDocument(features=features(reading), type=DocumentType(kind), group=kind) for kind, _, reading in papers()
    ]
    fitted = fit_types(typed)
    again = Classifier.from_json(fitted.as_json())
    for document in typed[:10]:
        one, two = fitted.probabilities(document.features), again.probabilities(document.features)
        assert all(one[kind] == pytest.approx(two[kind], abs=1e-3) for kind in one)
        assert sum(one.values()) == pytest.approx(1)


def test_what_is_none_of_the_types_is_not_read_as_an_invoice() -> None:
    prose = paper(["the old harbour lay quiet under the morning fog and nobody spoke a word about it"] * 30)
    found = extract(prose)
    assert (found.document_type, found.schema, found.fields, found.rows) == ("other", "", {}, {})
    assert found.notes
    assert found.as_json()["schema"] is None
    assert found.as_json()["confidence"] is None
    assert Extraction.from_json(found.as_json()).as_json() == found.as_json()
    assert extract(prose, "invoice").schema == "invoice"


def test_one_that_is_doubtful_and_has_all_that_is_required_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from docmill.extraction import extracting
    from docmill.extraction.classification import Classified

    invoice = next(reading for kind, _, reading in papers() if kind == "invoice")
    read = extract(invoice)
    for sure, schema in ((0.5, read.schema), (0.95, "")):
        other = Classified(type=DocumentType.OTHER, confidence=sure, schema="invoice")
        monkeypatch.setattr(extracting, "classify", lambda *_, other=other: other)
        found = extract(invoice)
        assert found.schema == schema
        # What has fields is called what it is summed up as.
        assert found.document_type == (schema or "other")


def test_a_letter_that_speaks_of_money_is_no_receipt() -> None:
    said = ["Dear Ms Okafor,", "We confirm the lease of the premises for a term of five years at a rent of"]
    letter = extract(paper([*said, "£24,000.00 a year, payable quarterly in advance.", "Yours sincerely,"]))
    assert (letter.document_type, letter.schema, letter.fields) == ("letter", "", {})


def test_what_only_has_the_words_of_an_invoice_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from docmill.extraction import extracting
    from docmill.extraction.classification import Classified

    for titled, schema in ((False, ""), (True, "invoice")):
        taken = Classified(type=DocumentType.INVOICE, confidence=0.94, schema="invoice", titled=titled)
        monkeypatch.setattr(extracting, "classify", lambda *_, taken=taken: taken)
        found = extract(paper(["Cavendish Laboratory", "Abstract", "we measured 29.30 in total"]))
        assert found.schema == schema
    quote = Classified(type=DocumentType.QUOTE, confidence=0.9, schema="invoice", titled=False)
    monkeypatch.setattr(extracting, "classify", lambda *_: quote)
    found = extract(paper(["His Excellency", "a letter about 9.00 dollars"]))
    assert (found.schema, found.document_type, found.confidence) == ("", "quote", 0.0)
    assert found.notes == (NothingRead.NO_SCHEMA.value,)


def test_a_title_is_seen_where_there_is_one() -> None:
    assert classify(paper(["Invoice", "Total 9.00 EUR"], heading=1), shipped()).titled
    assert not classify(paper(["Annual review of the harbour works", "Total 9.00 EUR"]), shipped()).titled


def test_who_names_the_schema_says_what_the_document_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from docmill.extraction import extracting
    from docmill.extraction.classification import Classified

    quote = Classified(type=DocumentType.QUOTE, confidence=0.9, schema="invoice")
    monkeypatch.setattr(extracting, "classify", lambda *_: quote)
    lines = paper(["Quotation 4711", "Total 9.00 EUR"])
    assert extract(lines, "invoice").document_type == "invoice"
    assert extract(lines, "receipt").document_type == "receipt"
    credit = Classified(type=DocumentType.CREDIT_NOTE, confidence=0.9, schema="invoice")
    monkeypatch.setattr(extracting, "classify", lambda *_: credit)
    assert extract(lines, "invoice").document_type == "credit_note"


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("2. MAHNUNG", "reminder"),
        ("Letzte Mahnung", "reminder"),
        ("PROFORMA INVOICE", "quote"),
        ("Pro forma Rechnung", "quote"),
        ("Proformafaktura", "quote"),
        ("Facture pro forma", "quote"),
    ],
)
def test_what_announces_or_repeats_an_invoice_is_none_though_it_names_one(title: str, kind: str) -> None:
    lines = ["Holzbau Petersen GmbH", title, "Rechnung Nr. 2026-0317 vom 02.03.2026", "Kunde: Stadtwerke"]
    sums = ["Betrag netto 2.515,80 EUR", "MwSt 19 % 478,00 EUR", "Gesamtbetrag 2.993,80 EUR"]
    reading = paper([*lines, *sums])
    page = reading.pages[0]
    titled = replace(page, lines=tuple(_in_large_type(line) if line.text == title else line for line in page.lines))
    assert classify(replace(reading, pages=(titled,)), shipped()).type.value == kind


def _in_large_type(line: Line) -> Line:
    words = [word._replace(box=word.box._replace(bottom=word.box.top + 2 * word.box.height)) for word in line.words]
    return Line(words=tuple(words))
