"""Whether the events of a job are all there and as they were written: a hash chain with its head on the job row."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Text, cast, select

from docmill.db.tables import job_events, jobs
from docmill.engine.locked import CHAIN_START, chain_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFault:
    """One place where the chain of a job does not hold."""

    job_id: str
    version: int
    problem: str


def verify_chain(connection: Connection, job_id: str) -> list[ChainFault]:
    """Every fault in the events of this job, in order; an empty list means the chain holds.

    Versions count from 1 without a gap, each hash follows from the one before it, and the job row knows the last.
    """
    head = connection.execute(select(jobs.c.version, jobs.c.chain).where(jobs.c.id == job_id)).first()
    # As text, letter by letter: a value read as JSON and written anew need not hash the same.
    data = cast(job_events.c.data, Text).label("data")
    columns = (job_events.c.version, job_events.c.org_id, job_events.c.at, data, job_events.c.hash)
    query = select(*columns).where(job_events.c.job_id == job_id).order_by(job_events.c.version)
    faults = []
    version, chain = 0, CHAIN_START
    for row in connection.execute(query):
        version += 1
        if row.version != version:
            faults.append(ChainFault(job_id=job_id, version=version, problem="this event is missing"))
            version = row.version
        elif _link(chain, job_id, row) != bytes(row.hash):
            faults.append(ChainFault(job_id=job_id, version=version, problem="this event is not as it was written"))
        chain = bytes(row.hash)
    if head is None:
        faults.append(ChainFault(job_id=job_id, version=version, problem="there is no such job"))
    elif (head.version, bytes(head.chain)) != (version, chain):
        faults.append(ChainFault(job_id=job_id, version=version, problem="the job row knows of another last event"))
    return faults


def _link(previous: bytes, job_id: str, row: Row[Any]) -> bytes:
    return chain_hash(previous, job_id=job_id, version=row.version, org_id=row.org_id, at=row.at, data=row.data)
