"""The words of a PDF page as the file gives them: text in one call, boxes only for the ends of each word.

A call into PDFium costs about a microsecond from here, so nothing is asked for every character.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from math import pi
from typing import Any

import pypdfium2.raw as pdfium

from docmill.documents.lines import PlacedWord

_WORD = re.compile(r"[^\s\x00\x02\ufffe\xad]+[\x02\ufffe\xad]?|[\x02\ufffe\xad]")
"""PDFium marks a hyphen at the end of a line with \\x02 and goes on with the next line without a break."""
_HYPHENS = str.maketrans({"\x02": "-", "\ufffe": "-", "\xad": "-"})

_UNUSABLE = re.compile(r"[\x01\x03-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd\uffff]")
"""Characters that a font without a table of its characters leaves behind: control, private use, replacement."""
_UNUSABLE_SHARE = 0.2
_MAP_ERROR_SHARE = 0.5
_TELLING = re.compile(r"[^\W_]")
_ENOUGH = 2000
"""Characters that are looked at to tell whether there is text."""

RawWord = tuple[str, float, float, float, float, float, float]

_PALE, _CLEAR = 230, 25
"""Of 255: how light each colour of a word is that is hardly seen on paper, and how little it covers."""
_TORN = re.compile(r"\r\n\S{1,3}(?=\r\n)")
_TORN_SHARE = 0.4
_SAME_LINE = 0.1
_APART = 0.12
"""Of the height of a word: how much lower another may stand that goes on with it, and how far behind it."""

_SAMPLE = 16
"""Words that are asked for their direction, and characters for whether the font knows them."""


def _by_address(function: Any, result: Any, *arguments: Any) -> Any:
    """A function of PDFium that takes and gives addresses as numbers: half as costly as objects around them."""
    return ctypes.CFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0)


_AT = ctypes.c_void_p
_object_of = _by_address(pdfium.FPDFText_GetTextObject, _AT, _AT, ctypes.c_int)
"""The piece of the page that draws a character."""
_box_of = _by_address(pdfium.FPDFText_GetLooseCharBox, ctypes.c_int, _AT, ctypes.c_int, _AT)
_origin_of = _by_address(pdfium.FPDFText_GetCharOrigin, ctypes.c_int, _AT, ctypes.c_int, _AT, _AT)
_fill_of = _by_address(pdfium.FPDFPageObj_GetFillColor, ctypes.c_int, _AT, _AT, _AT, _AT, _AT)
_stroke_of = _by_address(pdfium.FPDFPageObj_GetStrokeColor, ctypes.c_int, _AT, _AT, _AT, _AT, _AT)
_STROKED = (
    pdfium.FPDF_TEXTRENDERMODE_STROKE,
    pdfium.FPDF_TEXTRENDERMODE_FILL_STROKE,
    pdfium.FPDF_TEXTRENDERMODE_STROKE_CLIP,
    pdfium.FPDF_TEXTRENDERMODE_FILL_STROKE_CLIP,
)


class TextLayer:
    """The text of one loaded page, in the coordinates of the PDF (points, bottom-up, before any rotation)."""

    def __init__(self, page: Any, most: int) -> None:
        self._raw = pdfium.FPDFText_LoadPage(page)
        self.count = max(0, pdfium.FPDFText_CountChars(self._raw)) if self._raw else 0
        self.cut = self.count > most
        self.text = self._text(min(self.count, most)) if self.count else ""
        self._rect = pdfium.FS_RECTF()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self.pale: dict[int, tuple[int, int]] = {}
        """Of the pieces that `pieces` has given, by their place: the characters of those that are light as paper or let
        it shine through."""
        self._pale_objects: dict[int | None, bool] = {None: False}
        self._colour = (ctypes.c_uint * 4)()
        self._colour_at = [ctypes.addressof(self._colour) + 4 * part for part in range(4)]

    def close(self) -> None:
        if self._raw:
            pdfium.FPDFText_ClosePage(self._raw)

    def _text(self, count: int) -> str:
        buffer = (ctypes.c_ushort * (2 * count + 2))()
        written = pdfium.FPDFText_GetText(self._raw, 0, count, buffer)
        text = bytes(memoryview(buffer).cast("B")[: 2 * max(0, written - 1)]).decode("utf-16-le", "replace")
        if len(text) == count:
            return text
        # Characters beyond the first plane, or left out: positions would shift, so each is asked for.
        codes = (pdfium.FPDFText_GetUnicode(self._raw, index) for index in range(count))
        return "".join(chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else " " for code in codes)

    def usable(self) -> int:
        """How many of the first characters say something; 0 when too many are signs of a font that cannot be read."""
        solid = "".join(self.text.split())
        if not solid:
            return 0
        bad = len(_UNUSABLE.findall(solid))
        if bad > _UNUSABLE_SHARE * len(solid) or self._unmapped():
            return 0
        return len(_TELLING.findall(solid[:_ENOUGH]))

    def _unmapped(self) -> bool:
        """Whether PDFium had to guess most characters, for want of a table."""
        chosen = [
            index
            for index in range(0, len(self.text), max(1, len(self.text) // (2 * _SAMPLE)))
            if not self.text[index].isspace()
        ]
        failed = sum(1 for index in chosen if pdfium.FPDFText_HasUnicodeMapError(self._raw, index) == 1)
        return failed > _MAP_ERROR_SHARE * len(chosen)

    def direction(self) -> int:
        """Degrees by which most words have to be turned clockwise to be read from left to right: 0, 90, 180 or 270."""
        words = sorted(_WORD.finditer(self.text[:20_000]), key=lambda match: match.start() - match.end())[:_SAMPLE]
        turns = Counter(
            -round(angle / (pi / 2)) % 4
            for match in words
            if (angle := pdfium.FPDFText_GetCharAngle(self._raw, match.start())) >= 0
        )
        most = turns.most_common(1)
        return most[0][0] * 90 if most else 0

    def hide(self, spans: Iterable[tuple[int, int]]) -> None:
        """Take characters for space from now on: they count for nothing, and tell no direction."""
        text = list(self.text)
        for start, end in spans:
            text[start:end] = " " * (end - start)
        self.text = "".join(text)

    def torn(self) -> bool:
        """Whether PDFium breaks the line behind most characters: where little stands on a page, it may take lines for
        columns, as on invoices that a browser printed."""
        breaks = self.text.count("\r\n")
        return breaks > 4 and len(_TORN.findall(self.text)) > _TORN_SHARE * breaks

    def pieces(self) -> Iterator[RawWord]:
        """Text, left, bottom, right, top of every word, and where its first character stands on its line.

        A word of which some letters are pale and others are not is two: a person may see one of them only.
        """
        box, origin, object_of, known = _box_of, _origin_of, _object_of, self._pale_objects
        rect, x, y = self._rect, self._x, self._y
        rect_at, x_at, y_at = (ctypes.addressof(value) for value in (rect, x, y))
        layer = ctypes.cast(self._raw, _AT).value
        waiting = [match.span() for match in _WORD.finditer(self.text)]
        waiting.reverse()
        count = 0
        while waiting:
            start, end = waiting.pop()
            if not box(layer, start, rect_at):
                continue
            left, bottom, right, top = rect.left, rect.bottom, rect.right, rect.top
            drawn = object_of(layer, start)
            if end - start > 1 and box(layer, end - 1, rect_at):
                middle = 0
                if rect.right < left and rect.top < bottom:
                    # Its end stands below and before its beginning: two words that the file runs together.
                    middle = self._break(start, end)
                elif object_of(layer, end - 1) != drawn:
                    middle = self._recoloured(layer, start, end)
                if middle:
                    waiting += [(middle, end), (start, middle)]
                    continue
                left, right = min(left, rect.left), max(right, rect.right)
                bottom, top = min(bottom, rect.bottom), max(top, rect.top)
            origin(layer, start, x_at, y_at)
            if known[drawn] if drawn in known else self._is_pale(drawn):
                self.pale[count] = (start, end)
            count += 1
            yield self.text[start:end].translate(_HYPHENS), left, bottom, right, top, x.value, y.value

    def _is_pale(self, drawn: int | None) -> bool:
        """Whether a piece of text is light as paper or lets it shine through, its outline too if it has one."""
        pale = self._pale_objects.get(drawn)
        if pale is None:
            pale = bool(_fill_of(drawn, *self._colour_at)) and self._is_faint()
            if (
                pale
                and pdfium.FPDFTextObj_GetTextRenderMode(ctypes.cast(drawn or 0, pdfium.FPDF_PAGEOBJECT)) in _STROKED
            ):
                pale = bool(_stroke_of(drawn, *self._colour_at)) and self._is_faint()
            self._pale_objects[drawn] = pale
        return pale

    def _is_faint(self) -> bool:
        """Whether the colour that was asked for is hardly seen on paper."""
        red, green, blue, alpha = self._colour[:]
        return (red >= _PALE and green >= _PALE and blue >= _PALE) or alpha <= _CLEAR

    def _recoloured(self, layer: int | None, start: int, end: int) -> int:
        """Where a run of characters that several pieces of text draw becomes pale or ceases to be; 0 if nowhere."""
        first = self._is_pale(_object_of(layer, start))
        for index in range(start + 1, end):
            drawn = _object_of(layer, index)
            if drawn is not None and self._is_pale(drawn) != first:
                return index
        return 0

    def _break(self, start: int, end: int) -> int:
        """Where a run of characters goes on in another line; its last character if nowhere."""
        rect = ctypes.byref(self._rect)
        low = None
        for index in range(start, end):
            if pdfium.FPDFText_GetLooseCharBox(self._raw, index, rect):
                if low is not None and self._rect.top < low:
                    return index
                low = self._rect.bottom
        return end - 1


def mended(words: Iterable[RawWord]) -> Iterator[RawWord]:
    """Words with their pieces joined: those that stand one right behind the other on a line."""
    before: RawWord | None = None
    for word in words:
        if before is None:
            before = word
            continue
        text, left, bottom, right, top, x, y = before
        height = top - bottom
        on_line = abs(word[6] - y) <= _SAME_LINE * height
        if on_line and -height < word[1] - right <= _APART * height and word[1] > left:
            lowest, highest = min(bottom, word[2]), max(top, word[4])
            before = (text + word[0], left, lowest, max(right, word[3]), highest, x, y)
        else:
            yield before
            before = word
    if before is not None:
        yield before


def place(
    words: Iterable[RawWord],
    box: tuple[float, float, float, float],
    turn: int,
) -> list[PlacedWord]:
    """The words as a person sees them: in the page's visible box, turned clockwise by `turn`, top-down.

    Those that lie wholly outside of the box are not on the page.
    """
    x0, y0, x1, y1 = box
    placed = []
    for text, left, bottom, right, top, x, y in words:
        if right < x0 or left > x1 or top < y0 or bottom > y1:
            continue
        match turn:
            case 90:
                seen = (bottom - y0, left - x0, top - y0, right - x0, x - x0)
            case 180:
                seen = (x1 - right, bottom - y0, x1 - left, top - y0, y - y0)
            case 270:
                seen = (y1 - top, x1 - right, y1 - bottom, x1 - left, x1 - x)
            case _:
                seen = (left - x0, y1 - top, right - x0, y1 - bottom, y1 - y)
        if seen[2] > seen[0] and seen[3] > seen[1]:
            placed.append(PlacedWord(text, *seen))
    return placed
