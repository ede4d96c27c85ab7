"""A worker's right to its steps: one row renewed by a heartbeat thread, and the moment that right ends.

While the lease is not known to hold, nothing is written: lanes wait at `Lease.hold`. A worker that finds its row dead
never uses that id again; it drops what it was doing and registers anew.
"""

import logging
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from threading import Condition, Event, Thread

from sqlalchemy import delete, insert, update

from docmill.db.clock import database_now
from docmill.db.database import Database, is_transient
from docmill.db.tables import workers
from docmill.db.tables.workers import WorkerStatus
from docmill.engine.failpoints import failpoint
from docmill.engine.pulse import Watch
from docmill.model.errors import DatabaseUnavailable
from docmill.model.ids import new_id

REMEMBERED = timedelta(days=7)
"""How long the rows of workers that have ended are kept for people to look at."""

log = logging.getLogger("docmill.engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Times in seconds; a lease of 30 min renewed every 5 min is within reach."""

    duration: float = 30.0
    heartbeat: float = 10.0
    sweep: float = 1.0
    loop_patience: float = 30.0
    """How long the event loop may stand still until its worker is given up; never less than `duration`."""


def boot_id() -> str:
    """Names this boot of this machine: locks of an earlier boot mean nothing."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


class Lease:
    """The current worker id and until when (on our own monotonic clock) it surely holds."""

    def __init__(self, duration: float) -> None:
        self.duration = duration
        self.worker_id = ""
        self._until = 0.0
        self._lapsed_at: float | None = None
        self._changed = Condition()

    def renewed(self, worker_id: str, asked_at: float) -> None:
        """The database confirmed the lease; it runs from the moment we asked, not from the answer."""
        with self._changed:
            if self.worker_id and not self.holds:
                self._lapsed_at = monotonic()
            self.worker_id = worker_id
            self._until = asked_at + self.duration
            self._changed.notify_all()

    @property
    def holds(self) -> bool:
        return monotonic() < self._until

    @property
    def may_judge(self) -> bool:
        """Whether others' leases may be taken for expired.

        Not for the length of a lease after our own lapsed: what kept us from renewing (the database was away) kept them
        too, and they deserve as much time to come back.
        """
        return self._lapsed_at is None or monotonic() > self._lapsed_at + self.duration

    def covers(self, worker_id: str | None) -> bool:
        """Whether what was claimed under this id is surely still ours."""
        return self.holds and self.worker_id == worker_id

    def hold(self, stopping: Callable[[], bool]) -> bool:
        """Wait until the lease is known to hold; False if `stopping` became true first."""
        with self._changed:
            while not self.holds:
                if stopping():
                    return False
                self._changed.wait(0.2)
        return True


def monotonic() -> float:
    """Goes on while the process is stopped or the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Heartbeat:
    """The thread that registers the worker and renews its lease."""

    def __init__(
        self,
        database: Database,
        settings: LeaseSettings,
        lease: Lease,
        *,
        on_new_id: Callable[[str], None],
        beats: Callable[[], int],
    ) -> None:
        self._database = database
        self._settings = settings
        self._lease = lease
        self._on_new_id = on_new_id
        self._loop = Watch(beats, max(settings.loop_patience, settings.duration))
        self._stop = Event()
        self._thread = Thread(target=self._run_forever, name="docmill-heartbeat", daemon=True)
        self.on_death: Callable[[BaseException], None] = lambda error: None
        """Called when the thread ends by an error nobody foresaw: without it the worker would wait for its lease."""

    def register(self) -> None:
        """Take an id and a first lease. Called once before `start`, and by the thread when the id was declared dead."""
        worker_id = new_id()
        # The lock file must be held before the row exists: whoever sees the row may try the lock.
        self._on_new_id(worker_id)
        asked_at = monotonic()
        with self._database.write() as connection:
            now = database_now(connection)
            connection.execute(
                # Steps of a worker without a row are orphans like those of a dead one, so nothing hangs on these rows.
                delete(workers).where(workers.c.status != WorkerStatus.ALIVE, workers.c.expires_at < now - REMEMBERED)
            )
            connection.execute(
                insert(workers).values(
                    id=worker_id,
                    host=socket.gethostname(),
                    boot_id=boot_id(),
                    pid=os.getpid(),
                    status=WorkerStatus.ALIVE,
                    started_at=now,
                    expires_at=now + timedelta(seconds=self._settings.duration),
                )
            )
        failpoint("worker.registered")
        self._lease.renewed(worker_id, asked_at)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread and say goodbye; nothing is left to sweep."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            with self._database.write() as connection:
                connection.execute(
                    update(workers)
                    .where(workers.c.id == self._lease.worker_id, workers.c.status == WorkerStatus.ALIVE)
                    .values(status=WorkerStatus.STOPPED)
                )
        except DatabaseUnavailable:
            pass  # The lease runs out by itself.

    def _run_forever(self) -> None:
        try:
            self._run()
        except BaseException as error:
            log.exception("the heartbeat ended by an error")
            self.on_death(error)

    def _run(self) -> None:
        delay = self._settings.heartbeat
        while not self._stop.wait(delay):
            if not self._loop.look(delay):
                continue
            try:
                if not self._renew():
                    self.register()
                delay = self._settings.heartbeat
            except DatabaseUnavailable:
                delay = min(0.5, self._settings.heartbeat)
            except Exception as error:
                if not is_transient(error):
                    raise
                delay = min(0.5, self._settings.heartbeat)

    def _renew(self) -> bool:
        """False: somebody declared us dead. The row's lock decides between this and the sweeper."""
        asked_at = monotonic()
        with self._database.write() as connection:
            now = database_now(connection)
            renewed = connection.execute(
                update(workers)
                .where(workers.c.id == self._lease.worker_id, workers.c.status == WorkerStatus.ALIVE)
                .values(expires_at=now + timedelta(seconds=self._settings.duration))
            ).rowcount
        failpoint("heartbeat.renewed")
        if renewed:
            self._lease.renewed(self._lease.worker_id, asked_at)
        return renewed == 1
