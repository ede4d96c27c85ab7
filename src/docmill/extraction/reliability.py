"""How far confidence can be trusted: does it rank right above wrong, and does it say what share is right. Pure.

Every function takes outcomes: pairs of a confidence and whether the value was right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

Outcome = tuple[float, bool]
"""The confidence that was stated, and whether the value was right."""

BINS = 10
WANTED_PRECISION = 0.99


def auroc(outcomes: Sequence[Outcome]) -> float | None:
    """The probability that a right value has a higher confidence than a wrong one; a tie counts half.

    None unless there is at least one of each: with nothing to tell apart there is nothing to measure.
    """
    right = sum(1 for _, good in outcomes if good)
    wrong = len(outcomes) - right
    if not right or not wrong:
        return None
    below, won = 0, 0.0
    for _, tied in groupby(sorted(outcomes), key=lambda outcome: outcome[0]):
        goods = [good for _, good in tied]
        good, bad = sum(goods), len(goods) - sum(goods)
        won += good * (below + bad / 2)
        below += bad
    return won / (right * wrong)


def calibration_error(outcomes: Sequence[Outcome], bins: int = BINS) -> float | None:
    """The expected calibration error: how far stated confidence and share of right values differ, on average.

    Bins of equal width, as the measure is commonly defined; each counts with the share of values in it. None if there
    are no values.
    """
    if not outcomes:
        return None
    sums = [[0.0, 0.0] for _ in range(bins)]
    for confidence, good in outcomes:
        held = sums[min(bins - 1, max(0, int(confidence * bins)))]
        held[0] += confidence
        held[1] += good
    return sum(abs(stated - right) for stated, right in sums) / len(outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The values whose confidence lies in one part of the scale."""

    low: float
    high: float
    n: int
    stated: float
    """Mean confidence."""
    right: float
    """Share of right values."""


def slices(outcomes: Sequence[Outcome], bins: int = BINS) -> tuple[Slice, ...]:
    """The reliability diagram as data: those parts of the scale that hold values, from low to high."""
    held: list[list[Outcome]] = [[] for _ in range(bins)]
    for confidence, good in outcomes:
        held[min(bins - 1, max(0, int(confidence * bins)))].append((confidence, good))
    return tuple(
        Slice(
            low=place / bins,
            high=(place + 1) / bins,
            n=len(found),
            stated=sum(confidence for confidence, _ in found) / len(found),
            right=sum(good for _, good in found) / len(found),
        )
        for place, found in enumerate(held)
        if found
    )


def threshold_for(outcomes: Sequence[Outcome], precision: float = WANTED_PRECISION) -> float | None:
    """The lowest confidence such that of all values at least that sure, the wanted share is right.

    Values of equal confidence stand or fall together. None if no confidence is high enough.
    """
    found, taken, right = None, 0, 0
    for confidence, tied in groupby(sorted(outcomes, reverse=True), key=lambda outcome: outcome[0]):
        goods = [good for _, good in tied]
        taken += len(goods)
        right += sum(goods)
        if right >= precision * taken:
            found = confidence
    return found


def straight_through(
    outcomes: Sequence[Outcome], documents: Sequence[Sequence[float] | None], precision: float = WANTED_PRECISION
) -> tuple[float, float | None]:
    """The share of documents that could pass with nobody looking, and the confidence that lets them.

    A document is the confidences that matter in it, or None if it cannot pass: it failed, or something required is
    missing. It passes when each reaches the lowest confidence at which the wanted share of all values (`outcomes`,
    those of documents that do not pass included) is right.
    """
    threshold = threshold_for(outcomes, precision)
    if threshold is None or not documents:
        return 0.0, threshold
    passing = [bool(found) and all(stated >= threshold for stated in found) for found in documents if found is not None]
    return sum(passing) / len(documents), threshold
