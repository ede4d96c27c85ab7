"""What could be the value of a field: the record that every finder of candidates returns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rapidfuzz.distance import Levenshtein

from docmill.documents.reading import Box
from docmill.extraction.local.layout import Layout, Span
from docmill.extraction.result import Evidence


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Something on the page that a field could mean.

    Features are numbers of about 0 to 1 by name; one that is left out is 0. A name with `=` in it, such as
    `left=total`, is a word: it gets a weight of its own but trees do not look at it. Training drops words that few
    documents share.
    """

    value: str
    """In the canonical form of the field's type."""
    raw: str
    """As it is written."""
    spans: tuple[Span, ...]
    features: Mapping[str, float]
    signals: Mapping[str, float] = field(default_factory=dict)
    """More that tells how far to trust it and not which to choose, such as how much of the text was repaired."""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """One box for all that stands close together: the spans of a page, joined."""
        boxes: dict[int, Box] = {}
        for span in self.spans:
            page = span.piece.page
            boxes[page] = boxes[page].around(span.box) if page in boxes else span.box
        return tuple(Evidence(page=page, box=box) for page, box in boxes.items())


Knowledge = Mapping[str, Any]
"""What a kind learned beside its rankers, such as a list of words; plain JSON."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A field that is found by ranking candidates."""

    name: str
    find: Callable[[Layout, Knowledge], Sequence[Candidate]]
    """Everything that could be it, best guess or not; also used in training."""
    right: Callable[[Sequence[Candidate], str], Sequence[bool]]
    """Which candidates say what the label says: `equal`, `closest`. Labels are not always verbatim: be lenient."""
    informed: bool = False
    """Whether `find` looks at the knowledge of the model; if not, training need not find candidates anew."""
    absent: Callable[[Layout], Mapping[str, float]] = lambda layout: {}
    """Features of the answer that the field is not there, beside `none`."""


def equal(
    meant: Callable[[str], object | None], worth: Callable[[str], object] = str
) -> Callable[[Sequence[Candidate], str], Sequence[bool]]:
    """Right are the candidates whose value is `worth` what the label means, read by `meant`; none if it is nothing."""

    def right(candidates: Sequence[Candidate], label: str) -> Sequence[bool]:
        wanted = meant(label)
        return [wanted is not None and worth(candidate.value) == wanted for candidate in candidates]

    return right


def closest(least: float) -> Callable[[Sequence[Candidate], str], Sequence[bool]]:
    """Right are the candidates that resemble the label most, letters and digits alone, if they resemble it enough."""

    def right(candidates: Sequence[Candidate], label: str) -> Sequence[bool]:
        wanted = letters(label)
        alike = [Levenshtein.normalized_similarity(letters(candidate.value), wanted) for candidate in candidates]
        top = max([*alike, least])
        return [share >= top for share in alike]

    return right


def letters(text: str) -> str:
    """Letters and digits alone, in lower case: what is left when spacing and punctuation do not count."""
    return "".join(character for character in text.casefold() if character.isalnum())
