"""What comes first: a weighted sum of four parts, and the key by which an index keeps its order. Pure.

    priority = 0.40·(1 − confidence) + 0.30·SLA proximity + 0.20·complexity + 0.10·value

Three parts never change while an item waits; the proximity grows in a straight line from creation to the due time. So
two items with the same SLA keep their order for ever, and a fixed `place` says it: at any moment

    priority = 0.30·moment/SLA − place        (both in seconds, while the item is not overdue)

Items without an SLA, and items that are overdue (proximity 0 and 1), keep their order anyway. The best item of all is
therefore the best of the first items of a few classes, each read from the front of an index.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

CONFIDENCE, PROXIMITY, COMPLEXITY, VALUE = 0.40, 0.30, 0.20, 0.10
"""The weights."""
NO_SLA, OVERDUE = 0, -1
"""Classes besides those of the lengths of SLAs in seconds."""
_START = datetime(2026, 1, 1, tzinfo=UTC)
"""From where seconds are counted in places: near enough for a double to tell microseconds apart."""
_MANY_FIELDS, _MANY_DOUBTS, _MANY_FAULTS = 100, 10, 5
_LARGE = 5.0
"""Powers of ten from which on an amount counts as large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """A priority and what it is made of: the parts from 0 to 1, before they are weighed."""

    priority: float
    doubt: float
    """1 − confidence."""
    proximity: float
    complexity: float
    value: float


def complexity_of(*, fields: int, to_review: int, failed_checks: int) -> float:
    """0.5·fields/100 + 0.3·fields to look at/10 + 0.2·failed checks/5, each share at most 1. Cells count as fields."""
    shares = ((0.5, fields, _MANY_FIELDS), (0.3, to_review, _MANY_DOUBTS), (0.2, failed_checks, _MANY_FAULTS))
    return sum(weight * min(1.0, count / many) for weight, count, many in shares)


def value_of(amount: float | None) -> float:
    """log10(1 + amount)/5, at most 1: 0 without an amount, 0.6 for a thousand, 1 from a hundred thousand on.

    Whatever the currency: it ranks, it does not convert.
    """
    if amount is None or not math.isfinite(amount):
        return 0.0
    return min(1.0, math.log10(1 + abs(amount)) / _LARGE)


def proximity_of(created_at: datetime, due_at: datetime | None, now: datetime) -> float:
    """The share of its time that is over: 0 at creation, 1 from the due time on; 0 without an SLA."""
    if due_at is None:
        return 0.0
    if now >= due_at:
        return 1.0
    return max(0.0, (now - created_at) / (due_at - created_at))


def standing(*, confidence: float, complexity: float, value: float) -> float:
    """The part of the priority that time does not change."""
    return CONFIDENCE * (1 - confidence) + COMPLEXITY * complexity + VALUE * value


def breakdown(
    *,
    confidence: float,
    complexity: float,
    value: float,
    created_at: datetime,
    due_at: datetime | None,
    now: datetime,
) -> Breakdown:
    """The priority of an item at this moment."""
    near = proximity_of(created_at, due_at, now)
    fixed = standing(confidence=confidence, complexity=complexity, value=value)
    return Breakdown(
        priority=fixed + PROXIMITY * near,
        doubt=1 - confidence,
        proximity=near,
        complexity=complexity,
        value=value,
    )


def place_of(standing: float, created_at: datetime, sla: timedelta | None) -> tuple[int, float]:
    """The class of an item and its place there, smallest first, until it is overdue."""
    if sla is None:
        return NO_SLA, -standing
    length = seconds_of(sla)
    return length, PROXIMITY * _seconds(created_at) / length - standing


def priority_at(queue_class: int, place: float, now: datetime) -> float:
    """The priority that a class and a place mean at this moment."""
    if queue_class > 0:
        return PROXIMITY * _seconds(now) / queue_class - place
    return (PROXIMITY if queue_class == OVERDUE else 0.0) - place


def place_below(queue_class: int, priority: float, now: datetime) -> float:
    """The place in this class that means this priority at this moment."""
    return priority_at(queue_class, 0.0, now) - priority


def seconds_of(sla: timedelta) -> int:
    """The length of an SLA: whole seconds, at least one."""
    return max(1, round(sla.total_seconds()))


def _seconds(moment: datetime) -> float:
    return (moment - _START).total_seconds()
