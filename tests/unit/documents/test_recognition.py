"""How the likelihoods of the recognition model become characters, and characters words."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from docmill.documents.ocr import words_of
from docmill.documents.recognition import Character, ReadLine, Recogniser

ALPHABET = ["blank", *"ABC12,. "]


def decoded(*columns: dict[str, float]) -> ReadLine:
    """What is read when the model finds these characters so likely, column by column; the rest is likely blank."""
    chances = np.zeros((len(columns), len(ALPHABET)))
    for place, column in enumerate(columns):
        for character, chance in column.items():
            chances[place, ALPHABET.index(character)] = chance
        chances[place, 0] = 1 - chances[place].sum()

    def session(picture: Any) -> Any:
        return chances[np.newaxis]

    model = SimpleNamespace(
        postprocess_op=SimpleNamespace(character=ALPHABET),
        rec_image_shape=[3, 48, 320],
        session=session,
        resize_norm_img=lambda crop, ratio: crop,
    )
    return Recogniser(model).read(np.zeros((48, 320, 3)))


def text(line: ReadLine) -> str:
    return "".join(character.text for character in line.characters)


def test_the_most_likely_characters_are_read_with_the_likelihood_of_a_space_before_them() -> None:
    line = decoded({"A": 0.9}, {" ": 0.2}, {"B": 0.8}, {}, {"B": 0.9})
    assert text(line) == "ABB"
    assert [round(character.gap, 3) for character in line.characters] == [0, 0.2, 0]


@pytest.mark.parametrize(("chance", "expected"), [(0.06, "AB,"), (0.04, "AB")])
def test_a_faint_comma_that_ends_a_line_is_believed(chance: float, expected: str) -> None:
    assert text(decoded({"A": 0.9}, {"B": 0.9}, {",": chance})) == expected


def test_nothing_follows_a_line_that_ends_in_a_sign() -> None:
    assert text(decoded({"A": 0.9}, {".": 0.9}, {",": 0.2})) == "A."


def test_a_faint_stop_inside_of_a_line_is_not_read() -> None:
    assert text(decoded({"A": 0.9}, {".": 0.3}, {"B": 0.9})) == "AB"


@pytest.mark.parametrize(
    ("first", "gap", "second", "words"),
    [
        ("A", 0.11, "B", ["A", "B"]),
        ("A", 0.08, "B", ["AB"]),
        ("A", 0.06, "1", ["A", "1"]),
        (":", 0.06, "A", [":", "A"]),
        ("1", 0.2, "2", ["12"]),
        (",", 0.2, "A", [",A"]),
        (",", 0.4, "A", [",", "A"]),
    ],
)
def test_how_likely_a_space_must_be_depends_on_what_stands_beside_it(
    first: str, gap: float, second: str, words: list[str]
) -> None:
    characters = (Character(first, 0.9, 0.2, 0.0), Character(second, 0.9, 0.4, gap))
    assert ["".join(part.text for part in characters[begin:end]) for begin, end in words_of(characters)] == words
