"""One job played through `decide` by step keys: for tests that read like a story."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypedDict

from docmill.engine.decide import Transition, decide
from docmill.engine.events import (
    Cancelled,
    Checkpointed,
    Claimed,
    Completed,
    Crashed,
    Deferred,
    Event,
    Failed,
    Released,
    Rerun,
    Skipped,
    Submitted,
    Suspended,
)
from docmill.engine.state import JobState, StepState, new_state
from docmill.model.statuses import JobStatus, StepStatus
from docmill.templates.plan import Plan
from docmill.testing.oracle import START


class _Lease(TypedDict):
    position: int
    epoch: int


class Play:
    """A submitted job. Every method that reports does so under the step's current epoch unless told otherwise."""

    def __init__(self, plan: Plan, now: datetime = START) -> None:
        self.plan = plan
        self.now = now
        self.state: JobState = new_state(len(plan.steps))
        self.transitions: list[Transition] = []
        self.give(Submitted())

    def give(self, event: Event) -> bool:
        """Any event at all; whether it was accepted."""
        decision = decide(self.plan, self.state, [event], self.now)
        self.state = decision.state
        self.transitions += decision.transitions
        return decision.accepted[0]

    def step(self, key: str) -> StepState:
        return self.state.steps[self.plan.positions[key]]

    def job(self) -> JobStatus:
        """Where the job stands. A method, so that type checkers do not take its first answer for its last."""
        return self.state.status

    @property
    def statuses(self) -> Mapping[str, StepStatus]:
        return {planned.step_key: step.status for planned, step in zip(self.plan.steps, self.state.steps, strict=True)}

    def due_in(self, key: str) -> float:
        """Seconds until the ready step may be claimed."""
        due_at = self.step(key).due_at
        assert due_at is not None, f"{key} is not ready"
        return (due_at - self.now).total_seconds()

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def claim(self, *keys: str, worker: str = "ann") -> bool:
        """All of these; whether every one could be had."""
        claims = [self.give(Claimed(position=self.plan.positions[key], worker=worker)) for key in keys]
        return all(claims)

    def checkpoint(self, key: str) -> bool:
        return self.give(Checkpointed(**self._lease(key), result="1"))

    def complete(self, key: str, *, epoch: int | None = None, paid: bool = False) -> bool:
        return self.give(Completed(**self._lease(key, epoch), paid=paid))

    def fail(
        self,
        key: str,
        *,
        epoch: int | None = None,
        permanent: bool = False,
        retry_after: float | None = None,
        jitter: float = 0.0,
        result: str | None = None,
    ) -> bool:
        return self.give(
            Failed(
                **self._lease(key, epoch),
                error='"no luck"',
                permanent=permanent,
                retry_after=retry_after,
                jitter=jitter,
                result=result,
            )
        )

    def skip(self, key: str) -> bool:
        return self.give(Skipped(**self._lease(key)))

    def defer(self, key: str, seconds: float) -> bool:
        return self.give(Deferred(**self._lease(key), until=self.now + timedelta(seconds=seconds)))

    def suspend(self, key: str, deadline: datetime | None = None) -> bool:
        return self.give(Suspended(**self._lease(key), deadline=deadline))

    def crash(self, key: str) -> bool:
        return self.give(Crashed(**self._lease(key)))

    def release(self, key: str) -> bool:
        return self.give(Released(**self._lease(key)))

    def cancel(self) -> bool:
        return self.give(Cancelled())

    def rerun(self, *keys: str, keep_checkpoints: bool = True) -> bool:
        positions = frozenset(self.plan.positions[key] for key in keys)
        return self.give(Rerun(positions=positions, keep_checkpoints=keep_checkpoints))

    # Whole attempts in one word.

    def run(self, *keys: str) -> None:
        """Each step claimed and completed."""
        for key in keys:
            assert self.claim(key), f"{key} is {self.step(key)}"
            assert self.complete(key)

    def break_(self, *keys: str) -> None:
        """Each step claimed and failed for good."""
        for key in keys:
            assert self.claim(key), f"{key} is {self.step(key)}"
            assert self.fail(key, permanent=True)

    def _lease(self, key: str, epoch: int | None = None) -> _Lease:
        return {"position": self.plan.positions[key], "epoch": self.step(key).epoch if epoch is None else epoch}
