"""The live picture of jobs being watched: folded from a first look and the events since. Draws nothing itself."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docmill.model.statuses import JobStatus, StepStatus

if TYPE_CHECKING:
    from docmill.services.following import JobEvent
    from docmill.services.jobs import JobView


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChange:
    """One step went from one status to another."""

    step_key: str
    before: str
    after: str
    reason: str | None


class BoardJob:
    """One watched job as far as its events have been heard."""

    def __init__(self, view: "JobView") -> None:
        self.id = view.summary.id
        self.template = view.summary.template
        self.entity = f"{view.summary.entity_type}:{view.summary.entity_id}"
        self.status = view.summary.status
        self.steps: dict[str, StepStatus] = {step.step_key: step.status for step in view.steps}
        self.errors: dict[str, Mapping[str, object]] = {step.step_key: step.error for step in view.steps if step.error}

    def hear(self, event: "JobEvent") -> None:
        """Take an event in; one heard before changes nothing for the worse."""
        for change in step_changes(event):
            self.steps[change.step_key] = StepStatus(change.after)
            if change.after != StepStatus.FAILED and change.reason != "retry":
                self.errors.pop(change.step_key, None)
        self.errors.update(event.data.get("errors", {}))
        if became := job_change(event):
            self.status = JobStatus(became[1])

    @property
    def settled(self) -> int:
        return sum(status.settled for status in self.steps.values())

    @property
    def running(self) -> list[str]:
        """Keys of the steps that run now."""
        return [key for key, status in self.steps.items() if status is StepStatus.IN_PROGRESS]


class Board:
    """All watched jobs."""

    def __init__(self, views: "Sequence[JobView]") -> None:
        self.jobs = {view.summary.id: BoardJob(view) for view in views}

    def begin(self, views: "Sequence[JobView]") -> None:
        """Nothing to add: the board shows how things stand."""

    def hear(self, event: "JobEvent") -> None:
        """Take an event in."""
        self.jobs[event.job_id].hear(event)

    def counts(self) -> Counter[JobStatus]:
        """How many jobs have which status."""
        return Counter(job.status for job in self.jobs.values())

    def liveliest(self, limit: int) -> list[BoardJob]:
        """At most `limit` jobs, those that a watcher wants to see first: running, then failed, waiting, the rest."""
        order = [JobStatus.IN_PROGRESS, JobStatus.FAILED, JobStatus.PARTIAL_SUCCESS, JobStatus.WAITING]
        ranks = {status: rank for rank, status in enumerate(order)}
        return sorted(self.jobs.values(), key=lambda job: ranks.get(job.status, len(order)))[:limit]


def step_changes(event: "JobEvent") -> list[StepChange]:
    """What the event did to steps, in order."""
    return [
        StepChange(step_key=key, before=before, after=after, reason=rest[0] if rest else None)
        for key, before, after, *rest in event.data.get("steps", [])
    ]


def job_change(event: "JobEvent") -> tuple[str, str] | None:
    """The job's status before and after, if it changed."""
    change: Any = event.data.get("job")
    return (change[0], change[1]) if change else None
