"""Chores that rest between two goes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Every:
    """Something that is done when so long has passed since it was begun last."""

    def __init__(self, rest: timedelta, chore: Callable[[datetime], object]) -> None:
        self._rest = rest
        self._chore = chore
        self._next = _LONG_AGO

    def __call__(self, now: datetime) -> None:
        if now >= self._next:
            self._next = now + self._rest
            self._chore(now)
