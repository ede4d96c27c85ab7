"""What goes into one transaction of the store and what comes out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import orjson

from docmill.engine.events import Completed, Event, Skipped
from docmill.engine.issues import NewIssue
from docmill.engine.sql.rows import JobHead
from docmill.engine.state import StepState
from docmill.model.callbacks import CallbackOutcome
from docmill.model.errors import AlreadyActive
from docmill.model.ids import new_id
from docmill.templates.plan import Plan, PlanStep


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to submit. Give an `id` of your own (see `derived_id`) and submitting twice is submitting once."""

    template_id: str
    org_id: str
    entity_type: str
    entity_id: str
    id: str = field(default_factory=new_id)
    priority: int = 0
    """Higher goes first."""
    title: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    file_type: str | None = None
    created_by: str | None = None
    parent_job_id: str | None = None
    family: str = ""
    """At most one active job per entity and family; empty: the name of its template."""
    batch_id: str | None = None
    held: bool = False
    """Held back from the start. Jobs of a new batch are without being told, once it is full."""
    unless_active: bool = False
    """Not submitted, rather than refused, when the entity has an active job of this family."""


MOST_NAMED = 10
"""How many of many culprits an error names; its details have all."""


def already_active(refused: Sequence[tuple[NewJob, str]]) -> AlreadyActive:
    """Why these jobs cannot be submitted: each with the job that its entity has already."""
    new, job_id = refused[0]
    if len(refused) == 1:
        message = f"{new.entity_type} {new.entity_id} has an active job of this template already: {job_id}."
    else:
        named = ", ".join(f"{new.entity_type} {new.entity_id} ({other})" for new, other in refused[:MOST_NAMED])
        more = f" and {len(refused) - MOST_NAMED:,} more" if len(refused) > MOST_NAMED else ""
        message = f"{len(refused):,} entities have an active job of this template already: {named}{more}."
    return AlreadyActive(
        f"{message} Wait for the end or cancel first.", job_id=job_id, job_ids=[other for _, other in refused]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBatch:
    """A batch to open with the jobs that name it: the first `max_active` of them begin, the others are held."""

    id: str
    org_id: str
    title: str = ""
    max_active: int = 10
    metadata: Mapping[str, object] = field(default_factory=dict)
    created_by: str | None = None
    digest: str = ""
    """Tells whether a batch of this id is the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One thing that happened to one job."""

    job_id: str
    event: Event
    follow_ups: tuple[NewJob, ...] = ()
    """Jobs to submit with it, if it is accepted."""
    issues: tuple[NewIssue, ...] = ()
    """Issues to open with it, if it is accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A finished part of a running step, kept so that it is never computed again."""

    job_id: str
    position: int
    epoch: int
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueClaim:
    """How many steps a worker has room for in one queue."""

    queue: str
    limit: int
    turn: int = 0
    """Whose turn it is among the organisations that wait; raised by the worker from claim to claim."""


@dataclass(frozen=True, slots=True)
class StepRun:
    """A claimed step: all that its execution starts from. The epoch is the right to report on it."""

    job: JobHead
    run: int
    plan: Plan
    step: PlanStep
    state: StepState
    queue: str
    """Where its slot belongs."""
    on_the_spot: bool
    """Claimed in the transaction that made it ready."""
    results: Mapping[str, str | None] | None = None
    """What earlier steps came to when it was claimed, by key, as JSON text; None: the database is to be asked."""

    @property
    def key(self) -> tuple[str, int, int]:
        """What identifies this right: job, position, epoch."""
        return (self.job.id, self.step.position, self.state.epoch)


def parsed(results: Mapping[str, str | None]) -> dict[str, object]:
    """Results by step, from their JSON text."""
    return {key: None if text is None else orjson.loads(text) for key, text in results.items()}


class AtOnce(Protocol):
    """Ends steps that wait for nobody in the transaction that makes them ready."""

    def __call__(self, run: StepRun, results: Callable[[], Mapping[str, object]]) -> Completed | Skipped | None:
        """How the step ends that is claimed this moment, given the results of its job; None: it is to be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One transaction's worth of work."""

    reports: Sequence[Report] = ()
    parts: Sequence[Part] = ()
    submissions: Sequence[NewJob] = ()
    batches: Sequence[NewBatch] = ()
    """Batches to open; their jobs are among the submissions."""
    look_at: Sequence[str] = ()
    """Batches that may have room for jobs they hold back."""
    answer: Sequence[tuple[str, int]] = ()
    """Steps, by job and position, for which callbacks were received that nobody has acted on."""
    claims: Sequence[QueueClaim] = ()
    hold: Sequence[str] = ()
    """Jobs to lock besides those that are spoken of: to decide under their lock what to report."""
    worker: str | None = None
    check: bool = True
    """Look first which submissions exist already. Off: they are new as far as we know; if not, the commit fails."""
    wait: bool = True
    """Wait for the locks of reported jobs. The sweeper does not: what somebody holds is being looked after."""
    reserve: Callable[[str], bool] | None = None
    """Asked for each step that became ready: is there a slot in its queue here? Then it is claimed on the spot."""
    at_once: "AtOnce | None" = None
    """Asked for each step that became ready: what it comes to, if that follows from what its job holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the transaction did."""

    accepted: tuple[bool, ...]
    """For each report."""
    parts_accepted: tuple[bool, ...]
    started: tuple[StepRun, ...]
    """Steps claimed, in the queues' order or on the spot."""
    left_ready: Mapping[str, int]
    """Queue -> how many steps are ready there that nobody claimed: others may want to know."""
    due: tuple[tuple[str, datetime], ...]
    """(queue, when) of steps that will be due later."""
    exhausted: frozenset[str]
    """Queues that had fewer due steps than asked for."""
    finished: tuple[str, ...]
    """Jobs that came to their end."""
    submitted: int
    callbacks: Mapping[str, CallbackOutcome] = field(default_factory=dict)
    """What became of callbacks that were acted on here, by their id."""
