"""The token bucket of one provider, shared by all processes. Pure.

A caller that finds the bucket empty takes its token on credit and is told how long to wait for it: so waiting is fair,
nobody polls, and no slot is lost between one that looks too late and one that looks too early.
"""

from dataclasses import dataclass
from datetime import datetime

LONGEST_WAIT = 10.0
"""Seconds of credit. Who would have to wait longer is sent away, and holds no slot of its worker meanwhile."""
_JITTER = 1.0
"""Seconds that a clock may seem to run backwards without having been set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """How it stood at `updated_at`; below zero: that many callers wait for the tokens that will come."""

    tokens: float
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A token that is good in `wait` seconds."""

    bucket: Bucket
    wait: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """Too many wait already; come back after `delay` seconds."""

    delay: float


def take(bucket: Bucket | None, *, now: datetime, rate: float, burst: int) -> Taken | Full:
    """One token, refilled at `rate` per second up to `burst`. None: a bucket that nobody has used yet."""
    bucket = bucket or Bucket(tokens=float(burst), updated_at=now)
    elapsed = (now - bucket.updated_at).total_seconds()
    # A clock that was set back must not stop the refill until it has caught up; one that trembles earns nothing.
    updated_at = bucket.updated_at if -_JITTER < elapsed < 0 else now
    tokens = min(float(burst), bucket.tokens + max(0.0, elapsed) * rate) - 1.0
    wait = max(0.0, -tokens / rate)
    if wait > LONGEST_WAIT:
        return Full(delay=wait)
    return Taken(bucket=Bucket(tokens=tokens, updated_at=updated_at), wait=wait)
