"""What happens in an organisation, as it happens, from any moment on.

Events are ordered by the moment of their transaction, and a transaction that took longer than others is committed after
later ones were seen. So whoever follows looks back a little with every look, now and then as far as a transaction may
stand, and leaves out what it has told already; after an interruption so much is told once more. Every event has an id
by which they are known.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

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
    def read(cls, text: str) -> "Place":
        """The place that an event's id names; InvalidInput for what is none."""
        found = _ID.fullmatch(text)
        if found is None or not is_id(found[2]):
            raise InvalidInput(
                "This is not the id of an event; send that of the last one you have seen, or none.",
                field="header.last-event-id",
            )
        try:
            at = _EPOCH + timedelta(microseconds=int(found[1]))
        except OverflowError:
            raise InvalidInput("This is not the id of an event.", field="header.last-event-id") from None
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

    def since(self, at: datetime, limit: int) -> Sequence[FeedEvent]:
        """What happened from this moment on, in order."""
        query = select(job_events).where(_E.org_id == self._org_id, _E.at >= at)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(_E.at, _E.job_id, _E.version).limit(limit)).all()
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
        self._from = self._last = self._floor
        self._told: dict[str, datetime] = {} if after is None else {str(after): after.at}
        self._most = _AT_ONCE
        self._looks = 0

    def news(self) -> Sequence[FeedEvent]:
        """What has not been told yet; empty: nothing for now."""
        while True:
            found = self._feed.since(self._from, self._most)
            fresh = [event for event in found if event.id not in self._told]
            self._told |= {event.id: event.at for event in fresh}
            if found:
                self._last = max(self._last, found[-1].at)
            if len(found) < self._most:
                self._look_back()
                return fresh
            # More than one look holds: go on from its end. Were all of one moment, the next look is wider.
            self._most = _AT_ONCE if found[-1].at > self._from else 2 * self._most
            self._from = found[-1].at
            if fresh:
                return fresh

    def _look_back(self) -> None:
        """The end is reached; the next look begins before it."""
        self._most = _AT_ONCE
        self._looks += 1
        farthest = max(self._floor, self._last - self._feed.overlap)
        self._from = farthest if self._looks % _FAR == 0 else max(self._floor, self._last - OVERLAP)
        self._told = {name: at for name, at in self._told.items() if at >= farthest}
