"""Following jobs: every event once and in order, until the end, through gaps and outages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from docmill.model.errors import DatabaseUnavailable
from docmill.model.statuses import JobStatus
from docmill.services.following import LONGEST, PATIENCE, JobEvent, JobPosition, follow

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Told:
    """Jobs whose story goes on each time the follower pauses."""

    story: list[Callable[["Told"], None]]
    state: dict[str, JobPosition] = field(default_factory=dict)
    past: list[JobEvent] = field(default_factory=list)
    away: bool = False
    pauses: list[float] = field(default_factory=list)

    def happen(self, job_id: str, status: JobStatus) -> None:
        version = self.state[job_id].version + 1 if job_id in self.state else 1
        self.state[job_id] = JobPosition(version=version, status=status)
        at = START + timedelta(seconds=len(self.past))
        self.past.append(JobEvent(job_id=job_id, version=version, at=at, data={}))

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        assert len(self.pauses) < 1000, "the follower does not end"
        if self.story:
            self.story.pop(0)(self)

    def positions(self, job_ids: Sequence[str]) -> Mapping[str, JobPosition]:
        if self.away:
            raise DatabaseUnavailable("gone")
        return {job_id: self.state[job_id] for job_id in job_ids if job_id in self.state}

    def events(self, job_id: str, *, after: int = 0) -> Sequence[JobEvent]:
        return [event for event in self.past if event.job_id == job_id and event.version > after]


def heard(told: Told, after: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(event.job_id, event.version) for event in follow(told, after, pause=told.pause) if event is not None]


def test_every_event_is_heard_once_until_all_jobs_have_finished() -> None:
    told = Told(
        [
            lambda told: told.happen("a", JobStatus.IN_PROGRESS),
            lambda told: told.happen("b", JobStatus.COMPLETED),
            lambda told: None,
            lambda told: told.happen("a", JobStatus.FAILED),
        ]
    )
    told.happen("a", JobStatus.PENDING)
    told.happen("b", JobStatus.PENDING)
    assert heard(told, {"a": 0, "b": 1}) == [("a", 1), ("a", 2), ("b", 2), ("a", 3)]


def test_what_was_heard_before_is_not_told_again() -> None:
    told = Told([])
    told.happen("a", JobStatus.PENDING)
    told.happen("a", JobStatus.COMPLETED)
    assert heard(told, {"a": 2}) == []
    assert heard(told, {"a": 1}) == [("a", 2)]


def test_a_job_that_is_gone_is_not_waited_for() -> None:
    assert heard(Told([]), {"a": 3}) == []


def test_an_end_followed_by_a_rerun_is_not_the_end() -> None:
    class Overtaken(Told):
        def events(self, job_id: str, *, after: int = 0) -> Sequence[JobEvent]:
            if self.state["a"].version == 1:
                self.happen("a", JobStatus.PENDING)  # The rerun falls between the two reads.
            return super().events(job_id, after=after)

    told = Overtaken([lambda told: told.happen("a", JobStatus.COMPLETED)])
    told.happen("a", JobStatus.COMPLETED)
    assert heard(told, {"a": 0}) == [("a", 1), ("a", 2), ("a", 3)]


def test_a_database_that_comes_back_is_waited_for() -> None:
    told = Told(
        [lambda told: setattr(told, "away", True), lambda told: None, lambda told: setattr(told, "away", False)]
    )
    told.story.append(lambda told: told.happen("a", JobStatus.COMPLETED))
    told.happen("a", JobStatus.PENDING)
    assert heard(told, {"a": 1}) == [("a", 2)]


def test_a_database_that_stays_away_is_given_up() -> None:
    told = Told([], away=True)
    with pytest.raises(DatabaseUnavailable):
        heard(told, {"a": 1})
    assert len(told.pauses) == PATIENCE / LONGEST


def test_pauses_grow_while_nothing_happens_and_stay_bounded() -> None:
    told = Told([lambda told: None] * 10)
    told.story.append(lambda told: told.happen("a", JobStatus.COMPLETED))
    told.happen("a", JobStatus.PENDING)
    heard(told, {"a": 1})
    assert told.pauses == sorted(told.pauses)
    assert told.pauses[-1] == LONGEST
