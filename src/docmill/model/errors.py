"""One error base. Each public error has a stable code and a message that says what to do next."""

from collections.abc import Mapping


class DocmillError(Exception):
    """Something a person can act on.

    `code` is stable and machine-readable; the message names the thing and the remedy; `details` carries the rest.
    """

    code = "error"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, object] = details

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled on its way home from a child process; made anew without `__init__`, whose keywords nobody kept.
        return _revived, (type(self), self.args, self.__dict__)


def _revived(kind: type[DocmillError], args: tuple[object, ...], fields: dict[str, object]) -> DocmillError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class NotFound(DocmillError):
    """What was asked for does not exist (or belongs to another organisation)."""

    code = "not_found"


class Conflict(DocmillError):
    """The thing exists but its state does not allow what was asked."""

    code = "conflict"


class Forbidden(DocmillError):
    """Whoever acts is not allowed to do this; the message names the permission."""

    code = "forbidden"


class AlreadyActive(Conflict):
    """The entity has an active job of this template; there is at most one at a time."""

    code = "already_active"


class IdempotencyConflict(Conflict):
    """Another job was submitted under this id or idempotency key before; the message names what differs."""

    code = "idempotency_conflict"


class InvalidInput(DocmillError):
    """What was given is malformed; the message names field and remedy."""

    code = "invalid_input"


class PermanentError(DocmillError):
    """A failure that trying again cannot mend (unreadable PDF, bad schema, authentication): fails the step at once."""

    code = "permanent"


class RetryableError(DocmillError):
    """A failure worth another attempt; `retry_after` (seconds), if given, is honoured over the backoff."""

    code = "retryable"

    def __init__(self, message: str, *, retry_after: float | None = None, **details: object) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class Deferred(DocmillError):
    """Not now: a breaker or a rate limit refused. The step waits `delay` seconds and uses no attempt."""

    code = "deferred"

    def __init__(self, message: str, *, delay: float) -> None:
        super().__init__(message)
        self.delay = delay


class LeaseLost(DocmillError):
    """This worker no longer owns the step; whatever it computed is discarded."""

    code = "lease_lost"


class ExtraMissing(DocmillError):
    """A library is not installed that only some installations need; the message names the extra that brings it."""

    code = "extra_missing"


class DatabaseUnavailable(DocmillError):
    """The database cannot be reached; the message says which and how to check."""

    code = "database_unavailable"
