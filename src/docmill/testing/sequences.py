"""A program: what to do to a system, as plain data that Hypothesis can draw, shrink and print.

A choice does not name a step; it names a kind of deed and a few numbers. `docmill.testing.driver` resolves them against
what is possible at that moment, so that most choices mean something whatever came before.
"""

from dataclasses import dataclass
from enum import StrEnum

from docmill.templates.plan import Plan


class Deed(StrEnum):
    """What a choice does."""

    SUBMIT = "submit"
    FREE = "free"
    """A job that was held back gets room in its batch."""
    CLAIM = "claim"
    CHECKPOINT = "checkpoint"
    COMPLETE = "complete"
    JOIN = "join"
    """Several running steps complete in one batch."""
    FAIL = "fail"
    SKIP = "skip"
    DEFER = "defer"
    SUSPEND = "suspend"
    ANSWER = "answer"
    RELEASE = "release"
    SWEEP = "sweep"
    STALE = "stale"
    """A report under an epoch that is not, or no longer, the step's."""
    RESEND = "resend"
    """The last batch once more: its commit's answer was lost."""
    CANCEL = "cancel"
    RERUN = "rerun"
    TICK = "tick"


WEIGHTS = {
    Deed.SUBMIT: 2,
    Deed.FREE: 2,
    Deed.CLAIM: 12,
    Deed.CHECKPOINT: 2,
    Deed.COMPLETE: 8,
    Deed.JOIN: 4,
    Deed.FAIL: 6,
    Deed.SKIP: 2,
    Deed.DEFER: 1,
    Deed.SUSPEND: 4,
    Deed.ANSWER: 4,
    Deed.RELEASE: 1,
    Deed.SWEEP: 3,
    Deed.STALE: 3,
    Deed.RESEND: 2,
    Deed.CANCEL: 3,
    Deed.RERUN: 3,
    Deed.TICK: 3,
}
"""How often each deed is drawn, roughly as often as it does something interesting."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One deed. `pick` says to which of the candidates, `detail` in which variant."""

    deed: Deed
    pick: int = 0
    detail: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """The plans that jobs are submitted from, in turn, and what happens to them."""

    plans: tuple[Plan, ...]
    choices: tuple[Choice, ...]
