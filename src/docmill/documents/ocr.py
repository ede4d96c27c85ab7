"""OCR of one picture: pieces of text are detected, the picture is turned the right way up, the pieces are recognised.

RapidOCR's models with one thread each, loaded once per process at first use: two children keep two cores busy.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import radians, tan
from typing import Any

import cv2
import numpy as np

from docmill.documents.reading import Box, Line, Word
from docmill.documents.recognition import Character, ReadLine, Recogniser
from docmill.documents.skew import skew_of

_SMALLEST = 8
"""Pixels of a side below which nothing can be read."""
_EVEN = 16
"""Steps of grey by which a page differs at most from one colour when nothing stands on it."""
_DETECTION_PIXELS = 1_800_000
"""What the detector looks at: it takes time and memory by the pixel. What is recognised comes from the full picture."""
_SHORT_SIDE = 736
"""Smaller pictures are enlarged for the detector, as it was trained."""
_LONG_SIDE = 4000
_STEP = 32
"""The detector wants sides that are multiples of this."""
_THIN = 8
"""Sides of a picture that is so much wider than high get a margin, or the detector sees nothing in it."""
UNCLIP = 1.9
"""How far the detected pieces are widened; RapidOCR's 1.6 cuts off points and colons at the ends of lines."""
_TALL = 1.5
"""Height over width from which on a piece of text runs up or down the page."""
_SLOPING = 3.0
"""Width over height from which on the slope of a piece says something about the page."""
_SIDEWAYS = 0.6
"""Share (by length) of such pieces from which on the page lies on its side."""
_TRIED = 6
"""Pieces that are read both ways to tell up from down."""
_SURE = 0.85
"""Mean score of a page that need not be turned round to see if it reads better."""
_BETTER = 1.15
_LEAST_SCORE = 0.5
_SPACE = 0.05
"""Likelihood from which on a space is believed. The model is shy of them: at the usual 0.5 every twentieth is lost."""
_SPACE_IN_WORD = 0.1
"""Between letters: narrow ones (`i`, `t`) stand apart in type of equal width and look like the beginning of a word."""
_SPACE_IN_NUMBER = 0.3
"""In a number, and behind a comma, over which the line is white in any case."""
_IN_NUMBERS = ".,/-"
_SEAM = 0.001
"""Likelihood from which on a space may have been lost: of words that were run together it is 0.05 and more, of those
that are written so (`GREENTOWN`) less than 0.0001."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """Lines with boxes on the upright picture, and how it had to be turned (clockwise) to be upright."""

    lines: tuple[Line, ...]
    turned: int
    skew: float = 0.0
    """Degrees by which lines still sink to the right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Models:
    detect: Any
    recogniser: Recogniser


