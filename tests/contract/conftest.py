"""Every promise is kept on both databases: `world` comes once on SQLite and once on PostgreSQL."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from docmill.db.database import Database
from docmill.services.batches import Batches
from docmill.services.issues import Issues
from docmill.testing.world import World, migrate
from tests.conftest import PostgresCopies
from tests.contract.batching import batches_of
from tests.contract.bells import CountingBell
from tests.contract.desk import Desk
from tests.contract.gateway_bench import Bench, bench_on
from tests.contract.post_office import PostOffice
from tests.contract.served import Served, serving
from tests.contract.town import Town

KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database at the newest schema, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "docmill.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a migrated database without a row in it."""
    if request.param == "postgresql":
        copy_of: PostgresCopies = request.getfixturevalue("postgres_copy_of")
        return copy_of("migrated", migrate)
    path = tmp_path / "docmill.db"
    shutil.copy(request.getfixturevalue("migrated_file"), path)
    return f"sqlite:///{path}"


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    """A database with a store on it; what is in it when the test ends must be sound."""
    world = World(Database(database_url), tmp_path / "run")
    try:
        yield world
        world.check()
    finally:
        world.close()


@pytest.fixture
def served(database_url: str, tmp_path: Path) -> Iterator[Served]:
    """The API over each database in turn, nobody working."""
    with serving(database_url, tmp_path / "home") as found:
        yield found


@pytest.fixture
def town(database_url: str) -> Iterator[Town]:
    """Two organisations on each database in turn."""
    database = Database(database_url)
    yield Town(database)
    database.close()


@pytest.fixture
def desk(database_url: str, tmp_path: Path) -> Iterator[Desk]:
    """Review with items to decide on, on each database in turn."""
    desk = Desk(Database(database_url), tmp_path)
    yield desk
    desk.close()


@pytest.fixture
def office(world: World) -> PostOffice:
    """Outgoing webhooks of a world."""
    return PostOffice(world.database)


@pytest.fixture
def bell() -> CountingBell:
    """What was rung for, and nobody hears."""
    return CountingBell()


@pytest.fixture
def batches(world: World, bell: CountingBell) -> Iterator[Batches]:
    """Batches of a world, whose counters must agree with the jobs in the end."""
    with batches_of(world, bell) as opened:
        yield opened


@pytest.fixture
def issues(world: World, bell: CountingBell) -> Iterator[Issues]:
    """Issues of a world."""
    issues = Issues(world.database, bell)
    yield issues
    issues.close()


@pytest.fixture
def bench(database_url: str) -> Iterator[Bench]:
    """A gateway to models on each database in turn, whose accounts must agree in the end."""
    with bench_on(database_url) as made:
        yield made
