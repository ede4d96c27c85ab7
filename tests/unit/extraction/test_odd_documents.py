"""No document that can be read is one that extraction fails at, whatever stands on its pages."""

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docmill.documents.reading import Box, Format, Line, Page, Reading, TextSource, Word
from docmill.extraction.extracting import extract, models_in
from docmill.extraction.labelled import read_labelled
from docmill.extraction.local.invoices import read_invoice
from docmill.extraction.local.receipts import read_receipt
from docmill.extraction.result import Extraction
from docmill.extraction.schema import load_schema
from docmill.extraction.schema_text import parse_schema
from docmill.extraction.tables import read_tables
from docmill.model.documents import NothingRead

INVOICE, RECEIPT = load_schema("invoice"), load_schema("receipt")
OWN = parse_schema(
    "name: own\n"
    "fields:\n"
    "  reference: {type: identifier, labels: [Reference, Total]}\n"
    "  paid: {type: boolean}\n"
    "tables:\n"
    "  things:\n"
    "    columns:\n"
    "      what: {type: text, labels: [Description]}\n"
    "      worth: {type: amount, labels: [Amount, Total]}\n"
)
TELLING = [
    *("Invoice", "Rechnung", "Total", "Total:", "12.50", "1.234,56", "EUR", "€", "05/03/2024", "2024-03-05", "19%"),
    *("", " ", ".", "-", "0", "DE123456789", "IBAN", "DE89370400440532013000", "Muster", "GmbH", "10115", "Berlin"),
    *("Description", "Amount", "Qty", "2", "x", "المجموع", "١٢٫٥٠", "חשבונית", "合計", "¥1,200", "2024年3月5日"),
    *("発票", "\u200f", "\ud800", "a\u0301", "ﬁ", "9" * 40, "1e999", "NaN", "٪", "²", "½", "--", "(", "\t", "\x00"),
]
words = st.sampled_from(TELLING) | st.text(max_size=12)
edges = st.sampled_from([0.0, 0.1, 0.1001, 0.5, 0.9, 1.0]) | st.floats(-0.1, 1.1)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """Anywhere on the page, some of no size."""
    left, top = draw(edges), draw(edges)
    return Box(left, top, left + draw(st.sampled_from([0.0, 0.05, 0.3])), top + draw(st.sampled_from([0.0, 0.01, 0.2])))


scores = st.none() | st.floats(0, 1)
lines = st.lists(st.builds(Word, text=words, box=boxes(), score=scores), max_size=5).map(
    lambda held: Line(words=tuple(held))
)
pages = st.builds(
    Page,
    number=st.integers(1, 3),
    width=st.sampled_from([0.0, 1.0, 595.0]),
    height=st.sampled_from([0.0, 1.0, 842.0]),
    source=st.sampled_from(TextSource),
    lines=st.lists(lines, max_size=12).map(tuple),
)
readings = st.builds(
    Reading, sha256=st.just("0" * 64), format=st.sampled_from(Format), pages=st.lists(pages, max_size=3).map(tuple)
)


def assert_sound(found: Extraction) -> None:
    """Chances are chances, and every signal is a number."""
    assert 0 <= found.confidence <= 1
    cells = [value for rows in found.rows.values() for row in rows for value in row.values()]
    for value in (*found.fields.values(), *cells):
        assert 0 <= value.confidence <= 1
        assert all(math.isfinite(number) for number in value.signals.values())
    assert Extraction.from_json(found.as_json()).as_json() == found.as_json()


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(readings)
def test_every_reader_answers_whatever_the_pages_hold(reading: Reading) -> None:
    models = models_in({})
    assert_sound(read_receipt(reading, RECEIPT, models.ranker("receipt")))
    assert_sound(read_invoice(reading, models.ranker("invoice"), INVOICE))
    for schema in (INVOICE, RECEIPT, OWN):
        read_labelled(reading, schema)
        read_tables(reading, schema)
        assert_sound(extract(reading, schema))
    assert_sound(extract(reading))


def page(number: int, *held: tuple[float, float, str]) -> Page:
    """A page of lines, each with its left and top edge."""
    made = [
        Line(
            words=tuple(
                Word(text=text, box=Box(left + 0.08 * at, top, left + 0.08 * at + 0.07, top + 0.012))
                for at, text in enumerate(texts.split(" "))
            )
        )
        for left, top, texts in held
    ]
    return Page(number=number, width=595, height=842, source=TextSource.EMBEDDED, lines=tuple(made))


def document(*held: Page) -> Reading:
    """A document of these pages."""
    return Reading(sha256="0" * 64, format=Format.PDF, pages=held)


@pytest.mark.parametrize(
    "reading",
    [
        document(),
        document(page(1)),
        document(page(1, (0.1, 0.1, ""))),
        document(page(1, (0.5, 0.1, "فاتورة رقم 4711"), (0.5, 0.2, "المجموع ١٢٫٥٠"))),
        document(page(1, (0.1, 0.1, "請求書"), (0.1, 0.2, "合計 ¥1,200"), (0.1, 0.3, "発行日 2024年3月5日"))),
    ],
    ids=["no pages", "no lines", "no letters", "right to left", "without spaces"],
)
def test_odd_pages_are_read_without_an_error(reading: Reading) -> None:
    for schema in ("invoice", "receipt", OWN):
        assert_sound(extract(reading, schema))


def test_the_same_invoice_a_hundred_times_is_read_as_it_is_once() -> None:
    held = (
        (0.1, 0.05, "Muster GmbH"),
        (0.6, 0.10, "Invoice No.: RE-4711"),
        (0.6, 0.12, "Order No.: 99-17"),
        (0.6, 0.70, "Total EUR 119.00"),
    )
    once = extract(document(page(1, *held)), "invoice")
    often = extract(document(*(page(number, *held) for number in range(1, 101))), "invoice")
    assert once.fields["invoice_number"].value == "RE-4711"
    for name in ("invoice_number", "order_number", "total"):
        assert often.fields[name].value == once.fields[name].value
    assert any("of 100 pages" in note for note in often.notes)


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        (document(page(1)), NothingRead.EMPTY),
        (replace(document(page(1)), format=Format.JPEG), NothingRead.HARDLY),
        (document(replace(page(1, (0.1, 0.1, "rn|")), source=TextSource.OCR)), NothingRead.HARDLY),
        (document(page(1, (0.1, 0.1, "All happy families are alike."))), NothingRead.UNKNOWN),
    ],
)
def test_why_nothing_is_extracted_tells_an_empty_page_from_a_bad_photograph(reading: Reading, why: NothingRead) -> None:
    assert extract(reading).notes == (why.value,)
