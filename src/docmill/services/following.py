"""Following jobs to their end by their events.

Events are read from the position reached, so a follower that was interrupted goes on where it stopped. The versions are
polled, not announced: workers keep quiet about steps they go on with themselves, and one indexed look at a few rows
every tenth of a second costs less than a message per step would.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Any, Protocol

from docmill.model.errors import DatabaseUnavailable
from docmill.model.statuses import JobStatus

SHORTEST = 0.05
LONGEST = 0.5
PATIENCE = 60.0
"""Seconds without a database until the follower gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """All that one transaction did to a job. `version` is the position to resume from."""

    job_id: str
    version: int
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPosition:
    """How far a job has come."""

    version: int
    status: JobStatus


class Followable(Protocol):
    """Where positions and events are read."""

    def positions(self, job_ids: Sequence[str]) -> Mapping[str, JobPosition]: ...

    def events(self, job_id: str, *, after: int = 0) -> Sequence[JobEvent]: ...


def wait(seconds: float) -> None:
    """How watchers pause between two looks."""
    Event().wait(seconds)


def follow(
    jobs: Followable, after: Mapping[str, int], *, pause: Callable[[float], object] = wait
) -> Iterator[JobEvent | None]:
    """Events of these jobs (id -> version already seen) until all have finished; None after every look.

    The None lets the caller redraw a clock. A database that is away for a while is waited for.
    """
    seen = dict(after)
    open_jobs = set(seen)
    interval, away = SHORTEST, 0.0
    while open_jobs:
        try:
            events = _look(jobs, seen, open_jobs)
            away = 0.0
        except DatabaseUnavailable:
            if away >= PATIENCE:
                raise
            events = []
            away += LONGEST
        yield from events
        yield None
        if open_jobs:
            interval = SHORTEST if events else min(interval * 1.5, LONGEST)
            pause(LONGEST if away else interval)


def _look(jobs: Followable, seen: dict[str, int], open_jobs: set[str]) -> list[JobEvent]:
    """What is new; jobs that have ended leave `open_jobs`."""
    found: list[JobEvent] = []
    reached = jobs.positions(sorted(open_jobs))
    open_jobs.intersection_update(reached)
    for job_id, position in reached.items():
        if position.version > seen[job_id]:
            news = jobs.events(job_id, after=seen[job_id])
            found += news
            seen[job_id] = max(position.version, *(event.version for event in news))
        # Newer events than the position tell of a rerun: then the end that was seen is not the end.
        if position.status.finished and seen[job_id] == position.version:
            open_jobs.discard(job_id)
    return sorted(found, key=lambda event: event.at)
