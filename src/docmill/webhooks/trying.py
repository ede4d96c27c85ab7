"""What becomes of a message after an attempt: delivered, tried again at a time, or given up. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from docmill.model.webhooks import DeliveryStatus
from docmill.webhooks.posting import Reply

WAITS = tuple(timedelta(minutes=minutes) for minutes in (0.1, 1, 5, 30, 120, 300, 600, 840, 1200, 1440))
"""After each attempt that failed; then it is given up: after about three days."""
JITTER = 0.2
"""A wait is longer or shorter by up to this part, so that what failed together does not come back together."""
MOST_WAIT = timedelta(days=1)
"""However long a receiver asks to be left alone."""
_GONE = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a message stands after an attempt."""

    status: DeliveryStatus
    due_at: datetime | None
    """When it is tried again; None once it has come to its end."""


def taken(reply: Reply) -> bool:
    """Whether the receiver has the message."""
    return 200 <= reply.status < 300


def gone(reply: Reply | None) -> bool:
    """Whether the receiver says that it is no more, and never will be again."""
    return reply is not None and reply.status == _GONE


def after_attempt(tries: int, reply: Reply | None, *, chance: float, now: datetime) -> Standing:
    """Where a message stands after so many tries, the last of them answered so (None: not at all).

    `chance`, from 0 to 1, is the place of the wait between its shortest and its longest.
    """
    if reply is not None and taken(reply):
        return Standing(status=DeliveryStatus.DELIVERED, due_at=None)
    if tries > len(WAITS) or gone(reply):
        return Standing(status=DeliveryStatus.FAILED, due_at=None)
    wait = WAITS[tries - 1] * (1 + JITTER * (2 * chance - 1))
    asked = timedelta(seconds=(reply.retry_seconds(now) if reply is not None else None) or 0)
    return Standing(status=DeliveryStatus.PENDING, due_at=now + max(wait, min(MOST_WAIT, asked)))
