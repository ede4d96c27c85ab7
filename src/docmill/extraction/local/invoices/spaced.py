"""Letters that a designer set apart, as in `I N V O I C E   N O .`, put together to the words that they spell.

Every letter is a word of its own to whoever reads the page, so that no label and no name would be known. Wider gaps
part the words.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docmill.extraction.local.invoices.sheet import Token

_FEWEST = 5
"""Pieces from which on a text is spelled; initials and single letters of a table are fewer."""
_LONGEST = 1.6
"""Letters of a piece on average: pairs that are set close, such as `AV`, stay together."""
_WIDER = 1.8
"""Times the ordinary gap: wider ones part words."""
_EVEN = 0.2
"""Heights of a letter: gaps within words differ by no more, those of a row of codes do."""


def spelled(run: Sequence["Token"]) -> tuple["Token", ...]:
    """The words of a run whose letters are set apart; any other run as it is."""
    count = len(run)
    if count < _FEWEST or sum([len(token.text) for token in run]) > _LONGEST * count:
        return tuple(run)
    if sum([token.text[0].isalpha() for token in run]) < 0.8 * count:
        return tuple(run)
    gaps = [after.left - token.right for token, after in pairwise(run)]
    limit = _WIDER * median(gaps)
    if limit <= 0:
        # They overlap, or run from right to left: nobody set them apart.
        return tuple(run)
    inner = [gap for gap in gaps if gap <= limit]
    if max(inner) - min(inner) > _EVEN * run[0].height:
        return tuple(run)
    words = [[run[0]]]
    for gap, token in zip(gaps, run[1:], strict=True):
        if gap > limit:
            words.append([token])
        else:
            words[-1].append(token)
    return tuple([_one(word) for word in words])


def _one(word: Sequence["Token"]) -> "Token":
    first = word[0]
    if len(word) == 1:
        return first
    return first._replace(
        text="".join([token.text for token in word]),
        right=word[-1].right,
        top=min([token.top for token in word]),
        bottom=max([token.bottom for token in word]),
        box=first.box.around(*[token.box for token in word[1:]]),
    )
