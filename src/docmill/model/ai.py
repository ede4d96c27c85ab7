"""Words of the model gateway."""

from enum import StrEnum


class BreakerState(StrEnum):
    """`half_open`: one probe is on its way, everybody else waits for what it finds."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CallOutcome(StrEnum):
    """How a call to a model ended. Failed calls may have cost money too."""

    ANSWERED = "answered"
    FAILED = "failed"
