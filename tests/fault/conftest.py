"""Installations for the fault tests: a fresh home, and SQLite or a PostgreSQL database of its own."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from docmill.bootstrap import App
from docmill.db.database import Database
from docmill.settings import load_settings
from docmill.testing import fleet
from docmill.testing.fleet import Fleet
from tests.conftest import PostgresCopies

OpenFleet = Callable[..., AbstractContextManager[Fleet]]
"""`open_fleet(lease=..., **environment)`: a fleet on a fresh installation."""


def volume(ci: int, full: int) -> int:
    """How much of a fault: in every run, or with DOCMILL_FAULT_VOLUME=full."""
    return full if os.environ.get("DOCMILL_FAULT_VOLUME") == "full" else ci


def prepared(url: str, home: Path) -> None:
    """Make schema, effects' table and templates in an empty PostgreSQL database."""
    app = App(load_settings(home=home, database_url=url, plugins=(fleet.PLUGIN,)), Database(url))
    try:
        fleet.prepare(app)
    finally:
        app.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def open_fleet(request: pytest.FixtureRequest, tmp_path: Path, postgres_copy_of: PostgresCopies) -> OpenFleet:
    """A fleet on each of the two databases."""
    home = tmp_path / "home"

    def opened(**options: Any) -> AbstractContextManager[Fleet]:
        url = None
        if request.param == "postgresql":
            url = postgres_copy_of("fault", lambda url: prepared(url, tmp_path / "preparing"))
        return fleet.open_fleet(home, url, **options)

    return opened


@pytest.fixture
def on_sqlite(tmp_path: Path) -> OpenFleet:
    return lambda **options: fleet.open_fleet(tmp_path / "home", None, **options)


@pytest.fixture
def on_postgres(tmp_path: Path, postgres_copy_of: PostgresCopies) -> OpenFleet:
    def opened(**options: Any) -> AbstractContextManager[Fleet]:
        url = postgres_copy_of("fault", lambda url: prepared(url, tmp_path / "preparing"))
        return fleet.open_fleet(tmp_path / "home", url, **options)

    return opened
