"""A page as a picture with the evidence on it: a box for every value, coloured by confidence, and a list beside it.

Pillow is imported when something is drawn. Numbers, not names, stand at the boxes: names would hide the page.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from docmill.documents.reading import Box
from docmill.extraction.result import Extraction, FieldValue, Reader
from docmill.model.percents import percent

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

Colour = tuple[int, int, int]
Area = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels."""

_SURE: Colour = (22, 135, 84)
_UNSURE: Colour = (201, 120, 0)
_DOUBTFUL: Colour = (200, 40, 50)
_INK: Colour = (28, 32, 38)
_SOFT: Colour = (108, 117, 128)
_LINE: Colour = (222, 226, 230)
_PAPER: Colour = (255, 255, 255)
_BACK: Colour = (241, 243, 245)
SURE, UNSURE = 0.9, 0.6
"""From here on a box is green; from here on amber; below, red."""
_PAGE_HEIGHT = 1500
_MOST_WIDTH = 1500
_PANEL = 560
_DARK = 140
"""A pixel that is darker is ink."""
_MARGIN = 28
_ROW = 62
_AROUND = 330
"""Height of the panel without its rows."""
_FONTS = ("DejaVuSans.ttf", "LiberationSans-Regular.ttf", "Arial.ttf", "Helvetica.ttc")
_BOLD_FONTS = ("DejaVuSans-Bold.ttf", "LiberationSans-Bold.ttf", "Arial Bold.ttf", "Helvetica.ttc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One value as it is drawn and listed."""

    number: int
    name: str
    found: FieldValue
    boxes: tuple[Box, ...]
    """On this page."""

    @property
    def colour(self) -> Colour:
        return colour_of(self.found.confidence)


def colour_of(confidence: float) -> Colour:
    """Green, amber or red."""
    return _SURE if confidence >= SURE else _UNSURE if confidence >= UNSURE else _DOUBTFUL


def marks_of(extraction: Extraction, page: int) -> tuple[Mark, ...]:
    """Every field in order, numbered through the document, with its places on one page."""
    return tuple(
        Mark(
            number=number,
            name=name,
            found=found,
            boxes=tuple(place.box for place in found.evidence if place.page == page),
        )
        for number, (name, found) in enumerate(extraction.fields.items(), start=1)
    )


def draw_page(
    picture: "Image",
    extraction: Extraction,
    *,
    page: int,
    pages: int,
    title: str,
    names: Mapping[str, str] | None = None,
) -> "Image":
    """The page with boxes, and beside it what was found; `names` are the titles of the fields."""
    from PIL import Image, ImageDraw

    ratio = min(_PAGE_HEIGHT / picture.height, _MOST_WIDTH / picture.width)
    shown = picture.convert("RGB").resize(
        (max(1, round(picture.width * ratio)), max(1, round(picture.height * ratio))), Image.Resampling.LANCZOS
    )
    marks = marks_of(extraction, page)
    height = max(shown.height, len(marks) * _ROW + _AROUND) + 2 * _MARGIN
    canvas = Image.new("RGB", (shown.width + _PANEL + 3 * _MARGIN, height), _BACK)
    _boxes(shown, extraction, marks, page)
    frame = ImageDraw.Draw(canvas)
    left, top = _MARGIN, _MARGIN
    frame.rectangle((left - 1, top - 1, left + shown.width, top + shown.height), outline=_LINE)
    canvas.paste(shown, (left, top))
    _panel(
        frame, (shown.width + 2 * _MARGIN, top, height - _MARGIN), extraction, marks, page, pages, title, names or {}
    )
    return canvas


def _boxes(shown: "Image", extraction: Extraction, marks: Iterable[Mark], page: int) -> None:
    from PIL import Image, ImageDraw

    layer = Image.new("RGBA", shown.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    for rows in extraction.rows.values():
        for found in (cell for row in rows for cell in row.values()):
            for place in found.evidence:
                if place.page == page:
                    area = _area(place.box, shown.size, 2)
                    pen.rounded_rectangle(area, 3, outline=(*colour_of(found.confidence), 150), width=1)
    placed = [(mark, _area(box, shown.size, 4)) for mark in marks for box in mark.boxes]
    for mark, area in placed:
        pen.rounded_rectangle(area, 5, fill=(*mark.colour, 38), outline=(*mark.colour, 255), width=3)
    ink = shown.convert("L").point(lambda level: 255 if level < _DARK else 0)
    taken = [area for _, area in placed]
    for mark, area in placed:
        taken.append(_tag(pen, area, mark, ink, taken))
    shown.paste(Image.alpha_composite(shown.convert("RGBA"), layer).convert("RGB"))


def _area(box: Box, size: tuple[int, int], space: int) -> Area:
    """Pixels around a box, with some space, inside the picture and never turned inside out."""
    wide, high = size
    left, right = sorted((box.left * wide, box.right * wide))
    top, bottom = sorted((box.top * high, box.bottom * high))
    left, top = min(max(0.0, left - space), wide - 2.0), min(max(0.0, top - space), high - 2.0)
    return left, top, max(left + 1, min(wide - 1.0, right + space)), max(top + 1, min(high - 1.0, bottom + space))


def _tag(pen: "ImageDraw", area: Area, mark: Mark, ink: "Image", taken: Sequence[Area]) -> Area:
    """The number of a value beside its box, where it hides as little as it can; its place."""
    text, font = str(mark.number), _font(17, bold=True)
    wide, high = 14 + 11 * len(text), 24
    left, top, right, bottom = area
    middle = (top + bottom - high) / 2
    sides = [(left - wide - gap, middle) for gap in (3, 16, 32, 56)] + [
        (right + gap, middle) for gap in (3, 16, 32, 56)
    ]
    ends = [
        (x, y) for y in (top - high - 2, bottom + 2) for x in (left - 2, right - wide + 2, (left + right - wide) / 2)
    ]
    spots = [
        (x, y, x + wide, y + high)
        for x, y in [*sides, *ends]
        if x >= 0 and y >= 0 and x + wide < ink.width and y + high < ink.height
    ]

    def hidden(spot: Area) -> float:
        """Ink under it, how much of other marks it covers, and a little for being far away."""
        x0, y0, x1, y1 = (round(edge) for edge in spot)
        dark = ink.crop((x0, y0, x1, y1)).histogram()[255] / (wide * high)
        away = abs((spot[0] + spot[2]) - (left + right)) / (2 * ink.width)
        return 3 * dark + 2 * sum(_shared(spot, other) for other in taken) / (wide * high) + 0.3 * away

    spot = min(spots, key=hidden) if spots else (left, top, left + wide, top + high)
    pen.rounded_rectangle(spot, 7, fill=(*mark.colour, 255))
    pen.text(((spot[0] + spot[2]) / 2, (spot[1] + spot[3]) / 2), text, fill=_PAPER, font=font, anchor="mm")
    return spot


def _shared(one: Area, other: Area) -> float:
    """The area that two places have in common."""
    wide, high = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, wide) * max(0.0, high)


def _panel(
    pen: "ImageDraw",
    place: tuple[int, int, int],
    extraction: Extraction,
    marks: Sequence[Mark],
    page: int,
    pages: int,
    title: str,
    names: Mapping[str, str],
) -> None:
    left, top, bottom = place
    right = left + _PANEL
    pen.rounded_rectangle((left, top, right, bottom), 14, fill=_PAPER, outline=_LINE)
    x, y = left + 26, top + 24
    pen.text((x, y), _cut(pen, title, _font(25, bold=True), _PANEL - 52), fill=_INK, font=_font(25, bold=True))
    y += 38
    kind = extraction.document_type.replace("_", " ")
    told = f"{kind} · schema {extraction.schema} · {extraction.reader.value} · page {page} of {pages}"
    pen.text((x, y), _cut(pen, told, _font(17), _PANEL - 52), fill=_SOFT, font=_font(17))
    y += 34
    _bar(pen, (x, y, right - 26), extraction.confidence)
    y += 52
    for mark in marks:
        _row(pen, (x, y, right - 26), mark, names.get(mark.name, mark.name.replace("_", " ")))
        y += _ROW
    if not marks:
        pen.text((x, y), "No fields were found.", fill=_SOFT, font=_font(18))
    for table, rows in extraction.rows.items():
        if rows:
            said = f"{names.get(table, table.replace('_', ' '))}: {len(rows)} row{'s' if len(rows) != 1 else ''}"
            pen.text((x, y + 4), said, fill=_SOFT, font=_font(17))
            y += 30
    x_at = float(x)
    for colour, text in (
        (_SURE, f"{percent(SURE)} and more"),
        (_UNSURE, f"{percent(UNSURE)} to {percent(SURE)}"),
        (_DOUBTFUL, f"below {percent(UNSURE)}"),
    ):
        pen.rounded_rectangle((x_at, bottom - 40, x_at + 20, bottom - 24), 4, fill=colour)
        pen.text((x_at + 28, bottom - 32), text, fill=_SOFT, font=_font(15), anchor="lm")
        x_at += 44 + pen.textlength(text, font=_font(15))


def _bar(pen: "ImageDraw", place: tuple[float, float, float], confidence: float) -> None:
    left, top, right = place
    pen.text((left, top), "document", fill=_SOFT, font=_font(17))
    pen.text((right, top), percent(confidence), fill=colour_of(confidence), font=_font(17, bold=True), anchor="ra")
    pen.rounded_rectangle((left + 100, top + 6, right - 70, top + 16), 5, fill=_BACK)
    filled = left + 100 + max(10.0, (right - left - 170) * confidence)
    pen.rounded_rectangle((left + 100, top + 6, filled, top + 16), 5, fill=colour_of(confidence))


def _row(pen: "ImageDraw", place: tuple[float, float, float], mark: Mark, name: str) -> None:
    left, top, right = place
    here = bool(mark.boxes)
    chip = (left, top + 4, left + 34, top + 30)
    pen.rounded_rectangle(chip, 8, fill=mark.colour if here else _PAPER, outline=mark.colour, width=2)
    tint = _PAPER if here else mark.colour
    pen.text((left + 17, top + 17), str(mark.number), fill=tint, font=_font(17, bold=True), anchor="mm")
    note = "" if here else f" · {_elsewhere(mark.found)}"
    if mark.found.failed:
        note += f" · fails {mark.found.failed[0].replace('_', ' ')}"
    pen.text((left + 48, top), _cut(pen, name + note, _font(15), right - left - 120), fill=_SOFT, font=_font(15))
    value = " ".join(mark.found.value.split())
    pen.text((left + 48, top + 22), _cut(pen, value, _font(20), right - left - 120), fill=_INK, font=_font(20))
    sure = percent(mark.found.confidence)
    pen.text((right, top + 22), sure, fill=mark.colour, font=_font(20, bold=True), anchor="ra")


def _elsewhere(found: FieldValue) -> str:
    if found.grounded:
        return f"page {found.evidence[0].page}"
    return "in the XML only" if found.reader is Reader.EINVOICE else "not on a page"


def _cut(pen: "ImageDraw", text: str, font: "Font", room: float) -> str:
    """The text, or as much of it as there is room for."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    if pen.textlength(printable, font=font) <= room:
        return printable
    while printable and pen.textlength(printable + "…", font=font) > room:
        printable = printable[:-1]
    return printable.rstrip() + "…"


@lru_cache(maxsize=32)
def _font(size: int, *, bold: bool = False) -> Any:
    """A font of this machine that knows many scripts; else the one inside Pillow."""
    from PIL import ImageFont

    for name in _BOLD_FONTS if bold else _FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)
