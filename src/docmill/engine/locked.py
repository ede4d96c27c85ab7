"""A job under its lock: events are folded into it, and it says which rows to write."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, NamedTuple

import orjson

from docmill.engine.decide import SUSPECT_CRASHES, Transition, decide
from docmill.engine.events import Answered, Checkpointed, Completed, Crashed, Event, Failed, Rerun, Suspended
from docmill.engine.sql.entities import entity_slot
from docmill.engine.sql.rows import CLEAR, EventWrite, JobHead, JobWrite, NewJobRow, StepWrite
from docmill.engine.state import JobState, StepState
from docmill.model.statuses import StepStatus
from docmill.templates.plan import Plan, PlanStep

SUSPECT = "!"
"""Suffix of the queue where steps wait that took several workers down: claimed one at a time."""

CHAIN_START = b""

_REMEMBERED = 8192
"""Characters of results that are remembered with a job: there may be thousands of jobs."""


class KnownJob(NamedTuple):
    """A job as a store last saw it: true for as long as the locked row still has this version."""

    version: int
    head: JobHead
    state: JobState
    chain: bytes
    results: Mapping[int, str] | None = None
    """All results that are stored, by position, as JSON text; None: not all are known, or they are too large."""


def queue_of(step: PlanStep, state: StepState) -> str:
    """Where the step waits when it is ready."""
    return step.pool + SUSPECT if state.crashes >= SUSPECT_CRASHES else step.pool


def chain_hash(previous: bytes, *, job_id: str, version: int, org_id: str, at: datetime, data: str) -> bytes:
    """The link that makes the events of a job a chain: it covers every column of its row."""
    record = f"{job_id}|{version}|{org_id}|{_in_utc(at)}|{data}"
    return hashlib.sha256(previous + record.encode()).digest()


@lru_cache(maxsize=64)
def _in_utc(at: datetime) -> str:
    """The same for all events of a transaction, which may be ten thousand."""
    return at.astimezone(UTC).isoformat()


def _is_answer(after: str, reason: str | None) -> bool:
    return after == "COMPLETED" or reason == "answered"


class LockedJob:
    """One job inside a transaction: where it stood, where it stands now, what to record."""

    __slots__ = ("cleared", "errors", "plan", "results", "state", "transitions", "was")

    def __init__(self, was: KnownJob, plan: Plan) -> None:
        self.was = was
        self.plan = plan
        self.state = was.state
        self.transitions: list[Transition] = []
        self.results: dict[int, str] = {}
        self.errors: dict[int, str] = {}
        self.cleared: list[int] = []
        """Positions whose parts are to be forgotten."""

    def fold(self, event: Event, now: datetime) -> bool:
        """Let the event happen; False when it came too late or under a lost lease."""
        state, transitions, accepted = decide(self.plan, self.state, (event,), now)
        if accepted[0]:
            self._keep_payload(event, state)
            self.state = state
            self.transitions.extend(transitions)
        return accepted[0]

    def _keep_payload(self, event: Event, after: JobState) -> None:
        match event:
            case Completed():
                # None: the result was checkpointed before.
                if event.result is not None:
                    self.results[event.position] = event.result
                self.errors[event.position] = event.error or CLEAR
            case Checkpointed() | Answered():
                self.results[event.position] = event.result
            case Suspended():
                if event.result is not None:
                    self.results[event.position] = event.result
            case Failed():
                self.errors[event.position] = event.error
                if event.result is not None:
                    self.results[event.position] = event.result
            case Crashed() if after.steps[event.position].status is StepStatus.FAILED:
                crashes = after.steps[event.position].crashes
                self.errors[event.position] = (
                    '{"code":"worker_died","message":"The worker died '
                    f'{crashes} times while running this step; it will not be tried again."}}'
                )
            case Rerun():
                self._reset(event, after)
            case _:
                pass

    def _reset(self, event: Rerun, after: JobState) -> None:
        for position, step in enumerate(after.steps):
            if step.epoch == self.state.steps[position].epoch:
                continue
            self.errors[position] = CLEAR
            if not step.checkpointed:
                self.results[position] = CLEAR
            if not event.keep_checkpoints:
                self.cleared.append(position)

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.state is not self.was.state and self.state != self.was.state

    @property
    def stored_results(self) -> dict[int, str] | None:
        """All results as they stand once this transaction commits; None: there are some that nobody here has read."""
        if self.was.results is None:
            return None
        return {position: text for position, text in {**self.was.results, **self.results}.items() if text != CLEAR}

    def completed(self, results: Mapping[int, str]) -> dict[str, str | None]:
        """Of all results those that later steps may see, by the key of their step."""
        return {
            planned.step_key: results.get(planned.position)
            for planned, step in zip(self.plan.steps, self.state.steps, strict=True)
            if step.status is StepStatus.COMPLETED
        }

    @property
    def entity_slot(self) -> int:
        """The number of the lock on the entity that the job is about."""
        head = self.was.head
        return entity_slot(head.org_id, head.entity_type, head.entity_id)

    @property
    def left_waiting(self) -> list[tuple[int, Literal["answered", "reopened"] | None]]:
        """Positions that no longer wait, each with what somebody answered: then its question is not put again."""
        return [
            (position, "reopened" if reason == "reopened" else "answered" if _is_answer(after, reason) else None)
            for position, before, after, reason in self.transitions
            if before == "WAITING" and position is not None
        ]

    @property
    def version(self) -> int:
        """The version the job has once this transaction commits."""
        return self.was.version + 1 if self.changed else self.was.version

    def fresh(self) -> Iterator[int]:
        """Positions that became ready in this transaction and still are."""
        steps = self.state.steps
        for position, _, after, _ in self.transitions:
            if position is not None and after == "READY" and steps[position].status is StepStatus.READY:
                yield position

    def step_writes(self) -> Iterator[tuple[bool, StepWrite]]:
        """Changed steps, each with whether its row is new."""
        head = self.was.head
        for planned, before, after in zip(self.plan.steps, self.was.state.steps, self.state.steps, strict=True):
            position = planned.position
            if after is before or (after == before and position not in self.results and position not in self.errors):
                continue
            yield (
                not before.stored,
                StepWrite(
                    head.id,
                    position,
                    head.org_id,
                    planned.step_key,
                    queue_of(planned, after),
                    -head.priority,
                    after,
                    before.epoch,
                    self.results.get(position),
                    self.errors.get(position),
                ),
            )

    def event_write(self, at: datetime) -> EventWrite:
        """All that happened to the job in this transaction, as one link of its chain."""
        head = self.was.head
        keys = self.plan.steps
        # From where the job stood before this transaction to where it stands now, whatever it passed through.
        was, now = self.was.state.status, self.state.status
        record: dict[str, object] = {} if was is now else {"job": [was, now]}
        steps = []
        for position, before, after, reason in self.transitions:
            if position is not None:
                entry = [keys[position].step_key, before, after]
                steps.append([*entry, reason] if reason else entry)
        record["steps"] = steps
        failed = {keys[position].step_key: orjson.Fragment(error) for position, error in self.errors.items() if error}
        if failed:
            record["errors"] = failed
        data = orjson.dumps(record).decode()
        version = self.version
        link = chain_hash(self.was.chain, job_id=head.id, version=version, org_id=head.org_id, at=at, data=data)
        return EventWrite(head.id, version, head.org_id, data, link)

    def job_write(self, chain: bytes) -> JobWrite:
        """The job's own row."""
        state = self.state
        return JobWrite(
            self.was.head.id, self.version, state.status._value_, state.run, state.settled, state.held, chain
        )

    def new_row(self, parent_job_id: str | None, chain: bytes) -> NewJobRow:
        """The job's row when it is new."""
        state = self.state
        return NewJobRow(
            self.was.head,
            parent_job_id,
            state.status._value_,
            self.version,
            state.settled,
            len(state.steps),
            state.held,
            chain,
        )

    def known(self, chain: bytes) -> KnownJob:
        """What may be remembered of the job once this is committed."""
        results = self.stored_results
        if results is not None and sum(map(len, results.values())) > _REMEMBERED:
            results = None
        return KnownJob(self.version, self.was.head, self.state, chain, results)
