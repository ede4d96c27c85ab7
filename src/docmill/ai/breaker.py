"""The breaker of one model: after too many failures in a row nobody asks, until one probe has found it well. Pure.

closed --more failures in a row than the threshold--> open --its time--> half open: exactly one probe
half open --probe well--> closed        half open --probe failed--> open
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import assert_never

from docmill.model.ai import BreakerState

FAILURES = 5
"""More than this many failures in a row open it, unless the settings say otherwise."""
OPEN_SECONDS = 60.0
"""How long it stays open, unless the settings say otherwise."""
_LOOK_AGAIN = 5.0
"""Seconds after which to come back while a probe is on its way: most answers take no longer."""


class Health(Enum):
    """What a call says about its provider."""

    WELL = auto()
    """It answered, whatever it said."""
    ILL = auto()
    """Unreachable, too slow, overloaded."""
    UNKNOWN = auto()
    """The call ended before anybody could tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """How it stands."""

    state: BreakerState = BreakerState.CLOSED
    failures: int = 0
    """In a row."""
    opened_at: datetime | None = None
    probe_until: datetime | None = None
    """Until then the probe may take; it also names the probe, so that no other call speaks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The call may go ahead, as the probe if `probe` is set."""

    breaker: Breaker
    probe: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Not now; come back after `delay` seconds."""

    delay: float


def admit(
    breaker: Breaker, *, now: datetime, probe_for: float, open_seconds: float = OPEN_SECONDS
) -> Admitted | Refused:
    """Whether a call may go ahead. `probe_for`: seconds after which a silent probe is given up for dead."""
    match breaker.state:
        case BreakerState.CLOSED:
            return Admitted(breaker=breaker)
        case BreakerState.OPEN:
            assert breaker.opened_at is not None
            left = open_seconds - (now - breaker.opened_at).total_seconds()
            if left > 0 and not _set_back(breaker, now, open_seconds):
                return Refused(delay=left)
        case BreakerState.HALF_OPEN:
            assert breaker.probe_until is not None
            left = (breaker.probe_until - now).total_seconds()
            if left > 0 and not _set_back(breaker, now, open_seconds):
                return Refused(delay=min(left, _LOOK_AGAIN))
        case _:
            assert_never(breaker.state)
    probe = now + timedelta(seconds=probe_for)
    return Admitted(breaker=replace(breaker, state=BreakerState.HALF_OPEN, probe_until=probe), probe=probe)


def _set_back(breaker: Breaker, now: datetime, open_seconds: float) -> bool:
    """Whether the clock was set back since it opened: then nobody knows how long to wait, and a probe finds out.

    Well back: `now` may have been read a little before another process opened it.
    """
    return breaker.opened_at is not None and now < breaker.opened_at - timedelta(seconds=open_seconds)


def report(
    breaker: Breaker, health: Health, *, now: datetime, probe: datetime | None, threshold: int = FAILURES
) -> Breaker:
    """The breaker after a call. Once it is not closed only its probe counts: stragglers know nothing newer."""
    match breaker.state:
        case BreakerState.CLOSED:
            return _count(breaker, health, now, threshold)
        case BreakerState.OPEN:
            return breaker
        case BreakerState.HALF_OPEN:
            return _judge(breaker, health, now) if probe == breaker.probe_until else breaker
        case _:
            assert_never(breaker.state)


def _count(breaker: Breaker, health: Health, now: datetime, threshold: int) -> Breaker:
    match health:
        case Health.WELL:
            return Breaker()
        case Health.UNKNOWN:
            return breaker
        case Health.ILL:
            failures = breaker.failures + 1
            if failures > threshold:
                return Breaker(state=BreakerState.OPEN, failures=failures, opened_at=now)
            return replace(breaker, failures=failures)
        case _:
            assert_never(health)


def _judge(breaker: Breaker, health: Health, now: datetime) -> Breaker:
    match health:
        case Health.WELL:
            return Breaker()
        case Health.ILL:
            return Breaker(state=BreakerState.OPEN, failures=breaker.failures + 1, opened_at=now)
        case Health.UNKNOWN:
            # It found nothing out; the next caller probes instead.
            return replace(breaker, probe_until=now)
        case _:
            assert_never(health)
