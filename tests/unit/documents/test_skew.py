"""Pages that lie askew: the slope is told by the pieces of text, and boxes move to the straight page and back."""

from dataclasses import replace

import pytest

from docmill.documents.reading import Box, Line, Page, TextSource, Word, page_as_json, page_from_json
from docmill.documents.skew import Tilt, skew_of


def page(skew: float) -> Page:
    word = Word(text="Total", box=Box(0.2, 0.3, 0.4, 0.33))
    return Page(
        number=1, width=600, height=800, source=TextSource.OCR, lines=(Line(words=(word,)),), skew=skew, turned=90
    )


@pytest.mark.parametrize(
    ("pieces", "skew"),
    [
        ([(3.1, 100), (3.0, 900), (2.9, 100)], 3.0),
        ([(-4.0, 500), (-4.1, 400), (-4.2, 300), (11.0, 200)], -4.1),
        ([(0.1, 500), (0.2, 400), (0.15, 300)], 0.0),
        ([(3.0, 500), (3.0, 400)], 0.0),
        ([(40.0, 500), (41.0, 400), (42.0, 300)], 0.0),
        ([(-9.0, 500), (0.0, 10), (9.0, 400), (4.0, 10)], 0.0),
        ([*[(20.0, 500)] * 50, *[(5.0, 50)] * 3], 0.0),
        ([], 0.0),
    ],
    ids=[
        "median by length",
        "a stamp",
        "straight enough",
        "too few",
        "meant so",
        "no one slope",
        "most meant so",
        "empty",
    ],
)
def test_the_slope_of_a_page_is_what_most_of_its_text_says(pieces: list[tuple[float, float]], skew: float) -> None:
    assert skew_of(pieces) == skew


@pytest.mark.parametrize("skew", [-5.0, -1.0, 2.5, 5.0])
def test_a_box_that_is_laid_straight_comes_back_to_where_it_was(skew: float) -> None:
    tilt = Tilt.of(page(skew))
    level = Box(0.55, 0.4, 0.85, 0.42)

    lying = tilt.on_page(level)

    assert lying.height > level.height
    assert (lying.middle > level.middle) == (skew > 0), "right of the middle, lines that sink are lower"
    straight = tilt.straight(lying)
    for name in ("left", "top", "right", "bottom"):
        assert getattr(straight, name) == pytest.approx(getattr(level, name), abs=1e-9)


def test_a_box_beside_the_slope_of_its_page_keeps_some_height() -> None:
    assert Tilt.of(page(5.0)).straight(Box(0.1, 0.5, 0.9, 0.51)).height > 0.002


@pytest.mark.parametrize("skew", [0.0, -2.75])
def test_a_checkpoint_keeps_how_a_page_lies(skew: float) -> None:
    assert page_from_json(page_as_json(page(skew))) == page(skew)


@pytest.mark.parametrize(("score", "whole"), [(None, False), (0.97, False), (0.97, True)])
def test_a_checkpoint_keeps_what_the_ocr_thought_of_a_word(score: float | None, whole: bool) -> None:
    word = Word(text="GREENTOWN", box=Box(0.1, 0.2, 0.3, 0.4), score=score, whole=whole)
    seen = replace(page(0.0), lines=(Line(words=(word,)),))
    assert page_from_json(page_as_json(seen)) == seen
