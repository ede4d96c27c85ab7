"""Whoever follows what happens hears everything, in order, and goes on where they stopped."""

import tracemalloc
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import pytest
from sqlalchemy import insert

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import job_events
from docmill.model.errors import InvalidInput
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.services.feed import Feed, FeedEvent, Follower, Place


class Wire:
    """Events, written as transactions would."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.feed = Feed(self.database, DEFAULT_ORG)
        with self.database.scoped(DEFAULT_ORG).read() as connection:
            self.now = database_now(connection)

    def happen(self, at: datetime, version: int = 1, job_id: str | None = None) -> str:
        job = job_id or new_id()
        row = {"job_id": job, "version": version, "org_id": DEFAULT_ORG, "at": at, "data": {}, "hash": b""}
        with self.database.scoped(DEFAULT_ORG).write() as connection:
            connection.execute(insert(job_events), [row])
        return job


@pytest.fixture
def wire(database_url: str) -> Iterator[Wire]:
    found = Wire(database_url)
    yield found
    found.database.close()


def test_an_event_that_commits_late_is_heard_all_the_same_and_once(wire: Wire) -> None:
    follower = Follower(wire.feed, None, start=wire.now)
    second = wire.happen(wire.now + timedelta(seconds=2))
    assert [event.job_id for event in follower.news()] == [second]
    late = wire.happen(wire.now + timedelta(seconds=1))
    assert [event.job_id for event in follower.news()] == [late]
    assert not follower.news()


def test_an_event_of_a_transaction_that_stood_long_is_heard_too(wire: Wire) -> None:
    """However much happened meanwhile: the server bears a transaction that stands for `patience` seconds."""
    follower = Follower(wire.feed, None, start=wire.now - timedelta(hours=1))
    busy = [wire.happen(wire.now - timedelta(seconds=40 - each)) for each in range(41)]
    assert [event.job_id for event in follower.news()] == busy
    late = wire.happen(wire.now - timedelta(seconds=wire.database.patience - 1))
    assert [event.job_id for _ in range(16) for event in follower.news()] == [late]
    again = Follower(wire.feed, Place.read(wire.feed.since(wire.now, 1)[0].id), start=wire.now)
    assert late in [event.job_id for event in again.news()]


def test_what_commits_late_behind_a_full_look_is_heard(wire: Wire) -> None:
    rows = [
        {"job_id": new_id(), "version": 1, "org_id": DEFAULT_ORG, "at": at, "data": {}, "hash": b""}
        for at in (wire.now + timedelta(milliseconds=each) for each in range(1200))
    ]
    with wire.database.scoped(DEFAULT_ORG).write() as connection:
        connection.execute(insert(job_events), rows)
    follower = Follower(wire.feed, None, start=wire.now)
    assert sum(len(follower.news()) for _ in range(4)) == len(rows)
    late = wire.happen(wire.now + timedelta(milliseconds=1))
    assert [event.job_id for _ in range(16) for event in follower.news()] == [late]


def test_more_than_one_look_holds_is_heard_in_order(wire: Wire) -> None:
    job = new_id()
    rows = [
        {
            "job_id": job,
            "version": version,
            "org_id": DEFAULT_ORG,
            # Many at the same moment, as one large transaction leaves them.
            "at": wire.now + timedelta(milliseconds=version // 700),
            "data": {},
            "hash": b"",
        }
        for version in range(1, 2001)
    ]
    with wire.database.scoped(DEFAULT_ORG).write() as connection:
        connection.execute(insert(job_events), rows)
    follower = Follower(wire.feed, None, start=wire.now)
    heard: list[int] = []
    for _ in range(20):
        heard += [event.version for event in follower.news()]
    assert heard == list(range(1, 2001))


class Looks(Feed):
    """How many events each look has brought."""

    def __init__(self, database: Database, org_id: str) -> None:
        super().__init__(database, org_id)
        self.sizes: list[int] = []

    def since(self, begin: datetime | Place, limit: int) -> Sequence[FeedEvent]:
        found = super().since(begin, limit)
        self.sizes.append(len(found))
        return found


def test_a_moment_of_many_looks_is_heard_once_in_order_and_little_of_it_is_kept(wire: Wire) -> None:
    """As a batch leaves it: thousands of jobs in one transaction."""
    count, earlier, late = 6000, new_id(), "00000000-0000-7000-8000-000000000000"
    at = wire.now + timedelta(seconds=1)
    rows = [
        {"job_id": new_id(), "version": 1, "org_id": DEFAULT_ORG, "at": at, "data": {}, "hash": b""}
        for _ in range(count)
    ]
    wire.happen(wire.now, job_id=earlier)
    with wire.database.scoped(DEFAULT_ORG).write() as connection:
        connection.execute(insert(job_events), rows)
    feed = Looks(wire.database, DEFAULT_ORG)
    follower = Follower(feed, None, start=wire.now)
    heard = [event.job_id for event in follower.news()]
    tracemalloc.start()
    try:
        for _ in range(6):
            heard += [event.job_id for event in follower.news()]
        # Of the same moment, sorted before all that was heard, and committed after it.
        wire.happen(at, job_id=late)
        for _ in range(6):
            heard += [event.job_id for event in follower.news()]
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert heard == [earlier, *sorted(str(row["job_id"]) for row in rows)]
    # Then the one that came late, by the next look back, and nothing twice.
    assert [event.job_id for _ in range(16) for event in follower.news()] == [late]
    assert max(feed.sizes) <= 500
    # What was heard is kept by this test, and counts.
    assert kept < 1_000_000
    assert most < 2_000_000


def test_what_was_told_long_ago_is_forgotten_on_the_way_not_at_the_end(wire: Wire) -> None:
    rows = [
        {"job_id": new_id(), "version": 1, "org_id": DEFAULT_ORG, "at": at, "data": {}, "hash": b""}
        for at in (wire.now + timedelta(seconds=each) for each in range(1200))
    ]
    with wire.database.scoped(DEFAULT_ORG).write() as connection:
        connection.execute(insert(job_events), rows)
    follower = Follower(wire.feed, None, start=wire.now)
    assert len(follower.news()) == 500
    assert len(follower._told._marks) <= wire.feed.overlap.total_seconds() + 1
    assert sum(len(follower.news()) for _ in range(4)) == 700


def test_after_an_interruption_nothing_is_missing(wire: Wire) -> None:
    moments = [wire.now + timedelta(seconds=each) for each in range(10)]
    jobs = [wire.happen(at) for at in moments]
    follower = Follower(wire.feed, None, start=wire.now)
    heard = follower.news()
    again = Follower(wire.feed, Place.read(heard[4].id), start=wire.now)
    told = [event.job_id for event in again.news()]
    assert set(jobs[5:]) <= set(told)
    # What comes twice is of the last seconds, and not the last event itself.
    assert heard[4].job_id not in told
    repeated = [event for event in heard[:4] if event.job_id in told]
    assert all(event.at >= heard[4].at - wire.feed.overlap for event in repeated)


@pytest.mark.parametrize("text", ["", "x", "1-2-3", "9" * 40, f"1-{'x' * 36}-1"])
def test_what_is_no_id_of_an_event_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Place.read(text)
