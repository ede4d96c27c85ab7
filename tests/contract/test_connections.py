"""Connections of one process: those that are kept for long leave the others theirs, and a rush leaves few behind."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import pytest
from sqlalchemy import text

from docmill.api.problems import answer_to
from docmill.db.database import Database
from docmill.engine.store import PlanSource, Store
from docmill.engine.store_pool import MOST_IDLE, StorePool
from docmill.model.errors import DatabaseUnavailable
from docmill.model.ids import DEFAULT_ORG

RUSH = 20


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url).scoped(DEFAULT_ORG)
    yield opened
    opened.close()


def impatient(database: Database) -> None:
    """Whoever finds no connection free is told at once."""
    database.engine.pool._timeout = 0  # type: ignore[attr-defined]


def test_sessions_that_are_kept_take_none_from_short_looks(database: Database) -> None:
    impatient(database)
    sessions = [database.session() for _ in range(30)]
    try:
        with database.read() as connection:
            assert connection.execute(text("select 1")).scalar() == 1
    finally:
        for session in sessions:
            session.close()


def test_after_a_rush_few_stores_are_kept(database: Database) -> None:
    pool = StorePool(database, PlanSource())
    together = Barrier(RUSH)
    seen: list[Store] = []

    def work(store: Store) -> None:
        seen.append(store)
        together.wait(60)

    with ThreadPoolExecutor(RUSH) as threads:
        list(threads.map(lambda _: pool.work(work), range(RUSH)))
    assert len(set(map(id, seen))) == RUSH
    assert sum(not store.session.connection.closed for store in seen) == MOST_IDLE
    pool.close()
    assert all(store.session.connection.closed for store in seen)


def test_when_all_are_in_use_the_answer_says_to_try_again(database: Database) -> None:
    impatient(database)
    with ExitStack() as held:

        def take_all() -> None:
            for _ in range(100):
                held.enter_context(database.read())

        with pytest.raises(DatabaseUnavailable, match="in use") as refused:
            take_all()
        answer = answer_to("/api/v1/jobs", refused.value)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
