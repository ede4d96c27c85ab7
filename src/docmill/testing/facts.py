"""What the history of one job amounts to, worked out from scratch each time with plain sets.

This is the second opinion on `docmill.engine.decide`, written from the design's text (§5) and built the other way
round: `decide` carries a state forward event by event; here nothing is carried. The whole list of what was accepted is
read again and every status follows from *which* facts stand and *which came first*.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from docmill.engine.events import (
    Answered,
    Cancelled,
    Checkpointed,
    Claimed,
    Completed,
    Crashed,
    Deferred,
    Event,
    Failed,
    Freed,
    Released,
    Reopened,
    Rerun,
    Skipped,
    Submitted,
    Suspended,
)
from docmill.engine.state import JobState, StepState
from docmill.model.statuses import FailureAction, JobStatus, SkipReason, StepKind, StepStatus
from docmill.templates.plan import Plan, PlanStep

LONGEST_DELAY = 7 * 24 * 3600.0
"""No retry waits longer than a week. Written again here on purpose: the oracle does not look at `retry`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One accepted operation."""

    event: Event
    now: datetime
    touched: frozenset[int] = frozenset()
    """Cancelled: the steps it ended. Rerun: the steps it set back."""


class Phase(Enum):
    """Where a step stands by its own entries alone, before its neighbours are looked at."""

    FRESH = auto()
    """Never started in this life."""
    BETWEEN = auto()
    """Started before, between two attempts now."""
    RUNNING = auto()
    WAITING = auto()
    COMPLETED = auto()
    FAILED = auto()
    UNWANTED = auto()
    """Its condition did not hold."""
    CANCELLED = auto()


ENDED = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.UNWANTED, Phase.CANCELLED})

_PLAIN_STATUS = {
    Phase.RUNNING: StepStatus.IN_PROGRESS,
    Phase.WAITING: StepStatus.WAITING,
    Phase.COMPLETED: StepStatus.COMPLETED,
    Phase.FAILED: StepStatus.FAILED,
    Phase.UNWANTED: StepStatus.SKIPPED,
    Phase.CANCELLED: StepStatus.CANCELLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A step's own story since it was created or last set back."""

    begun: int
    """Index of the rerun that set it back, -1 for its first life."""
    entries: tuple[tuple[int, Entry], ...]
    phase: Phase

    @property
    def last(self) -> int:
        """Index of the newest entry."""
        return self.entries[-1][0] if self.entries else self.begun

    def count(self, kind: type[Event]) -> int:
        return sum(1 for _, entry in self.entries if isinstance(entry.event, kind))


def life_of(step: PlanStep, history: Sequence[Entry]) -> Life:
    """The entries that concern the step since its last reset, and where they leave it."""
    begun = max(
        (i for i, e in enumerate(history) if isinstance(e.event, Rerun) and step.position in e.touched), default=-1
    )
    own = tuple((i, e) for i, e in enumerate(history) if i > begun and _concerns(e, step.position))
    return Life(begun=begun, entries=own, phase=_phase(step, [e.event for _, e in own]))


def _concerns(entry: Entry, position: int) -> bool:
    match entry.event:
        case Submitted():
            return position in entry.event.without
        case Freed() | Rerun():
            return False
        case Cancelled():
            return position in entry.touched
        case event:
            return event.position == position


def _phase(step: PlanStep, events: Sequence[Event]) -> Phase:
    # A checkpoint changes what is stored, not where the step stands.
    moves = [event for event in events if not isinstance(event, Checkpointed)]
    if not moves:
        return Phase.FRESH
    match moves[-1]:
        case Claimed():
            return Phase.RUNNING
        case Suspended():
            return Phase.WAITING
        case Completed():
            return Phase.COMPLETED
        case Answered():
            # With a processor there is still something to do with the answer.
            return Phase.BETWEEN if step.processor else Phase.COMPLETED
        case Skipped() | Submitted():
            return Phase.UNWANTED
        case Cancelled():
            return Phase.CANCELLED
        case Failed(permanent=permanent):
            used = sum(1 for event in moves if isinstance(event, Failed))
            return Phase.FAILED if permanent or used >= step.max_attempts else Phase.BETWEEN
        case Crashed():
            died = sum(1 for event in moves if isinstance(event, Crashed))
            return Phase.FAILED if died >= step.max_crashes else Phase.BETWEEN
        case _:
            return Phase.BETWEEN


