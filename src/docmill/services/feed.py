"""What happens in an organisation, as it happens, from any moment on.

Events are ordered by the moment of their transaction, and a transaction that took longer than others is committed after
later ones were seen. So whoever follows looks back a little with every look, now and then as far as a transaction may
stand, and leaves out what it has told already; after an interruption so much is told once more. Every event has an id
by which they are known.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import select, tuple_

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import job_events
from docmill.model.errors import InvalidInput
from docmill.model.ids import is_id

OVERLAP = timedelta(seconds=5)
"""How far back every look goes: nearly all transactions are shorter."""
_FAR = 8
"""Every so many looks go back as far as any transaction may have stood."""
_AT_ONCE = 500
_E = job_events.c
_ID = re.compile(r"(\d{1,17})-([0-9a-f-]{36})-(\d{1,9})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    """All that one transaction did to a job."""

    id: str
    """To go on from here: moment, job and version."""
    job_id: str
    version: int
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A point in what happens."""

    at: datetime
    job_id: str
    version: int

    def __str__(self) -> str:
        return f"{(self.at - _EPOCH) // timedelta(microseconds=1)}-{self.job_id}-{self.version}"

    @classmethod
    def read(cls, text: str, said: str = "after") -> "Place":
        """The place that an event's id names; InvalidInput, where it was said, for what is none."""
        found = _ID.fullmatch(text)
        if found is None or not is_id(found[2]):
            raise InvalidInput(
                "This is not the id of an event; send that of the last one you have seen, or none.",
                field=said,
            )
        try:
            at = _EPOCH + timedelta(microseconds=int(found[1]))
        except OverflowError:
            raise InvalidInput(
                "This is not the id of an event; send that of the last one you have seen.", field=said
            ) from None
        return cls(at, found[2], int(found[3]))


class Feed:
    """The events of one organisation."""

    def __init__(self, database: Database, org_id: str) -> None:
        self._database = database.scoped(org_id)
        self._org_id = org_id
        self.overlap = timedelta(seconds=database.patience) + OVERLAP
        """How late an event may come: the server ends a transaction that stands idle for longer."""

    def now(self) -> datetime:
        """The moment from which somebody follows who wants nothing of what was."""
        with self._database.read() as connection:
            return database_now(connection)

    def since(self, begin: datetime | Place, limit: int) -> Sequence[FeedEvent]:
        """What happened from this moment on, or behind this place, in order."""
        order = (_E.at, _E.job_id, _E.version)
        query = select(job_events).where(_E.org_id == self._org_id).order_by(*order).limit(limit)
        if isinstance(begin, Place):
            # The moment by itself too: the index knows no more than that.
            behind = tuple_(*order) > (begin.at, begin.job_id, begin.version)
            query = query.where(_E.at >= begin.at, behind)
        else:
            query = query.where(_E.at >= begin)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [
            FeedEvent(
                id=str(Place(row.at, row.job_id, row.version)),
                job_id=row.job_id,
                version=row.version,
                at=row.at,
                data=row.data,
            )
            for row in rows
        ]


class Follower:
    """One who follows: tells each event once."""

    def __init__(self, feed: Feed, after: Place | None, *, start: datetime) -> None:
        self._feed = feed
        self._floor = start if after is None else after.at - feed.overlap
        self._last = self._floor
        self._from: datetime | Place = self._floor
        self._told = _Told()
        if after is not None:
            self._told.add(after.at, [str(after)])
        self._looks = 0

    def news(self) -> Sequence[FeedEvent]:
        """What has not been told yet; empty: nothing for now."""
        while True:
            found = self._feed.since(self._from, _AT_ONCE)
            fresh = self._unheard(found)
            if found:
                self._last = max(self._last, found[-1].at)
            # No look ever goes back farther.
            farthest = max(self._floor, self._last - self._feed.overlap)
            self._told.forget(farthest)
            if len(found) < _AT_ONCE:
                # The end is reached; the next look begins before it.
                self._looks += 1
                self._from = farthest if self._looks % _FAR == 0 else max(self._floor, self._last - OVERLAP)
                return fresh
            # More than one look holds: go on behind its end, also in the midst of a moment. What is committed before
            # that meanwhile is heard by looking back.
            self._from = Place(found[-1].at, found[-1].job_id, found[-1].version)
            if fresh:
                return fresh

    def _unheard(self, found: Sequence[FeedEvent]) -> list[FeedEvent]:
        new: set[str] = set()
        for at, events in groupby(found, attrgetter("at")):
            new |= self._told.add(at, [event.id for event in events])
        return [event for event in found if event.id in new]


class _Told:
    """Which events were told: of each eight bytes, for a batch is thousands of them in one moment."""

    def __init__(self) -> None:
        self._marks: dict[datetime, array[int]] = {}

    def add(self, at: datetime, names: Sequence[str]) -> frozenset[str]:
        """Those of one moment that were not told before; from now on they are."""
        known = self._marks.get(at, array("Q"))
        new = {mark: name for name in names if not _holds(known, mark := _mark(name))}
        if new:
            self._marks[at] = array("Q", sorted((*known, *new)))
        return frozenset(new.values())

    def forget(self, before: datetime) -> None:
        """What happened before this moment is not asked for again."""
        for at in [at for at in self._marks if at < before]:
            del self._marks[at]


def _mark(name: str) -> int:
    """That two in the same moment have the same one is not to be expected in the life of the universe."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


def _holds(marks: "array[int]", mark: int) -> bool:
    place = bisect_left(marks, mark)
    return place < len(marks) and marks[place] == mark
