"""What can happen to a job. Events carry everything a decision needs, randomness included; payloads ride along unread.

`result` and `error` are JSON text ready to be stored; `decide` never looks into them.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The job was created: whatever has no predecessor becomes ready, unless its batch holds it back."""

    held: bool = False
    without: frozenset[int] = frozenset()
    """Steps that this job has no need of; they are settled from the start."""
    computed: frozenset[int] = frozenset()
    """Steps whose result is stored from the start; only its apply remains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freed:
    """The job's batch has room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A worker takes a ready step."""

    position: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed:
    """The result of the running step is stored; from now on only its apply can be repeated."""

    position: int
    epoch: int
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The step is done: reported by its worker, by a callback or by a person."""

    position: int
    epoch: int
    result: str | None = None
    paid: bool = False
    """The result cost money: a rerun uses it again unless told otherwise."""
    error: str | None = None
    """The failure that a recovery strategy made up for with this result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The attempt failed. `jitter` in [0, 1) was drawn where the failure was seen."""

    position: int
    epoch: int
    error: str
    permanent: bool = False
    retry_after: float | None = None
    jitter: float = 0.0
    result: str | None = None
    """Set when the compute succeeded and the apply failed: the result is kept and only apply is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """The step's condition does not hold."""

    position: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """Refused by breaker, bucket or `not_before`: due again later, no attempt used."""

    position: int
    epoch: int
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    """The step now waits for a person or a callback, answered under the same epoch."""

    position: int
    epoch: int
    deadline: datetime | None
    result: str | None = None
    paid: bool = False
    """The result cost money: should nobody answer, it is there for the next attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The waiting step has its answer, from outside or from a person; what remains is to apply it."""

    position: int
    epoch: int
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopened:
    """Whoever was asked wants the waiting step to run again, whatever was stored; no attempt is used."""

    position: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The worker that ran the step died; seen by the sweeper under this epoch."""

    position: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The worker gives the step back unharmed (drain)."""

    position: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """Somebody wants the job to end now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """Somebody wants these steps (and what follows from them) run again; begins a new run."""

    positions: frozenset[int]
    keep_checkpoints: bool = True
    held: bool = False
    """Its batch decides when the new run begins."""
    after_run: int | None = None
    """Only while this is its newest run, so that whoever repeats the wish does not begin yet another one."""


StepEvent = (
    Checkpointed | Completed | Failed | Skipped | Deferred | Suspended | Answered | Reopened | Crashed | Released
)
"""Events fenced by epoch."""

Event = Submitted | Freed | Claimed | StepEvent | Cancelled | Rerun