class Facts:
    """Everything that follows from a history; `state` is what a system under test must agree with."""

    def __init__(self, plan: Plan, history: Sequence[Entry]) -> None:
        self.plan = plan
        self.history = tuple(history)
        self.lives = [life_of(step, self.history) for step in plan.steps]
        # A rerun also sets a job going that was cancelled before its submission took effect.
        self.submitted = next((i for i, e in enumerate(self.history) if isinstance(e.event, Submitted | Rerun)), None)
        self.held = self._held()
        self.doom = self._doom()
        self.denied = self._denied()
        self.dropped = self._dropped()
        self.settled = frozenset(
            p for p, life in enumerate(self.lives) if life.phase in ENDED or p in self.denied or p in self.dropped
        )
        self.state = JobState(
            self._job_status(), tuple(self._step(step) for step in plan.steps), 1 + self._count(Rerun), self.held
        )

    def _count(self, kind: type[Event]) -> int:
        return sum(1 for entry in self.history if isinstance(entry.event, kind))

    def _held(self) -> bool:
        """Whether the last word on it was that the job must wait for room in its batch."""
        said = [e.event for e in self.history if isinstance(e.event, Submitted | Rerun | Freed | Cancelled)]
        return bool(said) and isinstance(said[-1], Submitted | Rerun) and said[-1].held

    def _fatal(self, position: int) -> bool:
        """A failure of this step fails the job: by its action, or because it is the finish step."""
        return position == self.plan.finish or self.plan.steps[position].on_failure is FailureAction.FAIL_JOB

    def _doom(self) -> int | None:
        """Index of the failure that sealed the job's fate."""
        return min(
            (life.last for p, life in enumerate(self.lives) if life.phase is Phase.FAILED and self._fatal(p)),
            default=None,
        )

    def _denied(self) -> dict[int, int]:
        """Steps that cannot run because something they rest on failed -> index of the entry that sealed it.

        The least fixpoint over direct dependencies, sweeping over all steps until nothing changes. The finish step is
        never denied. What was not denied before the job was doomed is dropped by the doom instead.
        """
        sealed: dict[int, int] = {}
        # Nothing follows from anything while the job is held.
        changed = not self.held
        while changed:
            changed = False
            for step in self.plan.steps:
                if step.position == self.plan.finish or self.lives[step.position].phase is not Phase.FRESH:
                    continue
                causes = [sealed[d] for d in step.depends_on if d in sealed]
                causes += [self.lives[d].last for d in step.depends_on if self._denies(d)]
                if causes and sealed.get(step.position) != min(causes):
                    sealed[step.position] = min(causes)
                    changed = True
        return {p: index for p, index in sealed.items() if self.doom is None or index < self.doom}

    def _denies(self, position: int) -> bool:
        failed = self.lives[position].phase is Phase.FAILED
        return failed and self.plan.steps[position].on_failure is FailureAction.SKIP_DEPENDENTS

    def _dropped(self) -> frozenset[int]:
        """Steps skipped because the job failed: whatever is not running, and questions to people."""
        if self.doom is None:
            return frozenset()
        idle = {p for p, life in enumerate(self.lives) if life.phase in (Phase.FRESH, Phase.BETWEEN)}
        asked = {
            p
            for p, life in enumerate(self.lives)
            if life.phase is Phase.WAITING and self.plan.steps[p].kind is not StepKind.EXTERNAL
        }
        return frozenset((idle | asked) - self.denied.keys())

    def _ready_since(self, position: int) -> int | None:
        """Index of the entry that made a fresh step ready: the last of all it had to wait for."""
        me = self.plan.steps[position]
        awaited = {s.position for s in self.plan.steps if s.execution_group < me.execution_group} | set(me.depends_on)
        if self.submitted is None or self.held or not awaited <= self.settled:
            return None
        freed = max((i for i, e in enumerate(self.history) if isinstance(e.event, Freed)), default=-1)
        ends = [max(self.denied[p], self.lives[p].begun) if p in self.denied else self.lives[p].last for p in awaited]
        return max([self.submitted, freed, self.lives[position].begun, *ends])

    def _due(self, step: PlanStep, entries: Sequence[tuple[int, Entry]]) -> datetime | None:
        """When the step may begin, or might when it began; one that was given back keeps its place in the queue."""
        if not entries:
            since = self._ready_since(step.position)
            return None if since is None else self.history[since].now + timedelta(seconds=step.delay)
        if isinstance(entries[-1][1].event, Claimed | Checkpointed | Crashed | Released):
            return self._due(step, entries[:-1])
        return _due_again(step, entries)

    def _step(self, step: PlanStep) -> StepState:
        position = step.position
        life = self.lives[position]
        blank = StepState(
            epoch=self._epoch(position),
            failures=life.count(Failed),
            crashes=life.count(Crashed),
            checkpointed=self._checkpointed(position),
        )
        if position in self.denied:
            return blank._replace(status=StepStatus.SKIPPED, reason=SkipReason.DEPENDENCY_FAILED)
        if position in self.dropped:
            return blank._replace(status=StepStatus.SKIPPED, reason=SkipReason.JOB_FAILED)
        if life.phase in (Phase.BETWEEN, Phase.FRESH):
            due_at = self._due(step, life.entries)
            return blank if due_at is None else blank._replace(status=StepStatus.READY, due_at=due_at)
        return blank._replace(
            status=_PLAIN_STATUS[life.phase],
            due_at=self._due(step, life.entries) if life.phase is Phase.RUNNING else None,
            worker=_worker(life) if life.phase is Phase.RUNNING else None,
            deadline=_deadline(life) if life.phase is Phase.WAITING else None,
            reason=SkipReason.CONDITION if life.phase is Phase.UNWANTED else None,
        )

    def _epoch(self, position: int) -> int:
        """One for every claim, sweep, cancel and reset there ever was."""
        return sum(
            1
            for entry in self.history
            if position in entry.touched
            or (isinstance(entry.event, Submitted) and position in entry.event.computed)
            or (isinstance(entry.event, Claimed | Crashed) and entry.event.position == position)
        )

    def _checkpointed(self, position: int) -> bool:
        """A result was stored since somebody last threw those of this step away."""
        thrown = max((i for i, e in enumerate(self.history) if _throws_result(e, position)), default=-1)
        return any(_stores_result(entry.event, position) for entry in self.history[thrown + 1 :])

    def _job_status(self) -> JobStatus:
        everything = set(range(len(self.plan.steps)))
        phases = {life.phase for p, life in enumerate(self.lives) if p not in self.settled}
        run = self.history[max((i for i, e in enumerate(self.history) if isinstance(e.event, Rerun)), default=0) :]
        if any(isinstance(entry.event, Cancelled) for entry in run):
            return JobStatus.CANCELLED
        if self.settled == everything:
            return self._verdict()
        if Phase.RUNNING in phases:
            return JobStatus.IN_PROGRESS
        begun = any(isinstance(entry.event, Claimed) for entry in run)
        claimable = Phase.BETWEEN in phases or any(
            self._ready_since(p) is not None
            for p, life in enumerate(self.lives)
            if p not in self.settled and life.phase is Phase.FRESH
        )
        if begun and not claimable and Phase.WAITING in phases:
            return JobStatus.WAITING
        return JobStatus.IN_PROGRESS if begun else JobStatus.PENDING

    def _verdict(self) -> JobStatus:
        """How a job that ran to its end came out.

        Skipped because of a failure counts as a failure, skipped by condition does not: the design says the latter
        explicitly, which only makes sense against the former.
        """
        if self.doom is not None:
            return JobStatus.FAILED
        work = set(range(self.plan.finish))
        failed = {p for p in work if self.lives[p].phase is Phase.FAILED}
        if not failed:
            return JobStatus.COMPLETED
        return JobStatus.FAILED if work == failed | self.denied.keys() else JobStatus.PARTIAL_SUCCESS

    def reset_by(self, positions: frozenset[int]) -> frozenset[int]:
        """What a rerun of these steps sets back.

        The steps named, the finish step, whatever ended only because the last run went wrong (cancelled, skipped for a
        failure), what was completed and then undone, the failures that doomed the job (or it would end again before the
        named steps start), and everything that rests on any of these.
        """
        wrong = {p for p, life in enumerate(self.lives) if life.phase is Phase.CANCELLED}
        fatal = {p for p, life in enumerate(self.lives) if life.phase is Phase.FAILED and self._fatal(p)}
        reset = set(positions) | {self.plan.finish} | wrong | fatal | self.denied.keys() | self.dropped
        if self.plan.compensate and self.state.status in (JobStatus.FAILED, JobStatus.CANCELLED):
            done = {p for p, life in enumerate(self.lives) if life.phase is Phase.COMPLETED}
            reset |= {p for p in done if self.plan.steps[p].compensation is not None}
        while True:
            more = {s.position for s in self.plan.steps if reset & set(s.depends_on)} - reset
            if not more:
                return frozenset(reset)
            reset |= more


