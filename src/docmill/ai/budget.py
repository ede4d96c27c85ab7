"""What an organisation may spend: by calendar month and day, in UTC. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import assert_never

from docmill.model.ai_errors import BudgetExceeded
from docmill.model.errors import Deferred

IN_FLIGHT_DELAY = 2.0
"""Seconds until a call is tried again that only the reservations of others keep out: most will cost far less."""


class Span(StrEnum):
    """How long a budget lasts."""

    MONTH = "month"
    DAY = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One limit, in nano-dollars."""

    span: Span
    limit: int


def period(span: Span, at: datetime) -> str:
    """The name of the period: `2026-11` or `2026-11-15`."""
    return begins(span, at).strftime("%Y-%m" if span is Span.MONTH else "%Y-%m-%d")


def begins(span: Span, at: datetime) -> datetime:
    """The first moment of the period that `at` lies in."""
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match span:
        case Span.MONTH:
            return day.replace(day=1)
        case Span.DAY:
            return day
        case _:
            assert_never(span)


def check(budget: Budget, *, spent: int, reserved: int, most: int, now: datetime) -> None:
    """Raise unless a call that may cost up to `most` fits beside what is spent and reserved.

    What is spent does not come back, so a call that it keeps out has failed. What is reserved will mostly be given
    back, so a call that only reservations keep out is put off.
    """
    if spent + most > budget.limit:
        raise BudgetExceeded(
            f"This call may cost {usd(most)}, and {usd(spent)} of the {budget.span}'s {usd(budget.limit)} are spent. "
            f"Raise the setting ai.budget_{budget.span}, lower max_tokens, or wait until {_next(budget.span, now)} "
            "(UTC); then `docmill jobs rerun` the job.",
            span=str(budget.span),
        )
    if spent + reserved + most > budget.limit:
        raise Deferred(
            f"Calls on their way may use up the {budget.span}'s budget; this one waits for what they cost.",
            delay=IN_FLIGHT_DELAY,
        )


def usd(nanos: int) -> str:
    """An amount for people."""
    return f"${nanos / 1e9:,.2f}" if nanos >= 10_000_000 else f"${nanos / 1e9:.6f}"


def _next(span: Span, now: datetime) -> str:
    days = 32 if span is Span.MONTH else 1
    return begins(span, begins(span, now) + timedelta(days=days)).strftime("%Y-%m-%d")