@cache
def models() -> _Models:
    """Detection and recognition, loaded once."""
    from rapidocr import RapidOCR

    cv2.setNumThreads(1)
    engine = RapidOCR(
        params={
            "Global.use_cls": False,
            "Global.log_level": "critical",
            "Det.unclip_ratio": UNCLIP,
            # The size is decided here.
            "Det.limit_side_len": _STEP,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
    # Loads both models; they are not offered otherwise.
    paper = np.full((64, 320, 3), 255, dtype=np.uint8)
    engine(paper, use_det=True, use_rec=False)
    engine(paper, use_det=False, use_rec=True)
    return _Models(detect=engine.text_det, recogniser=Recogniser(engine.text_rec))


def recognise(picture: Any) -> Recognised:
    """What is written on a PIL image (RGB)."""
    pixels = np.ascontiguousarray(np.asarray(picture)[:, :, ::-1])
    if min(pixels.shape[:2]) < _SMALLEST or int(pixels.max()) - int(pixels.min()) < _EVEN:
        return Recognised(lines=(), turned=0)
    turned = 0
    page = _Page(pixels)
    if page.lies_sideways():
        turned = page.better_turn(90, 270)
        page = _Page(_turn(pixels, turned))
    page.read()
    if page.is_doubtful() and page.better_turn(0, 180):
        turned = (turned + 180) % 360
        page = _Page(_turn(pixels, turned))
        page.read()
    return Recognised(lines=page.lines(), turned=turned, skew=page.skew())


def _turn(pixels: Any, degrees: int) -> Any:
    return np.ascontiguousarray(np.rot90(pixels, -degrees // 90))


class _Page:
    """A picture with the pieces of text that were detected on it, each with four corners from its upper left."""

    def __init__(self, pixels: Any) -> None:
        self._pixels = pixels
        self._height, self._width = pixels.shape[:2]
        self._quads = _detect(pixels)
        across = np.linalg.norm(self._quads[:, 0] - self._quads[:, 1], axis=1)
        down = np.linalg.norm(self._quads[:, 0] - self._quads[:, 3], axis=1)
        self._across, self._down, self._tall = across, down, down >= _TALL * across
        self._read: list[ReadLine] = []

    def lies_sideways(self) -> bool:
        """Whether most text runs up or down."""
        if len(self._quads) < 2:
            return False
        lying = float(self._down[self._tall].sum())
        standing = float(self._across[self._across >= _TALL * self._down].sum())
        return lying > _SIDEWAYS * (lying + standing)

    def better_turn(self, usual: int, other: int) -> int:
        """By which of two opposite turns the longest pieces read better; in doubt it is the usual one."""
        long = np.argsort(-np.maximum(self._across, self._down))[:_TRIED]
        crops = [self._crop(index) for index in long]
        one = sum(models().recogniser.read(crop).weight for crop in crops)
        two = sum(models().recogniser.read(np.ascontiguousarray(np.rot90(crop, 2))).weight for crop in crops)
        return other if two > _BETTER * one else usual

    def read(self) -> None:
        """Recognise every piece."""
        recogniser = models().recogniser
        self._read = [recogniser.read(self._crop(index)) for index in range(len(self._quads))]

    def is_doubtful(self) -> bool:
        """Whether the text reads so badly that it may be upside down."""
        letters = sum(len(line.characters) for line in self._read)
        return bool(letters) and sum(len(line.characters) * line.score for line in self._read) < _SURE * letters

    def _crop(self, index: int) -> Any:
        """One piece, straightened; one that runs up or down is read from its right side, as after a quarter turn."""
        quad = self._upright_quad(index)
        width = max(int(np.linalg.norm(quad[0] - quad[1])), int(np.linalg.norm(quad[2] - quad[3])), 1)
        height = max(int(np.linalg.norm(quad[0] - quad[3])), int(np.linalg.norm(quad[1] - quad[2])), 1)
        flat = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
        matrix = cv2.getPerspectiveTransform(quad.astype(np.float32), flat)
        return cv2.warpPerspective(
            self._pixels, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE, flags=cv2.INTER_CUBIC
        )

    def _upright_quad(self, index: int) -> Any:
        quad = self._quads[index]
        # Turned clockwise by a quarter, the lower left corner comes to be the upper left one.
        return quad[[3, 0, 1, 2]] if self._tall[index] else quad

    def skew(self) -> float:
        """By how much the page lies askew, told by the pieces that are wide enough to have a slope."""
        wide = self._across >= _SLOPING * self._down
        run, drop = (self._quads[wide, 1] + self._quads[wide, 2] - self._quads[wide, 0] - self._quads[wide, 3]).T
        return skew_of(zip(np.degrees(np.arctan2(drop, run)).tolist(), self._across[wide].tolist(), strict=True))

    def lines(self) -> tuple[Line, ...]:
        """The recognised lines with a box for every word, from top to bottom and left to right."""
        found = []
        for index, read in enumerate(self._read):
            if read.score >= _LEAST_SCORE and read.characters:
                quad = self._upright_quad(index)
                found.append(Line(words=tuple(self._word(quad, read, run) for run in words_of(read.characters))))
        return tuple(_in_rows(found, tan(radians(self.skew())) * self._width / self._height))

    def _word(self, quad: Any, line: ReadLine, run: tuple[int, int]) -> Word:
        begin, end = run
        characters = line.characters[begin:end]
        half = _half_width(line.characters)
        first = max(characters[0].place - half, 0.0)
        last = min(characters[-1].place + half, 1.0)
        top, bottom = quad[1] - quad[0], quad[2] - quad[3]
        corners = np.array(
            [quad[0] + top * first, quad[0] + top * last, quad[3] + bottom * first, quad[3] + bottom * last]
        )
        left, high = corners.min(axis=0) / (self._width, self._height)
        right, low = corners.max(axis=0) / (self._width, self._height)
        return Word(
            text="".join(character.text for character in characters),
            box=Box(*(min(max(float(value), 0.0), 1.0) for value in (left, high, right, low))),
            score=round(sum(character.score for character in characters) / len(characters), 4),
            whole=all(character.gap < _SEAM for character in characters[1:]),
        )


def for_detection(pixels: Any) -> Any:
    """The picture in the size that the detector looks at."""
    height, width = pixels.shape[:2]
    scale = max(1.0, _SHORT_SIDE / min(width, height))
    scale = min(scale, (_DETECTION_PIXELS / (width * height)) ** 0.5, _LONG_SIDE / max(width, height))
    size = [max(_STEP, round(side * scale / _STEP) * _STEP) for side in (width, height)]
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)


def _detect(pixels: Any) -> Any:
    """Pieces of text, their corners in pixels of the picture."""
    height, width = pixels.shape[:2]
    seen = for_detection(pixels)
    size = (seen.shape[1], seen.shape[0])
    margin = 0
    if size[0] > _THIN * size[1]:
        margin = round(size[0] / _THIN / _STEP) * _STEP
        seen = cv2.copyMakeBorder(seen, margin, margin, 0, 0, cv2.BORDER_REPLICATE)
    found = models().detect(seen)
    if found.boxes is None or not len(found.boxes):
        return np.zeros((0, 4, 2))
    quads = found.boxes.astype(np.float64)
    quads[:, :, 1] -= margin
    quads *= (width / size[0], height / size[1])
    return np.clip(quads, 0, (width, height))


def words_of(characters: tuple[Character, ...]) -> list[tuple[int, int]]:
    """Words as runs of characters: at likely spaces."""
    starts = [0]
    for index in range(1, len(characters)):
        if characters[index].gap >= _least_gap(characters[index - 1].text, characters[index].text):
            starts.append(index)
    return list(zip(starts, [*starts[1:], len(characters)], strict=True))


def _least_gap(before: str, here: str) -> float:
    """How likely a space must be between two characters to be believed."""
    numeric = (before.isdigit() or before in _IN_NUMBERS) and (here.isdigit() or here in _IN_NUMBERS)
    if numeric or before == ",":
        return _SPACE_IN_NUMBER
    return _SPACE_IN_WORD if before.isalpha() and here.isalpha() else _SPACE


def _half_width(characters: tuple[Character, ...]) -> float:
    """Half of a usual character's width, as a share of the line."""
    if len(characters) < 2:
        return 0.5
    steps = sorted(b.place - a.place for a, b in pairwise(characters))
    return steps[len(steps) // 2] / 2


def _in_rows(lines: list[Line], slope: float) -> list[Line]:
    """Lines at about the same height go from left to right; `slope` is by how much all of them sink on their way."""
    rows: list[list[Line]] = []
    last = 0.0
    levels = {id(line): line.box.middle - slope * (line.box.left + line.box.right) / 2 for line in lines}
    for line in sorted(lines, key=lambda line: levels[id(line)]):
        level = levels[id(line)]
        if rows and level - last < 0.5 * min(line.box.height, rows[-1][0].box.height):
            rows[-1].append(line)
        else:
            rows.append([line])
            last = level
    return [line for row in rows for line in sorted(row, key=lambda line: line.box.left)]