def _throws_result(entry: Entry, position: int) -> bool:
    match entry.event:
        case Rerun():
            return not entry.event.keep_checkpoints and position in entry.touched
        case Reopened():
            return entry.event.position == position
        case _:
            return False


def _stores_result(event: Event, position: int) -> bool:
    match event:
        case Submitted():
            return position in event.computed
        case Checkpointed() | Answered():
            return event.position == position
        case Completed() | Suspended():
            return event.position == position and event.paid
        case Failed():
            return event.position == position and event.result is not None
        case _:
            return False


def _worker(life: Life) -> str:
    return [entry.event.worker for _, entry in life.entries if isinstance(entry.event, Claimed)][-1]


def _deadline(life: Life) -> datetime | None:
    return [entry.event.deadline for _, entry in life.entries if isinstance(entry.event, Suspended)][-1]


def _due_again(step: PlanStep, entries: Sequence[tuple[int, Entry]]) -> datetime:
    """When the next attempt may begin, by what ended the last one."""
    entry = entries[-1][1]
    match entry.event:
        case Deferred(until=until):
            return until
        case Answered() | Reopened():
            return entry.now
        case Failed(retry_after=None, jitter=jitter):
            # 10, 20, 40 seconds by default, doubled once per failure before this one, and up to half again.
            pause = step.backoff
            for _ in range(sum(1 for _, other in entries if isinstance(other.event, Failed)) - 1):
                pause = min(LONGEST_DELAY, pause * 2)
            return entry.now + timedelta(seconds=min(LONGEST_DELAY, pause * (1 + jitter / 2)))
        case Failed(retry_after=float() | int() as told):
            return entry.now + timedelta(seconds=min(LONGEST_DELAY, max(0.0, told)))
        case event:
            raise AssertionError(f"{event} does not leave a step between two attempts")
