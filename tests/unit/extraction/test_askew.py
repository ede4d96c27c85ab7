"""Scans that lie askew are read as if they lay straight, and values are shown where they are."""

from dataclasses import replace

import pytest

from docmill.documents.reading import Line, Page, Reading
from docmill.documents.skew import Tilt
from docmill.extraction.extracting import extract
from docmill.extraction.local.invoices import read_invoice
from docmill.extraction.schema import FieldSchema
from docmill.extraction.schema_text import parse_schema
from tests.unit.extraction.typed_pages import FOLDER, typed, typed_reading

OWN = """
name: meter_report
title: Meter report
fields:
  serial: {type: identifier, title: Serial, labels: [serial number]}
  consumption: {type: number, title: Consumption, labels: [consumption]}
"""


def tilted(reading: Reading, degrees: float) -> Reading:
    return replace(reading, pages=tuple(_tilted(page, degrees) for page in reading.pages))


def _tilted(page: Page, degrees: float) -> Page:
    lying = replace(page, skew=degrees)
    tilt = Tilt.of(lying)
    lines = tuple(
        Line(words=tuple(word._replace(box=tilt.on_page(word.box)) for word in line.words)) for line in page.lines
    )
    return replace(lying, lines=lines)


@pytest.mark.parametrize("degrees", [-5.0, 1.5, 4.0])
@pytest.mark.parametrize("name", ["german_craft", "english_two_column_totals", "french_sarl"])
def test_an_invoice_that_lies_askew_says_what_it_says_straight(name: str, degrees: float) -> None:
    straight = typed(FOLDER / f"{name}.txt").reading
    lying = tilted(straight, degrees)

    wanted, found = read_invoice(straight), read_invoice(lying)

    assert {key: each.value for key, each in found.fields.items()} == {
        key: each.value for key, each in wanted.fields.items()
    }
    assert [{key: cell.value for key, cell in row.items()} for row in found.rows["line_items"]] == [
        {key: cell.value for key, cell in row.items()} for row in wanted.rows["line_items"]
    ]
    total = found.fields["total"]
    at = Tilt.of(lying.pages[0]).on_page(wanted.fields["total"].evidence[0].box)
    assert total.evidence[0].box.top == pytest.approx(at.top, abs=1e-6)
    assert total.evidence[0].box.left == pytest.approx(at.left, abs=1e-6)


def test_a_schema_of_ones_own_is_read_from_a_page_that_lies_askew() -> None:
    lying = tilted(
        typed_reading("Meter report\n\nSerial number                             KX-20417\n\nConsumption  812"), 4.0
    )

    found = extract(lying, own_schema())

    assert {name: each.value for name, each in found.fields.items()} == {"serial": "KX-20417", "consumption": "812"}
    (word,) = [word for word in lying.pages[0].words if word.text == "KX-20417"]
    (place,) = found.fields["serial"].evidence
    assert place.box.middle == pytest.approx(word.box.middle, abs=1e-6)


def own_schema() -> FieldSchema:
    return parse_schema(OWN)
