"""A value is found where it stands on the page, however it is written there; what is not there is not found."""

import pytest

from docmill.documents.reading import TextSource
from docmill.extraction.grounding import ground
from docmill.extraction.pages import Pages
from docmill.extraction.values import FieldType
from tests.unit.extraction.page_texts import reading

PAGE = Pages(
    reading(
        (0.1, 0.05, "ACME Paint & Tools Ltd."),
        (0.6, 0.05, "Invoice No.: INV-2026/0041"),
        (0.1, 0.07, "12 Harbour Road"),
        (0.6, 0.07, "Date: 05/03/2026 at 14:05"),
        (0.1, 0.09, "Bristol BS1 4QA"),
        (0.6, 0.09, "Order 41234"),
        (0.1, 0.50, "Total 1.234,50 €"),
        (0.1, 0.52, "thereof VAT 20 % 205,75"),
        (0.1, 0.54, "To pay 1.234,50"),
        (0.1, 0.60, "IBAN DE89 3704 0044 0532 0130 00"),
    )
)


@pytest.mark.parametrize(
    ("value", "kind", "tops"),
    [
        ("1234.50", FieldType.AMOUNT, [0.50, 0.54]),
        ("1234.5", FieldType.AMOUNT, [0.50, 0.54]),
        ("-205.75", FieldType.AMOUNT, [0.52]),
        ("99.00", FieldType.AMOUNT, []),
        ("20", FieldType.PERCENT, [0.52]),
        ("2026-03-05", FieldType.DATE, [0.07]),
        ("2026-05-03", FieldType.DATE, [0.07]),
        ("2026-03-06", FieldType.DATE, []),
        ("14:05:00", FieldType.TIME, [0.07]),
        ("EUR", FieldType.CURRENCY, [0.50]),
        ("USD", FieldType.CURRENCY, []),
        ("INV-2026/0041", FieldType.IDENTIFIER, [0.05]),
        ("INV 2026 0041", FieldType.IDENTIFIER, [0.05]),
        ("INV-2026/0042", FieldType.IDENTIFIER, []),
        ("1234", FieldType.IDENTIFIER, []),
        ("41234", FieldType.IDENTIFIER, [0.09]),
        ("DE89370400440532013000", FieldType.IBAN, [0.60]),
        ("Acme Paint and Tools", FieldType.TEXT, [0.05]),
        ("ACME PAINT & TOOLS LTD", FieldType.TEXT, [0.05]),
        ("12 Harbour Road, Bristol BS1 4QA", FieldType.TEXT, [0.07, 0.09]),
        ("Quite Another Company", FieldType.TEXT, []),
        ("", FieldType.TEXT, []),
    ],
)
def test_values_are_found_by_what_they_mean(value: str, kind: FieldType, tops: list[float]) -> None:
    assert [round(found.box.top, 2) for found in ground(value, kind, PAGE)] == tops


def test_the_box_is_that_of_the_value_not_of_its_line() -> None:
    (found,) = ground("INV-2026/0041", FieldType.IDENTIFIER, PAGE)
    assert 0.69 < found.box.left < found.box.right < 0.85


def test_what_ocr_misread_in_a_name_is_forgiven_and_in_a_number_is_not() -> None:
    page = reading((0.1, 0.1, "KEDAI PAPAM YEW CHUAN"), (0.1, 0.2, "No. A1O04"), source=TextSource.OCR)
    assert ground("Kedai Papan Yew Chuan", FieldType.TEXT, page)
    assert not ground("A1004", FieldType.IDENTIFIER, page)


def test_an_amount_that_ocr_tore_apart_is_found() -> None:
    page = reading((0.1, 0.1, "TOTAL RM 12 .5O"), source=TextSource.OCR)
    assert ground("12.50", FieldType.AMOUNT, page)


def test_nothing_is_found_where_nothing_is_written() -> None:
    assert ground("1.00", FieldType.AMOUNT, reading()) == ()
