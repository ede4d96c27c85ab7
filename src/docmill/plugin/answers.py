"""What steps and processors give back, beside plain results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from docmill.model.issues import Issue


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A job to submit when this step completes: once, in the same transaction. The step does not wait for it."""

    template: str
    entity_type: str
    entity_id: str
    title: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Returned by a step that now waits for a callback or a person; without an answer in time the attempt fails."""

    within: timedelta | float | None = None
    """How long: a timedelta, or seconds. None: as the template says (`answer_within`), else 30 days."""
    note: Mapping[str, object] = field(default_factory=dict)
    """What to remember while waiting, such as the id the other side gave."""
    issue: Issue | None = None
    """A question to a person; if it blocks, the data of its resolution is the result of the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A recovery strategy's answer: another attempt, if one is left, however the failure was meant."""

    after: timedelta | float | None = None
    """How long to wait, in seconds if a number; None: as the template says."""
    model: Mapping[str, object] = field(default_factory=dict)
    """Model settings to change in the next attempt."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """A recovery strategy's answer: complete the step with this result, which is checked and applied as any other."""

    result: object


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A recovery strategy's answer: the step has failed, whatever attempts are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What `ApplyContext.reconcile` did to a set of rows."""

    written: int
    """Rows that are new or were changed."""
    unchanged: int
    """Rows that were there already, as they are."""
    removed: int
    """Rows that are no longer produced and that nobody can be using."""
    kept: tuple[str, ...]
    """Keys of rows that are no longer produced and stay, for something may be using them. A later call removes them."""
    busy: bool
    """Whether they stay because another job of the entity is active, and not because a foreign key points at them."""
