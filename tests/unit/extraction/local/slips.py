"""Till slips made in code: lines of text with places, as a reading has them."""

from docmill.documents.reading import Box, Format, Line, Page, Reading, TextSource, Word

WIDTH = 48
"""Characters across a slip."""


def slip(
    *rows: str,
    skew: float = 0.0,
    source: TextSource = TextSource.OCR,
    score: float | None = 0.99,
    whole: bool = False,
) -> Reading:
    """One page; pieces of a row are separated by two spaces or more, and each letter takes 1/48 of the width."""
    height = 1 / (len(rows) + 2)
    lines = []
    for number, row in enumerate(rows, start=1):
        for piece, start in _pieces(row):
            words, at = [], start
            for text in piece.split(" "):
                left, right = at / WIDTH, (at + len(text)) / WIDTH
                top = (number + 0.1) * height + skew * (left + right) / 2
                words.append(Word(text=text, box=Box(left, top, right, top + 0.8 * height), score=score, whole=whole))
                at += len(text) + 1
            lines.append(Line(words=tuple(words)))
    page = Page(number=1, width=480, height=20 * len(rows), source=source, lines=tuple(lines))
    return Reading(sha256="0" * 64, format=Format.PNG, pages=(page,))


def _pieces(row: str) -> list[tuple[str, int]]:
    found, at = [], 0
    for part in row.split("  "):
        if part.strip():
            found.append((part.strip(), at + len(part) - len(part.lstrip())))
        at += len(part) + 2
    return found


GROCER = (
    "          HARVEST MOON GROCER SDN BHD",
    "              (712345-K)",
    "          NO. 8, JALAN KENANGA 3/2,",
    "          TAMAN BUNGA RAYA,",
    "          43000 KAJANG, SELANGOR.",
    "          TEL: 03-8733 1234",
    "          GST ID: 001234567890",
    "              TAX INVOICE",
    "RECEIPT NO: CS00123456     DATE: 14/03/2018",
    "ITEM               QTY    PRICE    AMOUNT",
    "WHITE BREAD 400G     1     2.80      2.80",
    "FRESH MILK 1L        2     6.45     12.90",
    "BROWN SUGAR          1     3.12      3.12",
    "SUB TOTAL                           18.82",
    "ROUNDING ADJ                        -0.02",
    "TOTAL                               18.80",
    "CASH                                20.00",
    "CHANGE                               1.20",
    "THANK YOU PLEASE COME AGAIN",
)
