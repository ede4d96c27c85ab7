"""Pages drawn with evidence: every value is marked where it stands, in the colour of its confidence."""

from dataclasses import replace

import pytest
from PIL import Image

from docmill.documents.reading import Box
from docmill.extraction.drawing import colour_of, draw_page, marks_of
from docmill.extraction.result import Evidence, Extraction, FieldValue, Reader

BLANK = Image.new("RGB", (600, 850), (255, 255, 255))


def value(confidence: float, *boxes: Box, page: int = 1) -> FieldValue:
    evidence = tuple(Evidence(page=page, box=box) for box in boxes)
    return FieldValue(value="5.00", raw="5,00", confidence=confidence, evidence=evidence)


def extraction(**fields: FieldValue) -> Extraction:
    return Extraction(
        schema="invoice",
        schema_version="1",
        reader=Reader.LOCAL,
        document_type="invoice",
        fields=fields,
        confidence=0.9,
    )


def test_a_value_is_framed_where_it_stands_in_the_colour_of_its_confidence() -> None:
    drawn = draw_page(BLANK, extraction(total=value(0.3, Box(0.4, 0.5, 0.6, 0.55))), page=1, pages=1, title="a.pdf")
    plain = draw_page(BLANK, extraction(), page=1, pages=1, title="a.pdf")
    page = (28, 28, 28 + 1058, 28 + 1500)
    red = colour_of(0.3)
    found = [
        (x, y)
        for x in range(*page[::2], 2)
        for y in range(*page[1::2], 2)
        if drawn.getpixel((x, y)) == red and plain.getpixel((x, y)) != red
    ]
    assert found
    lefts, tops = [x for x, _ in found], [y for _, y in found]
    assert 28 + 0.4 * 1058 - 60 < min(lefts) < max(lefts) < 28 + 0.6 * 1058 + 60
    assert 28 + 0.5 * 1500 - 60 < min(tops) < max(tops) < 28 + 0.55 * 1500 + 60


def test_marks_are_numbered_through_the_document_and_know_their_page() -> None:
    found = extraction(
        total=value(0.9, Box(0, 0, 0.1, 0.1)), tax=value(0.9, Box(0, 0, 0.1, 0.1), page=2), number=value(0.9)
    )
    assert [(mark.number, mark.name, len(mark.boxes)) for mark in marks_of(found, 1)] == [
        (1, "total", 1),
        (2, "tax", 0),
        (3, "number", 0),
    ]


@pytest.mark.parametrize("box", [Box(-1, -1, 2, 2), Box(0.9, 0.9, 0.1, 0.1), Box(1, 1, 1, 1), Box(0.5, 0.5, 0.5, 0.5)])
def test_boxes_that_make_no_sense_are_drawn_somehow(box: Box) -> None:
    assert draw_page(BLANK, extraction(total=value(0.5, box)), page=1, pages=1, title="x").width > BLANK.width


@pytest.mark.parametrize("size", [(1, 1), (3000, 40), (40, 3000)])
def test_pages_of_any_shape_are_drawn(size: tuple[int, int]) -> None:
    picture = Image.new("L", size, 255)
    assert draw_page(picture, extraction(total=value(0.5, Box(0, 0, 1, 1))), page=1, pages=1, title="x").height > 100


def test_many_fields_and_long_names_fit() -> None:
    fields = {f"field_{number}": replace(value(0.95), value="long " * 60) for number in range(40)}
    drawn = draw_page(BLANK, extraction(**fields), page=1, pages=3, title="name " * 60)
    assert drawn.height > 40 * 60
