"""The oracle: many jobs in memory, each nothing but the list of operations it accepted.

It answers like a store (`docmill.testing.system.System`) so that any store can be compared with it, but keeps no status
anywhere: every answer is recomputed from the whole history (`docmill.testing.facts`).
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from docmill.engine.events import (
    Answered,
    Cancelled,
    Claimed,
    Completed,
    Crashed,
    Event,
    Failed,
    Freed,
    Reopened,
    Rerun,
    StepEvent,
    Submitted,
    Suspended,
)
from docmill.engine.state import JobState, StepState
from docmill.model.statuses import StepStatus
from docmill.templates.plan import Plan
from docmill.testing.facts import Entry, Facts
from docmill.testing.system import Lease, Report

START = datetime(2024, 1, 1, tzinfo=UTC)
"""When the world of a test begins, unless it says otherwise."""


class _Job:
    """One job's plan and history; the facts are kept only until the next entry."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.history: list[Entry] = []
        self._facts: Facts | None = None

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            self._facts = Facts(self.plan, self.history)
        return self._facts

    def record(self, entry: Entry) -> None:
        self.history.append(entry)
        self._facts = None


class Oracle:
    """Says what is right. Its own clock moves only by `advance`."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now
        self._jobs: dict[str, _Job] = {}

    def create(self, job_id: str, plan: Plan) -> None:
        """A job before its submission took effect; `submit` does both."""
        if job_id in self._jobs:
            raise ValueError(f"job {job_id} exists")
        self._jobs[job_id] = _Job(plan)

    def submit(self, job_id: str, plan: Plan, held: bool = False) -> None:
        """A new job of this plan; held: until `free`."""
        self.create(job_id, plan)
        self.offer(job_id, Submitted(held=held))

    def free(self, job_id: str) -> bool:
        """There is room for the job; False if it did not wait for any."""
        return self.offer(job_id, Freed())

    def claim(self, worker: str, limit: int, job_id: str | None = None) -> Sequence[Lease]:
        """Up to `limit` due steps, of one job or of any, oldest job first."""
        wanted = [lease for lease in self.claimable() if job_id in (None, lease.job_id)][:limit]
        for lease in wanted:
            self.offer(lease.job_id, Claimed(position=lease.position, worker=worker))
        return wanted

    def report(self, reports: Sequence[Report]) -> Sequence[bool]:
        """One answer per report: whether it was accepted."""
        return [self.offer(job_id, event) for job_id, event in reports]

    def sweep(self, worker: str) -> Sequence[Lease]:
        """The worker is dead; the leases it lost."""
        lost = [lease for lease in self.running() if self.step(lease).worker == worker]
        for lease in lost:
            self.offer(lease.job_id, Crashed(position=lease.position, epoch=lease.epoch))
        return lost

    def cancel(self, job_id: str) -> bool:
        """End the job now; False if it had ended."""
        return self.offer(job_id, Cancelled())

    def rerun(self, job_id: str, positions: frozenset[int], keep_checkpoints: bool, held: bool = False) -> bool:
        """Begin a new run of a finished job; False if it has not finished."""
        return self.offer(job_id, Rerun(positions=positions, keep_checkpoints=keep_checkpoints, held=held))

    def snapshot(self, job_id: str) -> JobState:
        """The job as it must look now."""
        return self._jobs[job_id].facts.state

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    @property
    def jobs(self) -> Sequence[str]:
        """Job ids in order of submission."""
        return list(self._jobs)

    def plan(self, job_id: str) -> Plan:
        return self._jobs[job_id].plan

    def history(self, job_id: str) -> Sequence[Entry]:
        """Everything the job accepted, in order."""
        return tuple(self._jobs[job_id].history)

    def progress(self, job_id: str) -> float:
        """Settled steps over all steps."""
        job = self._jobs[job_id]
        return len(job.facts.settled) / len(job.plan.steps)

    def step(self, lease: Lease) -> StepState:
        return self.snapshot(lease.job_id).steps[lease.position]

    def claimable(self) -> Sequence[Lease]:
        """Every step that may be claimed now, with the epoch the claim will give it."""
        return [
            Lease(job_id, position, step.epoch + 1)
            for job_id, position, step in self._in(StepStatus.READY)
            if step.due_at is None or step.due_at <= self.now
        ]

    def running(self) -> Sequence[Lease]:
        return [Lease(job_id, position, step.epoch) for job_id, position, step in self._in(StepStatus.IN_PROGRESS)]

    def waiting(self) -> Sequence[Lease]:
        return [Lease(job_id, position, step.epoch) for job_id, position, step in self._in(StepStatus.WAITING)]

    def next_due(self) -> datetime | None:
        """When the next ready step becomes due, if none is due now but some will be."""
        later = [step.due_at for _, _, step in self._in(StepStatus.READY) if step.due_at and step.due_at > self.now]
        return min(later, default=None)

    def _in(self, status: StepStatus) -> list[tuple[str, int, StepState]]:
        return [
            (job_id, position, step)
            for job_id, job in self._jobs.items()
            for position, step in enumerate(job.facts.state.steps)
            if step.status is status
        ]

    def offer(self, job_id: str, event: Event) -> bool:
        """One operation; whether it is accepted. Only what has effect enters the history."""
        job = self._jobs[job_id]
        match event:
            case Submitted():
                if job.facts.submitted is None:
                    job.record(Entry(event=event, now=self.now))
                return True
            case Freed():
                held = job.facts.state.held
                if held:
                    job.record(Entry(event=event, now=self.now))
                return held
            case Claimed():
                allowed = event.position in {c.position for c in self.claimable() if c.job_id == job_id}
                if allowed:
                    job.record(Entry(event=event, now=self.now))
                return allowed
            case Cancelled():
                return self._end(job, event)
            case Rerun():
                return self._begin_again(job, event)
            case _:
                return self._report(job, event)

    def _end(self, job: _Job, event: Cancelled) -> bool:
        if job.facts.state.status.finished:
            return False
        open_steps = frozenset(range(len(job.plan.steps))) - job.facts.settled
        job.record(Entry(event=event, now=self.now, touched=open_steps))
        return True

    def _begin_again(self, job: _Job, event: Rerun) -> bool:
        if not job.facts.state.status.finished:
            return False
        job.record(Entry(event=event, now=self.now, touched=job.facts.reset_by(event.positions)))
        return True

    def _report(self, job: _Job, event: StepEvent) -> bool:
        """The fence, then who may still speak: the worker of a running step, whoever answers a waiting one."""
        step = job.facts.state.steps[event.position]
        if event.epoch != step.epoch:
            return False
        answer = isinstance(event, Answered | Reopened)
        answers = step.status is StepStatus.WAITING and (answer or isinstance(event, Completed | Failed))
        if answers or (step.status is StepStatus.IN_PROGRESS and not answer):
            job.record(Entry(event=event, now=self.now))
            return True
        # Said before and still true: no news, but no lost lease either.
        return (step.status is StepStatus.COMPLETED and isinstance(event, Completed)) or (
            step.status is StepStatus.WAITING and isinstance(event, Suspended)
        )
