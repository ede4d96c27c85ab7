"""Rows as the hot SQL moves them, and the protocol both dialects implement."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from docmill.engine.sql.statements import Statement
from docmill.engine.state import StepState

CLEAR = ""
"""Written instead of JSON text: set the column to NULL. None means: leave it as it is."""


class JobHead(NamedTuple):
    """What never changes about a job while it runs."""

    id: str
    org_id: str
    template_id: str
    entity_type: str
    entity_id: str
    priority: int
    title: str
    metadata: dict[str, object]
    file_type: str | None
    created_by: str | None
    created_at: datetime
    family: str = ""
    """One active job per entity and family: the template's name, whatever its version."""
    batch_id: str | None = None


class JobRow(NamedTuple):
    """A locked job: its fixed part and what decisions move."""

    head: JobHead
    status: str
    run: int
    version: int
    held: bool
    chain: bytes


class StepRow(NamedTuple):
    """One stored step as a decision sees it."""

    job_id: str
    position: int
    state: StepState


class NewJobRow(NamedTuple):
    """A job to insert, already planned."""

    head: JobHead
    parent_job_id: str | None
    status: str
    version: int
    settled: int
    total: int
    held: bool
    chain: bytes


class JobWrite(NamedTuple):
    """A job's new standing; `version` is the new one, the row must hold the one before it."""

    id: str
    version: int
    status: str
    run: int
    settled: int
    held: bool
    chain: bytes


class StepWrite(NamedTuple):
    """A step's new standing, conditional on the epoch it had."""

    job_id: str
    position: int
    org_id: str
    step_key: str
    queue: str
    rank: int
    state: StepState
    old_epoch: int
    result: str | None
    error: str | None


class EventWrite(NamedTuple):
    """One event row: all transitions that one transaction made to one job."""

    job_id: str
    version: int
    org_id: str
    data: str
    hash: bytes


class PartWrite(NamedTuple):
    """One sub-checkpoint of a running step."""

    job_id: str
    position: int
    name: str
    org_id: str
    value: str


class Candidate(NamedTuple):
    """A ready step that a claim may take, its job locked."""

    job_id: str
    version: int
    position: int


class Beginning(NamedTuple):
    """The database's clock, fixed for the transaction; jobs locked in id order; who waits in the queues."""

    now: datetime
    locked: dict[str, int]
    """Job id -> version."""
    waiting: dict[str, list[tuple[str, int]]]
    """Queue -> the (organisation, rank) pairs that have a ready step there."""


class HotSql(Protocol):
    """The engine's own statements. Each runs in the caller's transaction; none commits."""

    def transaction(self) -> AbstractContextManager[None]:
        """A write transaction of nothing but these statements, with as few round trips as the driver can do."""

    def begin(self, ids: Sequence[str], *, wait: bool, queues: Sequence[str] = ()) -> Beginning:
        """What a transaction starts from, in one round trip.

        Jobs that do not exist are left out; without `wait`, so are those that others hold. What waits in a queue is
        found without reading the queue itself.
        """

    def load(self, ids: Sequence[str]) -> tuple[list[JobRow], list[StepRow]]:
        """Jobs that are already locked, and all their stored steps, without results."""

    def query(self, statement: Statement, parameters: Mapping[str, object]) -> list[Any]:
        """The rows of a statement that is not hot."""

    def run_each(self, statement: Statement, rows: Sequence[Mapping[str, object]]) -> int:
        """Run it once for each row of parameters; how many rows it changed in all."""

    def load_template(self, template_id: str) -> dict[str, object] | None:
        """The stored document of a template version."""

    def lock_candidates(self, queue: str, org_id: str, rank: int, now: datetime, limit: int) -> list[Candidate]:
        """Due steps in order, their jobs locked without waiting; those others hold are passed over."""

    def existing_jobs(self, ids: Sequence[str]) -> set[str]:
        """Which of these ids are taken."""

    def writing(self) -> AbstractContextManager[None]:
        """The writes below may be sent together; on leaving, each changed as many rows as planned, or WrongCount."""

    def share_entities(self, slots: Sequence[int]) -> None:
        """Until the commit nobody removes rows of these entities; waits for who is doing so (see `entities`)."""

    def insert_jobs(self, rows: Sequence[NewJobRow], now: datetime) -> None: ...

    def insert_steps(self, rows: Sequence[StepWrite], now: datetime) -> None: ...

    def update_steps(self, rows: Sequence[StepWrite], now: datetime) -> None: ...

    def update_jobs(self, rows: Sequence[JobWrite], now: datetime) -> None: ...

    def insert_events(self, rows: Sequence[EventWrite], now: datetime) -> None: ...

    def upsert_parts(self, rows: Sequence[PartWrite], now: datetime) -> None: ...

    def delete_parts(self, steps: Sequence[tuple[str, int]]) -> None: ...

    def running_steps(self, worker: str, limit: int) -> list[tuple[str, int, int]]:
        """(job, position, epoch) of steps in progress under this worker."""

    def orphaned_steps(self, limit: int) -> list[tuple[str, int, int]]:
        """(job, position, epoch) of steps in progress under a worker that is not alive."""

    def overdue_steps(self, now: datetime, limit: int) -> list[tuple[str, int, int]]:
        """(job, position, epoch) of waiting steps whose deadline has passed."""

    def end_silent(self, patience: float) -> int:
        """End sessions of ours whose process fell silent in the middle of a transaction; how many there were."""

    def next_due(self, queues: Sequence[str], now: datetime) -> datetime | None:
        """When the next ready step of these queues that is not yet due will be."""


class WrongCount(RuntimeError):
    """A conditional write under the job lock changed another number of rows than planned: a bug, rolled back."""
