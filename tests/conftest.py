"""Fixtures every test may ask for: real servers, started only when the first test wants one.

Each xdist worker has servers of its own: they start in about a second, and nothing needs to be agreed upon between
processes. A test that stops or pauses a server asks for `own_postgres_server`, so that its neighbours never notice.
"""

import itertools
import os
import signal
from collections.abc import Callable, Iterator

import hypothesis
import pytest

from docmill.testing.scratch import folder_in_memory, keep_in_memory
from docmill.testing.servers import PostgresServer, RedisServer

# A busy machine must not fail a property: what is slow is measured in bench/, not here.
hypothesis.settings.register_profile("docmill", deadline=None)
hypothesis.settings.load_profile("docmill")

# A shell starts what it puts in the background with Ctrl-C ignored, which every program started from here would inherit
# and Python then leaves so. What is handled, if only by doing nothing, is a program's own business again.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda _number, _frame: None)

_numbers = itertools.count(1)


def pytest_configure() -> None:
    """Before anybody has asked for a folder; the processes that run the tests are told by their environment."""
    if folder := folder_in_memory(os.environ):
        keep_in_memory(folder)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The PostgreSQL that all tests of this process share, a database each. Not to be stopped."""
    # Without fsync: the machine is never unplugged here, and killed processes lose nothing that reached the kernel.
    # Each copy of a database is ten megabytes of log, of which not a gigabyte need be kept in memory.
    with PostgresServer(fsync=False, settings={"max_wal_size": "256MB"}) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """An empty database, dropped after the test."""
    name = f"empty_{next(_numbers)}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


PostgresCopies = Callable[[str, Callable[[str], None]], str]
"""`(name, prepare) -> url`: a database as `prepare(url)` makes it, prepared once per process and then copied."""


@pytest.fixture
def postgres_copy_of(postgres_server: PostgresServer) -> Iterator[PostgresCopies]:
    """Makes databases from a prepared template, for example the migrated schema; all dropped after the test."""
    made: list[str] = []

    def copy_of(name: str, prepare: Callable[[str], None]) -> str:
        template = postgres_server.template(f"template_{name}", prepare)
        made.append(f"{name}_{next(_numbers)}")
        return postgres_server.create_database(made[-1], template=template)

    yield copy_of
    for name in made:
        postgres_server.drop_database(name)


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL for one test alone, to be stopped, paused and restarted at will."""
    with PostgresServer(fsync=False) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """The Redis that all tests of this process share. Not to be stopped."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def own_redis_server() -> Iterator[RedisServer]:
    """A Redis for one test alone, to be stopped and emptied at will."""
    with RedisServer() as server:
        yield server
