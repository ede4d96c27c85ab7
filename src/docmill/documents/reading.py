"""What stands on the pages of a document: one record for every format, made once and kept as a checkpoint.

Boxes are normalised: 0 to 1 from the top left corner of the page as a person looks at it, so after any rotation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, Self


class Format(StrEnum):
    """What the bytes are, by their content."""

    PDF = "pdf"
    PNG = "png"
    JPEG = "jpeg"
    WEBP = "webp"
    GIF = "gif"
    TIFF = "tiff"
    BMP = "bmp"
    EPUB = "epub"
    XML = "xml"


class TextSource(StrEnum):
    """Where the words of a page come from."""

    EMBEDDED = "embedded"
    """The file says what is written where."""
    OCR = "ocr"
    NONE = "none"
    """Nothing is written there, or the format has no pages to look at."""


class Box(NamedTuple):
    """A place on a page; 0 to 1, from the top left. A tuple, as a word: a document has thousands."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        """Of its height: where a line of text runs."""
        return (self.top + self.bottom) / 2

    def around(self, *others: "Box") -> "Box":
        """The smallest box that holds this one and the others."""
        if not others:
            return self
        left, top, right, bottom = self.left, self.top, self.right, self.bottom
        for box in others:
            # Compared by hand: every line of every page comes by here.
            left = box.left if box.left < left else left
            top = box.top if box.top < top else top
            right = box.right if box.right > right else right
            bottom = box.bottom if box.bottom > bottom else bottom
        return Box(left, top, right, bottom)


class Word(NamedTuple):
    """A run of characters without a space."""

    text: str
    box: Box
    score: float | None = None
    """How sure the OCR is of the characters; None for embedded text. Says little about which value is meant."""
    whole: bool = False
    """Whether the OCR saw no place in it where a space might have been lost; false where nobody looked."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Words that stand side by side and were found as one piece of text, from left to right."""

    words: tuple[Word, ...]

    @cached_property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @cached_property
    def box(self) -> Box:
        return self.words[0].box.around(*(word.box for word in self.words[1:]))


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page, or one frame of an image of several."""

    number: int
    """From 1."""
    width: float
    height: float
    """In points (PDF) or pixels (images), turned the right way up."""
    source: TextSource
    lines: tuple[Line, ...] = ()
    """From top to bottom."""
    turned: int = 0
    """Degrees, clockwise, by which the page as stored had to be turned to stand upright: 0, 90, 180 or 270."""
    skew: float = 0.0
    """Degrees, clockwise, by which its lines still sink to the right: a scan lies askew. Boxes are where they are."""

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return tuple(word for line in self.lines for word in line.words)

    @cached_property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @cached_property
    def size(self) -> "PageSize":
        """How much is written on it: every reader asks first if that is more than it looks at."""
        words, letters = [len(line.words) for line in self.lines], [len(line.text) for line in self.lines]
        return PageSize(
            words=sum(words),
            letters=sum(letters),
            line_words=max(words, default=0),
            line_letters=max(letters, default=0),
            empty_lines=words.count(0),
        )


class PageSize(NamedTuple):
    """How much is written on a page."""

    words: int
    letters: int
    line_words: int
    """Of the line that has most of them …"""
    line_letters: int
    """… and of that with the most letters."""
    empty_lines: int
    """Lines without words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of a document that flows: a chapter of an EPUB, in the order of its spine."""

    path: str
    title: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredInvoice:
    """An e-invoice that was found: the document itself, or an attachment of a PDF."""

    xml: str
    attachment: str | None
    """The name it has inside the PDF, as it is written there; None when the document is the XML."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """All that was read from one document."""

    sha256: str
    format: Format
    pages: tuple[Page, ...] = ()
    sections: tuple[Section, ...] = ()
    invoice: StructuredInvoice | None = None
    declared: str | None = None
    """What an attachment says that the document is where that is no invoice: `order`."""
    notes: tuple[str, ...] = ()
    """What the reader could not do and a person may want to know, such as pages that were left out."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    cut: Mapping[str, int] = field(default_factory=dict)
    """Limits beyond which something was left out, with what they were: read with higher ones, it says more."""

    @cached_property
    def text(self) -> str:
        """Everything that is written, pages in order."""
        return "\n\n".join([*(page.text for page in self.pages), *(section.text for section in self.sections)])

    def lines(self) -> Iterator[tuple[Page, Line]]:
        """Every line with its page, in order."""
        for page in self.pages:
            for line in page.lines:
                yield page, line

    def as_json(self) -> dict[str, object]:
        """For a checkpoint; short keys for what there is a lot of."""
        return {
            "sha256": self.sha256,
            "format": self.format.value,
            "pages": [page_as_json(page) for page in self.pages],
            "sections": [{"path": part.path, "title": part.title, "text": part.text} for part in self.sections],
            "invoice": self.invoice and {"xml": self.invoice.xml, "attachment": self.invoice.attachment},
            **({"declared": self.declared} if self.declared else {}),
            "notes": list(self.notes),
            "metadata": dict(self.metadata),
            **({"cut": dict(self.cut)} if self.cut else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Self:
        """What `as_json` wrote."""
        kept: dict[str, object] = dict(data)
        kept["format"] = Format(str(kept["format"]))
        kept["pages"] = tuple(page_from_json(page) for page in kept["pages"])  # type: ignore[attr-defined]
        kept["sections"] = tuple(Section(**part) for part in kept["sections"])  # type: ignore[attr-defined]
        kept["invoice"] = StructuredInvoice(**kept["invoice"]) if kept["invoice"] else None  # type: ignore[arg-type]
        kept["notes"] = tuple(kept["notes"])  # type: ignore[arg-type]
        return cls(**kept)  # type: ignore[arg-type]


_DIGITS = 5
"""Of a coordinate: a hundred-thousandth of a page is far below a pixel."""


def page_as_json(page: Page) -> dict[str, object]:
    """One page, as a checkpoint of its own while the others are still to be read."""
    return {
        "number": page.number,
        "width": page.width,
        "height": page.height,
        "source": page.source.value,
        "turned": page.turned,
        **({"skew": page.skew} if page.skew else {}),
        "lines": [[_word_as_json(word) for word in line.words] for line in page.lines],
    }


def page_from_json(data: Mapping[str, object]) -> Page:
    """What `page_as_json` wrote."""
    kept: dict[str, object] = dict(data)
    kept["source"] = TextSource(str(kept["source"]))
    kept["lines"] = tuple(
        Line(words=tuple(_word_from_json(word) for word in words))
        for words in kept["lines"]  # type: ignore[attr-defined]
    )
    return Page(**kept)  # type: ignore[arg-type]


def _word_as_json(word: Word) -> list[object]:
    text, (left, top, right, bottom), score, whole = word
    places = [text, round(left, _DIGITS), round(top, _DIGITS), round(right, _DIGITS), round(bottom, _DIGITS)]
    if score is None:
        return places
    return [*places, round(score, 4), *([1] if whole else [])]


def _word_from_json(data: list[object]) -> Word:
    text, left, top, right, bottom, *seen = data
    box = Box(float(left), float(top), float(right), float(bottom))  # type: ignore[arg-type]
    score = float(seen[0]) if seen else None  # type: ignore[arg-type]
    return Word(str(text), box, score, len(seen) > 1)
