"""A huge or hostile document costs no more than a large one, and what was left out is said."""

from collections.abc import Iterator

import pytest

from docmill.documents.reading import Box, Format, Line, Page, Reading, TextSource, Word
from docmill.extraction import extent, labels, neighbours, spotting, tables
from docmill.extraction.extracting import extract
from docmill.extraction.grounding import MOST, ground
from docmill.extraction.labelled import read_labelled
from docmill.extraction.neighbours import ByHeight, Rows
from docmill.extraction.pages import Pages
from docmill.extraction.schema import load_schema
from docmill.extraction.schema_text import parse_schema
from docmill.extraction.tables import read_tables
from docmill.extraction.values.kinds import FieldType

INVOICE = load_schema("invoice")
TABLE = parse_schema(
    "name: parts\n"
    "tables:\n"
    "  parts:\n"
    "    columns:\n"
    "      article: {type: text, labels: [Article]}\n"
    "      pieces: {type: count, labels: [Pieces]}\n"
    "      price: {type: amount, labels: [Price]}\n"
    "fields:\n"
    "  reference: {type: identifier, labels: [Reference]}\n"
)


def line(text: str, left: float = 0.1, top: float = 0.1, height: float = 0.01) -> Line:
    """A line whose words are as wide as their letters, squeezed into the page."""
    letter = min(0.008, 0.85 / max(1, len(text)))
    words, at = [], left
    for word in text.split(" "):
        words.append(Word(text=word, box=Box(at, top, at + letter * len(word), top + height)))
        at += letter * (len(word) + 1)
    return Line(words=tuple(words))


def document(*pages: list[Line]) -> Reading:
    """A document of these pages."""
    made = (
        Page(number=number, width=595, height=842, source=TextSource.EMBEDDED, lines=tuple(lines))
        for number, lines in enumerate(pages, start=1)
    )
    return Reading(sha256="0" * 64, format=Format.PDF, pages=tuple(made))


def words_of(reading: Reading) -> int:
    """How many words a document has."""
    return sum(len(page.words) for page in reading.pages)


def test_a_document_within_the_limits_is_looked_at_as_it_is() -> None:
    reading = document([line("Invoice No. 4711"), line("Total 12.50", top=0.2)], [line("Page 2")])
    assert extent.whole(reading).reading is reading
    assert extent.edges(reading).reading is reading
    assert not extent.edges(reading).notes


def test_of_a_document_with_too_many_words_the_edges_are_kept_before_the_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extent, "MOST_WORDS", 650)
    seen = extent.whole(document(*([line("word " * 9 + str(page))] for page in range(70))))
    assert words_of(seen.reading) <= 650
    numbers = [page.number for page in seen.reading.pages]
    assert numbers == [*range(1, 47), *range(51, 71)]
    assert "of 70 pages, were searched" in seen.notes[0]


def test_fields_of_a_long_document_are_looked_for_on_its_first_and_last_pages() -> None:
    count = extent.FIRST_PAGES + extent.LAST_PAGES + 5
    pages = [[line(f"Page {number}")] for number in range(count)]
    pages[extent.FIRST_PAGES + 2] = [line("IBAN: DE89 3704 0044 0532 0130 00")]
    pages[-1] = [line("Purchase Order No.: 4500-123")]
    whole = Pages(document(*pages))
    found = read_labelled(whole, INVOICE)
    assert found["order_number"].value == "4500-123"
    assert found["order_number"].evidence[0].page == count
    assert "iban" not in found
    assert any("the first 40 and the last 20 of 65 pages" in note for note in whole.notes)


def test_a_known_value_is_found_on_every_page() -> None:
    pages = [[line(f"Page {number}")] for number in range(100)]
    pages[60] = [line("Reference AB-2044-X and 1,234.50 EUR of 5 March 2024")]
    whole = Pages(document(*pages))
    for value, kind in (
        ("AB-2044-X", FieldType.IDENTIFIER),
        ("1234.50", FieldType.AMOUNT),
        ("2024-03-05", FieldType.DATE),
        ("EUR", FieldType.CURRENCY),
    ):
        assert [place.page for place in ground(value, kind, whole)] == [61]


