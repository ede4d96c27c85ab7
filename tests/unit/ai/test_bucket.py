"""The token bucket: never more than the rate, hardly ever less, and whoever waits is served in turn."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.ai.bucket import LONGEST_WAIT, Bucket, Full, Taken, take

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def grants(rate: float, burst: int, gaps: list[float]) -> list[float]:
    """Seconds from the start at which tokens were good, for callers that come with these gaps between them."""
    bucket: Bucket | None = None
    now, good = 0.0, []
    for gap in gaps:
        now += gap
        taken = take(bucket, now=NOW + timedelta(seconds=now), rate=rate, burst=burst)
        if isinstance(taken, Taken):
            bucket = taken.bucket
            good.append(now + taken.wait)
    return good


@pytest.mark.parametrize("rate", [0.5, 3.0, 10.0, 250.0])
def test_a_crowd_gets_the_rate_and_not_more(rate: float) -> None:
    # Twice as many as may come, for a thousand tokens' time.
    good = grants(rate, 1, [0.5 / rate] * 2000)
    length = 1000 / rate
    within = sum(1 for moment in good if moment <= length)
    assert 0.95 <= within / 1000 <= 1.02
    # Clocks tell microseconds.
    assert min(later - earlier for earlier, later in pairwise(good)) >= 1 / rate - 2e-6
    assert good == sorted(good)


def test_after_a_pause_a_burst_goes_at_once() -> None:
    assert grants(10.0, 3, [0.0] * 5) == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2])
    assert grants(10.0, 3, [0.0, 0.0, 0.0, 60.0, 0.0, 0.0, 0.0]) == pytest.approx([0, 0, 0, 60, 60, 60, 60.1])


def test_nobody_waits_for_longer_than_he_may() -> None:
    bucket: Bucket | None = None
    let_in = 0
    while isinstance(taken := take(bucket, now=NOW, rate=10.0, burst=1), Taken):
        assert taken.wait <= LONGEST_WAIT
        bucket = taken.bucket
        let_in += 1
    assert let_in == 1 + LONGEST_WAIT * 10
    assert isinstance(taken, Full)
    assert taken.delay == pytest.approx(LONGEST_WAIT + 0.1)
    # One who was sent away took nothing: after that delay there is a token.
    assert isinstance(take(bucket, now=NOW + timedelta(seconds=taken.delay), rate=10.0, burst=1), Taken)


def test_a_clock_that_was_set_back_does_not_stop_the_refill() -> None:
    empty = Bucket(tokens=0.0, updated_at=NOW)
    long_ago = NOW - timedelta(days=1)
    taken = take(empty, now=long_ago, rate=10.0, burst=1)
    assert isinstance(taken, Taken)
    assert taken.bucket.updated_at == long_ago


def test_a_clock_that_trembles_earns_nothing() -> None:
    bucket: Bucket | None = Bucket(tokens=0.0, updated_at=NOW)
    for n in range(20):
        taken = take(bucket, now=NOW - timedelta(milliseconds=100 * (n % 2)), rate=10.0, burst=1)
        assert isinstance(taken, Taken)
        bucket = taken.bucket
    assert bucket is not None
    assert bucket.tokens == -20.0


@given(
    rate=st.floats(0.1, 1000),
    burst=st.integers(1, 50),
    gaps=st.lists(st.floats(0, 20), max_size=60),
)
def test_no_stretch_of_time_has_more_than_the_rate_and_one_burst(rate: float, burst: int, gaps: list[float]) -> None:
    good = grants(rate, burst, gaps)
    for first in range(len(good)):
        for last in range(first, len(good)):
            tokens = last - first + 1
            assert tokens <= burst + rate * (good[last] - good[first]) + 1e-3 * rate + 1e-6
