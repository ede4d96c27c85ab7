"""Worker processes and their leases: one row renewed per process, whatever number of steps it runs."""

from enum import StrEnum

from sqlalchemy import Column, Integer, String, Table

from docmill.db.tables.metadata import metadata, one_of
from docmill.db.types import IdType, UtcTime


class WorkerStatus(StrEnum):
    """`dead` is final: a worker that wakes to find itself dead takes a new id."""

    ALIVE = "alive"
    STOPPED = "stopped"
    DEAD = "dead"


workers = Table(
    "workers",
    metadata,
    Column("id", IdType, primary_key=True),
    Column("host", String, nullable=False),
    Column("boot_id", String, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("status", String, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    one_of("status", WorkerStatus),
)
