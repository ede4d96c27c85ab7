"""Words of processing issues: how bad, and where they stand."""

from enum import StrEnum


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
