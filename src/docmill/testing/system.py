"""What every system that runs jobs must offer to be compared with the oracle: a few named operations."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from docmill.engine.events import StepEvent
from docmill.engine.state import JobState
from docmill.templates.plan import Plan


class Lease(NamedTuple):
    """A step somebody holds, or held: the epoch says under which claim."""

    job_id: str
    position: int
    epoch: int


class Report(NamedTuple):
    """A fenced event on its way to a job."""

    job_id: str
    event: StepEvent


class System(Protocol):
    """What is tested. Job ids, the order of events and the clock (`advance` only) come from the driver.

    `claim` may choose among what is due, and may return fewer than `limit`, but not nothing while something is due.
    Waiting steps get no deadline or one far beyond the program's end, so a sweeper that expires waits finds none.
    """

    def submit(self, job_id: str, plan: Plan, held: bool = False) -> None: ...
    def free(self, job_id: str) -> bool: ...
    def claim(self, worker: str, limit: int, job_id: str | None = None) -> Sequence[Lease]: ...
    def report(self, reports: Sequence[Report]) -> Sequence[bool]: ...
    def sweep(self, worker: str) -> Sequence[Lease]: ...
    def cancel(self, job_id: str) -> bool: ...
    def rerun(self, job_id: str, positions: frozenset[int], keep_checkpoints: bool, held: bool = False) -> bool: ...
    def snapshot(self, job_id: str) -> JobState: ...
    def advance(self, seconds: float) -> None: ...
