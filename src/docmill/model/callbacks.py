"""Words of callbacks: what became of an answer that an outside executor sent."""

from enum import StrEnum


class CallbackStatus(StrEnum):
    """What a callback says of its step."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    IN_PROGRESS = "IN_PROGRESS"
    """Progress: noted, moves nothing."""


class CallbackOutcome(StrEnum):
    """Every callback is stored as `received` and ends as one of the others; only `applied` moved its step."""

    RECEIVED = "received"
    """Stored and not yet acted on: its step is still being sent out, or its receiver died."""
    APPLIED = "applied"
    NOTED = "noted"
    """A progress report, which moves nothing."""
    DUPLICATE = "duplicate"
    """The step had its answer already."""
    LATE = "late"
    """The attempt it answers is over: retried, timed out, cancelled."""
    UNKNOWN = "unknown"
    """No such job or step."""
    REFUSED = "refused"
    """The token is not that of this step, or the payload makes no sense."""
