"""Pages made of words with places, as a reader of documents would have found them."""

from docmill.documents.reading import Box, Format, Line, Page, Reading, TextSource, Word

_HEIGHT = 0.014
_LETTER = 0.008


def reading(*lines: tuple[float, float, str], source: TextSource = TextSource.EMBEDDED) -> Reading:
    """A document of one page; each line is its left and top edge (0 to 1) and its text."""
    page = Page(number=1, width=595, height=842, source=source, lines=tuple(_line(*line) for line in lines))
    return Reading(sha256="0" * 64, format=Format.PDF, pages=(page,))


def _line(left: float, top: float, text: str) -> Line:
    words, at = [], left
    for word in text.split(" "):
        width = _LETTER * len(word)
        if word:
            words.append(Word(text=word, box=Box(at, top, at + width, top + _HEIGHT)))
        at += width + _LETTER / 2
    return Line(words=tuple(words))
