"""What a new run of a finished job is to find in it: written in the transaction that begins the run, or not at all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from docmill.db.tables import jobs
from docmill.engine.batch import Batch, Outcome, Report
from docmill.engine.events import Rerun
from docmill.engine.failpoints import failpoint
from docmill.engine.store import Store
from docmill.model.errors import Conflict
from docmill.people.audit import Deed


def _nothing(connection: Connection) -> None:
    """Who has nothing to check or to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What somebody who has looked at a job wants its next run to find."""

    version: int
    """Of the job that was looked at: what was concluded from it holds for no other."""
    metadata: Mapping[str, object]
    check: Callable[[Connection], None] = _nothing
    """May refuse, with the job locked."""
    write: Callable[[Connection], None] = _nothing
    """What else changes with it."""
    deeds: Sequence[Deed] = ()


def begin(
    store: Store, job_id: str, event: Rerun, noted: Noted, record: Callable[[Connection], None]
) -> Outcome | None:
    """Begin the run and note what it is to find; Conflict, and nothing is written, if the job has moved on.

    None: it came about already, by our own commit whose answer was lost, or by somebody who wanted the same. The job is
    locked first, as by everybody, and documents after what the engine locks. `record` comes last.
    """
    held = select(jobs.c.version, jobs.c.run, jobs.c.metadata).where(jobs.c.id == job_id).with_for_update()
    with store.session.write() as connection:
        found = connection.execute(held).one_or_none()
        if found is None or found.version != noted.version:
            if found is not None and found.run > (event.after_run or 0) and found.metadata == noted.metadata:
                return None
            raise _moved_on(job_id)
        noted.check(connection)
        outcome = store.begin().run(Batch(reports=[Report(job_id=job_id, event=event)]))
        if not outcome.accepted[0]:
            raise _moved_on(job_id)
        connection.execute(update(jobs).where(jobs.c.id == job_id).values(metadata=noted.metadata))
        noted.write(connection)
        record(connection)
        failpoint("commit.inside")
    failpoint("commit.after")
    return outcome


def _moved_on(job_id: str) -> Conflict:
    return Conflict(f"Job {job_id} has moved on; look at it again.", job_id=job_id)
