"""Words of processing issues: how bad, and where they stand; how steps raise them and hear of their resolutions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from docmill.model.errors import PermanentError


class IssueSeverity(StrEnum):
    """How bad it is, mildest first."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class IssueAction(StrEnum):
    """What the waiting step does when its issue is resolved."""

    CONTINUE = "continue"
    RETRY = "retry"
    FAIL = "fail"


class IssueStatus(StrEnum):
    """`withdrawn`: the job went on or ended without an answer, and the question has lost its point."""

    OPEN = "open"
    RESOLVED = "resolved"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """Something a person should look at. A blocking one makes its step wait until it is resolved."""

    code: str
    """Stable and machine-readable, such as `total_mismatch`: lists can be searched for it."""
    title: str
    severity: str = "error"
    """`info`, `warning`, `error` or `critical`."""
    blocking: bool = False
    details: Mapping[str, object] = field(default_factory=dict)
    """What helps to decide: JSON-able."""
    answer_schema: Mapping[str, object] | None = None
    """JSON Schema of the data a resolution must bring; no data counts as null. Only for a blocking issue."""
    assigned_to: str | None = None

    def __post_init__(self) -> None:
        if not all(isinstance(text, str) and text for text in (self.code, self.title)):
            raise PermanentError(f"Issue {self.code!r}: code and title are texts, and not empty.")
        if self.severity not in list(IssueSeverity):
            known = ", ".join(IssueSeverity)
            raise PermanentError(f"Issue {self.code!r}: severity is one of {known}, not {self.severity!r}.")
        if not isinstance(self.assigned_to, str | None) or not isinstance(self.details, Mapping):
            raise PermanentError(f"Issue {self.code!r}: assigned_to is a text, details is a mapping.")
        if self.answer_schema is not None and not self.blocking:
            raise PermanentError(f"Issue {self.code!r}: nobody waits for the answer of one that does not block.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How a person resolved an issue of this step."""

    code: str
    """Of the issue."""
    action: str
    """`continue`, `retry` or `fail`."""
    data: object
    """What the person gave; None if nothing."""
    by: str | None
    note: str | None
