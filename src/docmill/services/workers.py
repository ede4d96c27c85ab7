"""Worker processes as people see them: who is alive, and where work waits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import job_steps, workers
from docmill.db.tables.workers import WorkerStatus
from docmill.engine.locked import SUSPECT
from docmill.model.statuses import StepStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """One worker process that holds its lease."""

    id: str
    host: str
    pid: int
    started_at: datetime
    expires_at: datetime


def alive_workers(database: Database) -> Sequence[WorkerView]:
    """Workers whose lease holds now, oldest first."""
    columns = [workers.c[name] for name in WorkerView.__dataclass_fields__]
    with database.as_engine().read() as connection:
        query = select(*columns).where(
            workers.c.status == WorkerStatus.ALIVE, workers.c.expires_at > database_now(connection)
        )
        return [WorkerView(**row._mapping) for row in connection.execute(query.order_by(workers.c.id))]


def leads(database: Database, *, host: str, pid: int) -> bool:
    """Whether the worker in this process is to do what one does for all: the oldest whose lease holds. So is everybody
    while there is none.

    Two may take themselves for it while one of them changes, or none for the length of a lease when it has died.
    """
    with database.as_engine().read() as connection:
        alive = (workers.c.status == WorkerStatus.ALIVE) & (workers.c.expires_at > database_now(connection))
        query = select(workers.c.host, workers.c.pid).where(alive).order_by(workers.c.id).limit(1)
        first = connection.execute(query).first()
    return first is None or (first.host, first.pid) == (host, pid)


def ready_queues(database: Database) -> frozenset[str]:
    """Pools in which steps are ready and wait for a worker."""
    query = select(job_steps.c.queue).where(job_steps.c.status == StepStatus.READY.value).distinct()
    with database.as_engine().read() as connection:
        return frozenset(queue.removesuffix(SUSPECT) for queue in connection.execute(query).scalars())
