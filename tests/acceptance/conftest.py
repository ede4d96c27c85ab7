"""Installations for the tests of the command line."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.mill import Mill, Running, environment, store_templates
from tests.conftest import PostgresCopies


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose SQLite installation has the templates stored; copied by each test."""
    folder = tmp_path_factory.mktemp("prepared")
    store_templates(Mill(folder=folder, environment=environment(folder)))
    return folder


@pytest.fixture
def mill(prepared: Path, tmp_path: Path) -> Mill:
    """An installation on SQLite, templates stored, nothing running."""
    folder = tmp_path / "mill"
    shutil.copytree(prepared, folder)
    return Mill(folder=folder, environment=environment(folder))


@pytest.fixture
def bare(tmp_path: Path) -> Mill:
    """An installation that nobody has used yet."""
    return Mill(folder=tmp_path, environment=environment(tmp_path))


@pytest.fixture(scope="session")
def prepared_beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what an installation on PostgreSQL has besides its database."""
    return tmp_path_factory.mktemp("prepared_beside")


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, prepared_beside: Path, tmp_path: Path) -> Mill:
    """An installation on each database in turn, templates stored."""
    if request.param == "sqlite":
        prepared_mill: Mill = request.getfixturevalue("mill")
        return prepared_mill

    def prepare(url: str) -> None:
        mill = Mill(folder=prepared_beside, environment=environment(prepared_beside, DOCMILL_DATABASE_URL=url))
        assert mill("db", "upgrade").code == 0
        store_templates(mill)

    copy_of: PostgresCopies = request.getfixturevalue("postgres_copy_of")
    url = copy_of("mill", prepare)
    folder = tmp_path / "mill"
    shutil.copytree(prepared_beside, folder)
    return Mill(folder=folder, environment=environment(folder, DOCMILL_DATABASE_URL=url))


Worker = Callable[[Mill], Running]


@pytest.fixture
def worker() -> Iterator[Worker]:
    """Starts a worker in an installation and waits until it is ready."""
    running: list[Running] = []

    def start(mill: Mill) -> Running:
        running.append(Running(mill, ("worker",)))
        running[-1].says("is ready")
        return running[-1]

    yield start
    for each in running:
        each.__exit__()
