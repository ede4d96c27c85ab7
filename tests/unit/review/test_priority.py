"""The formula, part by part; and the places that keep its order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.review.priority import (
    OVERDUE,
    breakdown,
    complexity_of,
    place_below,
    place_of,
    priority_at,
    proximity_of,
    standing,
    value_of,
)
from docmill.testing.plans import profile

START = datetime(2026, 11, 16, tzinfo=UTC)
DAY = timedelta(days=1)


def test_the_weights_are_those_of_the_specification() -> None:
    worst: dict[str, Any] = {
        "confidence": 0.0,
        "complexity": 1.0,
        "value": 1.0,
        "created_at": START,
        "due_at": START + DAY,
    }
    assert breakdown(**worst, now=START + DAY).priority == pytest.approx(1.0)
    assert breakdown(**worst | {"confidence": 1.0}, now=START + DAY).priority == pytest.approx(0.6)
    assert breakdown(**worst, now=START).priority == pytest.approx(0.7)
    assert breakdown(**worst | {"complexity": 0.0}, now=START + DAY).priority == pytest.approx(0.8)
    assert breakdown(**worst | {"value": 0.0}, now=START + DAY).priority == pytest.approx(0.9)


@pytest.mark.parametrize(("after", "share"), [(-DAY, 0.0), (0 * DAY, 0.0), (DAY / 2, 0.5), (DAY, 1.0), (9 * DAY, 1.0)])
def test_proximity_grows_from_creation_to_the_due_time(after: timedelta, share: float) -> None:
    assert proximity_of(START, START + DAY, START + after) == pytest.approx(share)
    assert proximity_of(START, None, START + after) == 0.0


def test_complexity_and_value_stay_between_nothing_and_one() -> None:
    assert complexity_of(fields=0, to_review=0, failed_checks=0) == 0.0
    assert complexity_of(fields=10_000, to_review=10_000, failed_checks=10_000) == pytest.approx(1.0)
    assert complexity_of(fields=50, to_review=5, failed_checks=0) == pytest.approx(0.25 + 0.15)
    assert value_of(None) == 0.0
    assert value_of(float("nan")) == 0.0
    assert value_of(-999) == pytest.approx(0.6)
    assert value_of(1e12) == 1.0


shares = st.floats(0, 1)
lengths = st.integers(1, 10**8).map(lambda seconds: timedelta(seconds=seconds))


@given(
    confidence=shares, complexity=shares, value=shares, sla=st.none() | lengths, age=shares, back=st.integers(0, 10**8)
)
@profile(200)
def test_a_place_means_the_priority_at_every_moment_until_the_due_time(
    confidence: float, complexity: float, value: float, sla: timedelta | None, age: float, back: int
) -> None:
    created = START - timedelta(seconds=back)
    parts = {"confidence": confidence, "complexity": complexity, "value": value}
    fixed = standing(**parts)
    now = created + (sla or DAY) * age
    due = None if sla is None else created + sla
    queue_class, place = place_of(fixed, created, sla)
    wanted = breakdown(**parts, created_at=created, due_at=due, now=now).priority
    # A double tells a second apart in an SLA of a second, and much less in longer ones.
    assert priority_at(queue_class, place, now) == pytest.approx(wanted, abs=1e-6)
    assert place_below(queue_class, priority_at(queue_class, place, now), now) == pytest.approx(place, abs=1e-6)
    if due is not None:
        late = breakdown(**parts, created_at=created, due_at=due, now=due + DAY).priority
        assert priority_at(OVERDUE, -fixed, due + DAY) == pytest.approx(late)
