"""What the engine knows of one job while it decides: no results, no texts, only what a decision can depend on."""

from datetime import datetime
from typing import NamedTuple

from docmill.model.statuses import JobStatus, SkipReason, StepStatus


class StepState(NamedTuple):
    """One step of a job. A named tuple rather than a dataclass: thousands are replaced each second.

    A step that was never touched has no row in the database and is this record's default.
    """

    status: StepStatus = StepStatus.PENDING
    epoch: int = 0
    """Raised by every claim, sweep, cancel and reset; a write that carries another epoch is void."""
    failures: int = 0
    """Failed attempts so far; the attempt that runs now is failures + 1."""
    crashes: int = 0
    checkpointed: bool = False
    """A result is stored and will not be computed again; only its apply remains."""
    worker: str | None = None
    due_at: datetime | None = None
    """READY: not to be claimed before. Kept while it runs: given back, it has its old place in the queue."""
    deadline: datetime | None = None
    """WAITING: answered by then, or failed."""
    reason: SkipReason | None = None

    @property
    def stored(self) -> bool:
        """Whether the database holds a row for this step."""
        return self.status is not StepStatus.PENDING or self.epoch > 0


class JobState(NamedTuple):
    """One job with all its steps, by position in its plan."""

    status: JobStatus
    steps: tuple[StepState, ...]
    run: int = 1
    """Raised by each manual retry; progress never falls within one run."""
    held: bool = False
    """Its batch has no room for it yet: nothing of it may become ready."""

    @property
    def settled(self) -> int:
        return sum(1 for step in self.steps if step.status.settled)


def new_state(step_count: int) -> JobState:
    """A job before anything happened to it."""
    return JobState(JobStatus.PENDING, (StepState(),) * step_count)
