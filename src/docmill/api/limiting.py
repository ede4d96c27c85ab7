"""How much one principal may ask, and how often anybody may guess. Kept in this process, for its event loop only."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from docmill.api.problems import TooManyRequests

_FAILURES, _FAILURES_PER_SECOND = 20, 0.5
"""Wrong tokens that one address may show at once, and how fast it is forgiven."""
_REMEMBERED = 10_000
"""Principals and addresses; those unseen for longest are forgotten, and would have full buckets by then."""


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


class Limiter:
    """Token buckets by name."""

    def __init__(self, *, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, name: str) -> None:
        """One request of this principal; TooManyRequests if there were too many."""
        bucket = self._bucket(name, self._rate, self._burst)
        if bucket.level < 1:
            wait = (1 - bucket.level) / self._rate
            raise TooManyRequests("Too many requests at once; wait as long as Retry-After says.", retry_after=wait)
        bucket.level -= 1

    def check_failures(self, address: str) -> None:
        """Whether this address has guessed too often."""
        bucket = self._bucket(f"failed {address}", _FAILURES_PER_SECOND, _FAILURES)
        if bucket.level < 1:
            wait = (1 - bucket.level) / _FAILURES_PER_SECOND
            raise TooManyRequests("Too many wrong tokens from here; wait, and correct the token.", retry_after=wait)

    def failed(self, address: str) -> None:
        """It guessed wrong."""
        self._bucket(f"failed {address}", _FAILURES_PER_SECOND, _FAILURES).level -= 1

    def _bucket(self, name: str, rate: float, burst: int) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket(float(burst), now)
            if len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(name)
            bucket.level = min(float(burst), bucket.level + rate * (now - bucket.at))
            bucket.at = now
        return bucket
