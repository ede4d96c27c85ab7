"""`decide` behind the driver's `System`: the engine's planning without any store."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from docmill.engine.decide import Decision, Transition, decide
from docmill.engine.events import Cancelled, Claimed, Crashed, Event, Freed, Rerun, Submitted
from docmill.engine.state import JobState, new_state
from docmill.model.statuses import StepStatus
from docmill.templates.plan import Plan
from docmill.testing.oracle import START
from docmill.testing.system import Lease, Report

Decide = Callable[[Plan, JobState, Sequence[Event], datetime], Decision]


class Decided(NamedTuple):
    """One batch that a job was given."""

    events: tuple[Event, ...]
    now: datetime
    decision: Decision


class PureSystem:
    """Jobs as bare states; every operation is one call of `decide`."""

    def __init__(self, decide: Decide = decide, now: datetime = START) -> None:
        self.now = now
        self.plans: dict[str, Plan] = {}
        self.states: dict[str, JobState] = {}
        self.log: dict[str, list[Decided]] = {}
        """Everything each job was given, accepted or not."""
        self._decide = decide

    def submit(self, job_id: str, plan: Plan, held: bool = False) -> None:
        self.plans[job_id] = plan
        self.states[job_id] = new_state(len(plan.steps))
        self.log[job_id] = []
        self._give(job_id, Submitted(held=held))

    def free(self, job_id: str) -> bool:
        return self._give(job_id, Freed())[0]

    def claim(self, worker: str, limit: int, job_id: str | None = None) -> Sequence[Lease]:
        leases: list[Lease] = []
        for job in self.states if job_id is None else [job_id]:
            for position in range(len(self.plans[job].steps)):
                # Whether a step may be had, due time included, is for `decide` to say.
                if len(leases) < limit and self._give(job, Claimed(position=position, worker=worker))[0]:
                    leases.append(Lease(job, position, self.states[job].steps[position].epoch))
        return leases

    def report(self, reports: Sequence[Report]) -> Sequence[bool]:
        """Each job's share of the batch is folded at once, as the completion transaction does."""
        answers: dict[int, bool] = {}
        for job_id in dict.fromkeys(report.job_id for report in reports):
            share = [index for index, report in enumerate(reports) if report.job_id == job_id]
            accepted = self._give(job_id, *[reports[index].event for index in share])
            answers.update(zip(share, accepted, strict=True))
        return [answers[index] for index in range(len(reports))]

    def sweep(self, worker: str) -> Sequence[Lease]:
        lost = [
            Lease(job_id, position, step.epoch)
            for job_id, state in self.states.items()
            for position, step in enumerate(state.steps)
            if step.status is StepStatus.IN_PROGRESS and step.worker == worker
        ]
        for lease in lost:
            self._give(lease.job_id, Crashed(position=lease.position, epoch=lease.epoch))
        return lost

    def cancel(self, job_id: str) -> bool:
        return self._give(job_id, Cancelled())[0]

    def rerun(self, job_id: str, positions: frozenset[int], keep_checkpoints: bool, held: bool = False) -> bool:
        return self._give(job_id, Rerun(positions=positions, keep_checkpoints=keep_checkpoints, held=held))[0]

    def snapshot(self, job_id: str) -> JobState:
        return self.states[job_id]

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def transitions(self) -> Sequence[Transition]:
        """Every transition so far, of all jobs."""
        return [t for batches in self.log.values() for batch in batches for t in batch.decision.transitions]

    def _give(self, job_id: str, *events: Event) -> tuple[bool, ...]:
        decision = self._decide(self.plans[job_id], self.states[job_id], events, self.now)
        self.states[job_id] = decision.state
        self.log[job_id].append(Decided(events, self.now, decision))
        return decision.accepted