def test_a_value_that_stands_everywhere_is_shown_at_some_places_only() -> None:
    whole = Pages(document([line("12.50 EUR " * 30, top=top / 100) for top in range(100)]))
    for value, kind in (("12.50", FieldType.AMOUNT), ("EUR", FieldType.CURRENCY)):
        assert len(ground(value, kind, whole)) == MOST


def test_rows_of_a_table_are_read_on_all_pages_up_to_a_limit_that_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    head = [line("Article", 0.1), line("Pieces", 0.4), line("Price", 0.7)]

    def page(rows: int) -> list[Line]:
        return head + [
            cell
            for row in range(rows)
            for top in (0.12 + row * 0.016,)
            for cell in (line("Screw", 0.1, top), line("2", 0.4, top), line("3.00", 0.7, top))
        ]

    reading = document(*(page(2) for _ in range(70)))
    assert len(read_tables(reading, TABLE)["parts"]) == 140
    monkeypatch.setattr(tables, "_MOST_ROWS", 100)
    long = extract(reading, TABLE)
    assert len(long.rows["parts"]) == 100
    assert any("only the first 100 rows" in note for note in long.notes)


def test_a_line_of_thousands_of_words_is_cut_into_lines() -> None:
    reading = document([line("word " * 4999 + "end")])
    seen = extent.whole(reading).reading
    assert words_of(seen) == 5000
    assert max(len(part.words) for part in seen.pages[0].lines) <= extent.LINE_WORDS
    assert max(len(part.text) for part in seen.pages[0].lines) <= extent.LINE_LETTERS


def test_a_word_without_end_is_shortened() -> None:
    seen = extent.whole(document([line("1" * 100_000)])).reading
    assert len(seen.pages[0].words[0].text) == extent.WORD_LETTERS


def test_a_page_fuller_than_print_can_be_is_searched_in_part_and_that_is_noted() -> None:
    crowd = [line("12.50", left, 0.5) for left in (index / 10_000 for index in range(900))]
    seen = extent.edges(document(crowd))
    assert words_of(seen.reading) == extent.ROW_WORDS
    assert words_of(extent.edges(document([line("12.50 " * 899 + "12.50")])).reading) <= extent.ROW_WORDS
    assert "Page 1 is fuller than print can be" in seen.notes[0]


@pytest.mark.parametrize("size", [500, 2_000])
def test_labels_and_candidates_are_compared_as_often_as_there_are_words(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0
    nearness = Rows.nearness

    def counted(self: Rows, label: labels.Label, spot: spotting.Spot) -> float:
        nonlocal compared
        compared += 1
        return nearness(self, label, spot)

    monkeypatch.setattr(Rows, "nearness", counted)
    read_labelled(document([line("Total: 12.50 VAT 2.00", 0.1, row / size) for row in range(size)]), INVOICE)
    assert compared <= 100 * neighbours.MOST * len(INVOICE.fields)


def test_a_page_full_of_heads_is_passed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = 0
    near = ByHeight.near

    def counted(self: ByHeight[object], *args: float) -> list[object]:
        nonlocal looked_up
        looked_up += 1
        return near(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ByHeight, "near", counted)

    def heads() -> Iterator[Line]:
        for row in range(1000):
            for left, text in ((0.1, "Article"), (0.4, "Pieces"), (0.7, "Price")):
                yield line(text, left, row / 1000, 0.0008)

    assert read_tables(document(list(heads())), TABLE) == {}
    assert looked_up <= 3000


def test_things_at_one_height_are_handed_out_up_to_a_limit_those_in_the_middle_first() -> None:
    things = ByHeight((1, index / 1000, index) for index in range(1000))
    near = things.near(1, 0.0, 1.0)
    assert len(near) == neighbours.MOST
    assert 500 in near
    assert things.near(1, 0.1, 0.102) == [100, 101, 102]
