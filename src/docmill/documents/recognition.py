"""The characters of one cut-out line: RapidOCR's recognition model, decoded so that word boxes and spaces can be told.

RapidOCR's own decoding keeps neither how likely a space was nor where a character stands exactly, and fills short lines
up to the width of long ones; one line at a time takes less than two thirds of the time and reads a little better.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

_NARROWEST = 128
"""Width of the smallest picture given to the model, at its height of 48; shorter lines are filled up to it."""
_WIDEST = 4800
"""A longer line is squeezed: nothing that is written is a hundred times as long as high."""
_SPACE = " "
_MARKS = (",", ".")
_MARK = 0.05
"""Likelihood from which on a comma or a stop is believed that ends a line: the model is as shy of them as of spaces."""


@dataclass(frozen=True, slots=True)
class Character:
    """One recognised character that is not a space."""

    text: str
    score: float
    place: float
    """Where along the line its middle is, 0 to 1."""
    gap: float
    """How likely a space stands before it, 0 to 1; 1 when the model says so."""


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line as it was recognised."""

    characters: tuple[Character, ...]
    score: float

    @property
    def weight(self) -> float:
        """How much was read, and how surely: to compare two ways of holding the same line."""
        return len(self.characters) * self.score**2


class Recogniser:
    """The recognition model of a RapidOCR engine."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._characters: list[str] = model.postprocess_op.character
        self._space = self._characters.index(_SPACE)
        self._marks = [self._characters.index(mark) for mark in _MARKS]
        self._height = model.rec_image_shape[1]

    def read(self, crop: Any) -> ReadLine:
        """One line of text, cut out and upright."""
        height, width = crop.shape[:2]
        wide = int(np.ceil(self._height * width / height))
        ratio = min(max(wide, _NARROWEST), _WIDEST) / self._height
        filled = int(self._height * ratio)
        chances = self._model.session(self._model.resize_norm_img(crop, ratio)[np.newaxis])[0]
        used = min(wide / filled, 1.0) * len(chances)
        return self._decode(chances, used)

    def _decode(self, chances: Any, used: float) -> ReadLine:
        best = chances.argmax(axis=1)
        fresh = best != 0
        fresh[1:] &= best[1:] != best[:-1]
        columns = np.flatnonzero(fresh)
        if not len(columns):
            return ReadLine((), 0.0)
        scores = chances[columns, best[columns]]
        spaces = chances[:, self._space]
        found = []
        begin = 0
        for column, code, score in zip(columns.tolist(), best[columns].tolist(), scores.tolist(), strict=True):
            if code == self._space or self._characters[code].isspace():
                continue
            gap = float(spaces[begin:column].max()) if column > begin else 0.0
            if (best[begin:column] == self._space).any():
                gap = 1.0
            found.append(Character(self._characters[code], score, min((column + 0.5) / used, 1.0), gap))
            begin = column + 1
        if found and found[-1].text.isalnum() and begin < len(chances):
            found += self._last_mark(chances[begin:, self._marks], begin, used)
        return ReadLine(tuple(found), float(scores.mean()))

    def _last_mark(self, chances: Any, begin: int, used: float) -> list[Character]:
        """The comma or the stop behind the last letter, if there is one."""
        column, mark = np.unravel_index(chances.argmax(), chances.shape)
        score = float(chances[column, mark])
        place = min((begin + int(column) + 0.5) / used, 1.0)
        return [Character(_MARKS[int(mark)], score, place, 0.0)] if score >= _MARK else []
