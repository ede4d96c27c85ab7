"""What lane A and lane B share: a thread with a store of its own that outlives lost connections."""

import logging
from collections.abc import Callable
from random import random
from threading import Condition, Event, Thread
from typing import TypeVar

from docmill.db.database import Database, is_collision, is_transient, stood_idle
from docmill.engine.failpoints import FailpointRaised
from docmill.engine.known import KnownJobs
from docmill.engine.store import PlanSource, Store
from docmill.model.errors import DatabaseUnavailable

T = TypeVar("T")
_IDLES = 3
_LAST_ATTEMPTS = 8
log = logging.getLogger("docmill.engine")


class _GivenUp(BaseException):
    """Ends the thread; not an Exception, so that no lane takes it for the refusal of what it was committing."""


class StoreThread:
    """Runs transactions on one connection, opening a new one and trying again when the database fails it."""

    def __init__(self, name: str, database: Database, plans: PlanSource, known: KnownJobs | None = None) -> None:
        self._database = database
        self._plans = plans
        self._known = known
        self._store: Store | None = None
        self._wake = Condition()
        """Guards what other threads hand in; told when there is something."""
        self._resting = Event()
        """Set between two pieces of work, cleared under `_wake` when the next is taken up."""
        self.stopping = Event()
        self.thread = Thread(target=self._run_forever, name=f"docmill-{name}", daemon=True)
        self.on_death: Callable[[BaseException], None] = lambda error: None

    def start(self) -> None:
        self.thread.start()

    def settle(self, patience: float) -> None:
        """Wait until the work under way, if there is any, is done and told of; not longer than `patience` seconds."""
        with self._wake:
            pass
        self._resting.wait(patience)

    def close(self) -> None:
        """Do what waits, and end."""
        with self._wake:
            self.stopping.set()
            self._wake.notify()
        self.thread.join()

    def run(self) -> None:
        """The thread's work, until `stopping`."""
        raise NotImplementedError

    def _run_forever(self) -> None:
        try:
            self.run()
        except _GivenUp as end:
            log.warning("%s ends without having reached the database", self.thread.name)
            self.on_death(end.__cause__ or end)
        except BaseException as error:
            log.exception("%s ended by an error", self.thread.name)
            self.on_death(error)
        finally:
            self._resting.set()
            self._close()

    def store(self) -> Store:
        """The store, connected."""
        if self._store is None:
            self._store = Store(self._database.session(), self._plans, self._known)
        return self._store

    def persist(self, work: Callable[[Store], T]) -> tuple[T, bool]:
        """Do the work until it succeeds; with it, whether an attempt failed in a way that may have been committed.

        Only errors that another attempt can mend are tried again; the rest are raised. Once the thread is to end, a
        database that is away is no longer waited for: the lease runs out by itself.
        """
        attempt = idled = 0
        last_attempts = _LAST_ATTEMPTS
        while True:
            try:
                return work(self.store()), attempt > 0
            except Exception as error:
                # A collision: somebody else submitted a job for the entity of a follow-up; the next attempt sees it.
                transient = isinstance(error, DatabaseUnavailable | FailpointRaised) or is_transient(error)
                transient = transient or is_collision(error)
                if stood_idle(error):
                    # We were stopped in the middle of it; or a processor takes longer than any transaction may.
                    idled += 1
                    transient = idled < _IDLES
                if self._known is not None:
                    # The database may come back with fewer commits, and give their versions to others.
                    self._known.forget()
                if not transient:
                    self._close()
                    raise
                if self.stopping.is_set():
                    last_attempts -= 1
                if not last_attempts:
                    raise _GivenUp from error
                log.warning("%s: trying again after: %s", self.thread.name, error)
                self._close()
                attempt += 1
                # A pause that an order to end does not cut short: the database may need it.
                Event().wait(min(1.0, 0.02 * 2**attempt) * (0.5 + random()))

    def _close(self) -> None:
        if self._store is not None:
            store, self._store = self._store, None
            try:
                store.session.close()
            except Exception as error:
                log.debug("closing a lost connection: %s", error)
