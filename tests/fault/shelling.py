"""A batch under fire: its workers are killed again and again, and three independent accounts of its limit are kept.

The database is looked at all the while, each look at one committed state: what the jobs say, what the batch's row says,
and the limit must agree. The witness, outside, sees how many jobs are at work at once. And at the end the counters of
the row, which every transaction has carried forward under the row's lock, must have come out even: a single change
that was lost or doubled on the way would still be in them.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy import func, select

from docmill.db.tables import batches, jobs
from docmill.model.statuses import FINISHED_JOBS
from docmill.testing import fault_steps
from docmill.testing.fleet import PATIENCE, Fleet
from docmill.testing.verdict import examine
from docmill.testing.witness import Witness

LIMIT = 7
CAPACITY = "20"
"""Of each worker: more than the limit, so that whoever is let in too many begins at once."""
POINTS = ("batch.counted", "commit.inside", "commit.after")


@dataclass
class Shelling:
    """One batch, the deaths still to come, and what was seen amiss."""

    fleet: Fleet
    batch_id: str
    deaths: int
    deepest: int
    """Times that a worker passes its point at most, the time of its death included."""
    random: random.Random
    violations: dict[str, None] = field(default_factory=dict)
    """Each once, in the order in which they were seen."""
    armed: Iterator[str] = field(default_factory=lambda: itertools.cycle(POINTS))

    def start(self) -> None:
        """A worker that will die by itself, while deaths are still to come; then one that will not."""
        point = f"{next(self.armed)}:{self.random.randint(1, self.deepest)}:kill" if self.deaths > 0 else ""
        self.fleet.start(point, DOCMILL_POOLS__rule__CAPACITY=CAPACITY)

    def look(self) -> bool:
        """Count, restart who died, now and then kill one from outside; true at the end."""
        self.violations |= dict.fromkeys(accounts(self.fleet, self.batch_id))
        for _ in self.fleet.reap():
            self.deaths -= 1
            self.start()
        if self.deaths > 0 and self.fleet.workers and self.random.random() < 0.05:
            self.random.choice(self.fleet.workers).kill()
        return self.finished

    @property
    def finished(self) -> bool:
        return bool(self.fleet.scalar("select finished_at from processing_batches where id = :id", id=self.batch_id))


def shelled(
    fleet: Fleet,
    *,
    jobs: int,
    limit: int = LIMIT,
    deaths: int = 0,
    workers: int = 2,
    patience: float = PATIENCE,
    seed: int = 0,
) -> list[str]:
    """Run a batch to its end with so many deaths on the way; what was violated, an empty list is a pass."""
    fleet.register(fault_steps.BUSY)
    batch_id = fleet.submit_batch("fault busy", jobs, limit)
    # A point is passed with as many jobs as may be active, at most: so all deaths come before the batch can end.
    deepest = max(1, jobs // ((deaths + workers) * limit))
    run = Shelling(fleet, batch_id, deaths, deepest, random.Random(seed))
    for _ in range(workers):
        run.start()
    try:
        fleet.until(run.look, "the batch to finish", patience)
    except AssertionError as error:
        run.violations[f"the batch did not finish: {str(error)[:500]}"] = None
    violations = [*run.violations, *accounts(fleet, batch_id), *crowds(fleet.witness, limit)]
    return violations + (examine(fleet.database, fleet.witness) if run.finished else [])


def accounts(fleet: Fleet, batch_id: str) -> list[str]:
    """Where the batch's row, its jobs and its limit disagree, at one moment."""
    with fleet.database.read() as connection:
        row = connection.execute(select(batches).where(batches.c.id == batch_id)).one()
        counted = select(jobs.c.status, jobs.c.held, func.count()).group_by(jobs.c.status, jobs.c.held)
        stand: Counter[str] = Counter()
        for status, held, number in connection.execute(counted.where(jobs.c.batch_id == batch_id)):
            stand["finished" if status in FINISHED_JOBS else "held" if held else "active"] += number
    found = []
    if stand["active"] > row.max_active:
        found.append(f"{stand['active']} jobs are active, {row.max_active} may be")
    if (row.active, row.held) != (stand["active"], stand["held"]):
        found.append(f"its row says {row.active} active and {row.held} held, its jobs say {dict(stand)}")
    if (row.finished_at is not None) != (stand["finished"] == row.total):
        found.append(f"its row says finished at {row.finished_at}, its jobs say {dict(stand)}")
    return found


def crowds(witness: Witness, limit: int) -> list[str]:
    """Whether the witness ever saw more jobs at work than may be: from a job's first note to its last it is active."""
    notes = list(witness.notes("busy", "idle"))
    last = {note.key: place for place, note in enumerate(notes)}
    at_work: set[str] = set()
    most = 0
    for place, note in enumerate(notes):
        at_work.add(note.key)
        most = max(most, len(at_work))
        if last[note.key] == place:
            at_work.discard(note.key)
    return [f"{most} jobs were at work at once, {limit} may be"] if most > limit else []
