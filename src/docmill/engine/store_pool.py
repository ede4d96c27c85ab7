"""Stores for services: opened when needed, kept for the next call, given up when their connection is lost."""

from collections.abc import Callable
from copy import copy
from queue import Empty, Full, Queue
from threading import Event
from typing import TypeVar

from docmill.db.database import Database, is_collision, is_connection_lost, is_transient, unavailable
from docmill.db.standing import Standing
from docmill.engine.batch import Batch, Outcome
from docmill.engine.store import Also, PlanSource, Store
from docmill.model.errors import DatabaseUnavailable

T = TypeVar("T")
MOST_IDLE = 8
"""Stores kept for the next call: after a rush of threads the others are given up."""
_ATTEMPTS = 6
_PAUSE = 0.1
"""Seconds before the second attempt, doubled for each after it: a server that restarts is no error to a person."""


class StorePool:
    """Commits batches for any thread. A lost connection, a deadlock and the like are tried again a few times."""

    def __init__(self, database: Database, plans: PlanSource) -> None:
        self._database = database
        self._plans = plans
        self._idle: Queue[tuple[Store, Standing | None]] = Queue(MOST_IDLE)

    def standing_as(self, database: Database) -> "StorePool":
        """The same connections, for whoever this view of the database stands for."""
        view = copy(self)
        view._database = database
        return view

    def commit(self, batch: Batch, *, again: Batch | None = None, also: Also | None = None) -> Outcome:
        """Commit the batch. `again` is what to do instead when it has to be done once more (see `Batch.check`).

        `also` writes what belongs to it, in the same transaction: as often as it is tried, by what came of it then.
        """
        if again is None:
            return self.work(lambda store: store.commit(batch, also))
        return self.work(lambda store: store.commit(batch, also), again=lambda store: store.commit(again, also))

    def work(self, work: Callable[[Store], T], *, again: Callable[[Store], T] | None = None) -> T:
        """Do the work, which is one transaction, until it succeeds; `again`, if given, after the first attempt."""
        attempt = 1
        while True:
            store = None
            try:
                store = self._take()
                outcome = work(store)
            except Exception as error:
                if store is not None:
                    store.session.close()
                mendable = is_transient(error) or isinstance(error, DatabaseUnavailable)
                if attempt >= _ATTEMPTS or not (mendable or (is_collision(error) and again)):
                    with unavailable(self._database):
                        raise
                # Of other connections that were open then, nothing good can be expected either.
                if is_connection_lost(error):
                    self.close()
                if not is_collision(error):
                    Event().wait(_PAUSE * 2 ** (attempt - 1))
                attempt += 1
                work = again or work
            else:
                self._keep(store)
                return outcome

    def _keep(self, store: Store) -> None:
        try:
            self._idle.put_nowait((store, self._database.standing))
        except Full:
            store.session.close()

    def _take(self) -> Store:
        wanted = self._database.standing
        try:
            store, stands = self._idle.get_nowait()
        except Empty:
            return Store(self._database.session(), self._plans)
        if stands != wanted and self._database.kind == "postgresql":
            assert wanted is not None, "whoever shares connections says as whom"
            try:
                wanted.keep(store.session.raw)
            except BaseException:
                store.session.close()
                raise
        return store

    def close(self) -> None:
        """Let go of the idle connections."""
        while True:
            try:
                self._idle.get_nowait()[0].session.close()
            except Empty:
                return
