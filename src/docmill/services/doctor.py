"""Looking an installation over: each check says how things stand and, if they do not stand well, what to do.

Checks never change anything beyond a probe file that they remove, and none raises for what it finds.
"""

import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from docmill.model.errors import DocmillError
from docmill.model.extras import to_install
from docmill.settings import Settings, config_file, unknown_variables

if TYPE_CHECKING:
    from docmill.db.database import Database
    from docmill.documents.blobs import Blobs
    from docmill.plugin import Registry
    from docmill.services.workers import WorkerView

MIN_PYTHON = (3, 11)
LOW_DISK = 1 << 30
NO_DISK = 100 << 20
SLOW_SYNC = 0.05
QUICK_SYNC = 0.00002
"""Seconds: no disk is that fast, so the file system only pretends."""
_PROBES = 9


class Health(StrEnum):
    """How a check turned out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at."""

    name: str
    health: Health
    found: str
    remedy: str | None = None
    """What to do about it; None when nothing needs doing."""


def ok(name: str, found: str) -> Check:
    """All is well."""
    return Check(name=name, health=Health.OK, found=found)


def warn(name: str, found: str, remedy: str) -> Check:
    """It works, but somebody should know."""
    return Check(name=name, health=Health.WARN, found=found, remedy=remedy)


def fail(name: str, found: str, remedy: str) -> Check:
    """It does not work."""
    return Check(name=name, health=Health.FAIL, found=found, remedy=remedy)


def examine(
    load_settings: Callable[[], Settings],
    open_database: Callable[[Settings], "Database"],
    load_registry: Callable[[Settings], "Registry"],
    open_storage: Callable[[Settings], "Blobs"],
) -> Iterator[Check]:
    """Everything there is to check, in an order in which a later check rests on the earlier ones."""
    yield check_python()
    yield check_extras()
    try:
        settings = load_settings()
    except DocmillError as error:
        first, *rest = error.message.splitlines()
        found = " ".join([first, *(f"{line.strip()};" for line in rest)]).rstrip(";")
        yield fail("settings", found, "Correct the file or the variable; the other checks need it.")
        return
    yield check_settings()
    yield from check_home(settings)
    yield check_storage(settings, lambda: open_storage(settings))
    yield from check_plugins(lambda: load_registry(settings))
    yield check_models(settings)
    yield from check_database(settings, lambda: open_database(settings))


def check_python() -> Check:
    """Whether this Python is new enough."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < MIN_PYTHON:
        wanted = ".".join(str(part) for part in MIN_PYTHON)
        return fail("python", found, f"Install Python {wanted} or newer.")
    return ok("python", found)


EXTRAS = {
    "server": "fastapi",
    "client": "httpx",
    "models": "pydantic_ai",
    "postgres": "psycopg",
    "s3": "obstore",
}
"""Extra -> the module that it brings."""


def check_extras() -> Check:
    """Which extras are installed. None is needed: whoever lacks one that is used is told its name."""
    there = [name for name, module in EXTRAS.items() if _is_installed(module)]
    lacking = [name for name in EXTRAS if name not in there]
    found = ", ".join(there) or "none"
    if lacking:
        found += f"; not installed: {', '.join(lacking)} ({to_install(*lacking)})"
    return ok("extras", found)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:
        # Somebody has put nothing in its place, so that it cannot be imported.
        return False


def check_settings() -> Check:
    """Which file is used, and whether every DOCMILL_* variable means something."""
    file = config_file()
    found = f"read from {file.resolve()}" if file.is_file() else f"defaults and DOCMILL_*; no {file} here"
    unknown = unknown_variables()
    if unknown:
        return warn(
            "settings", f"{found}; {', '.join(unknown)} set nothing", "Correct the name, or unset the variable."
        )
    return ok("settings", found)


def check_storage(settings: Settings, open_storage: Callable[[], "Blobs"]) -> Check:
    """Whether the bytes of documents can be kept where the settings say."""
    section = settings.storage
    try:
        open_storage().probe()
    except DocmillError as error:
        return fail("storage", error.message, "No document can be taken in until then.")
    if section.kind == "s3":
        at = f" at {section.endpoint}" if section.endpoint else ""
        return ok("storage", f"bucket {section.bucket}{at}, written and read")
    return ok("storage", f"folder {section.path or settings.home / 'blobs'}")


def check_home(settings: Settings) -> Iterator[Check]:
    """Whether state can be kept: folder, space, and a disk that keeps what it was given."""
    home = settings.home
    existing = next(path for path in [home, *home.parents] if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield fail("home", f"{home} cannot be written", "Set DOCMILL_HOME to a folder of yours, or mend its rights.")
        return
    yield ok("home", str(home) if existing == home else f"{home} (made at first use)")
    yield check_disk(existing)
    yield check_sync(existing)


def check_disk(folder: Path) -> Check:
    """Whether there is room."""
    free = shutil.disk_usage(folder).free
    found = f"{free / (1 << 30):,.1f} GB free"
    remedy = "Make room, or set DOCMILL_HOME to a larger disk."
    if free < NO_DISK:
        return fail("disk", found, remedy)
    return warn("disk", found, remedy) if free < LOW_DISK else ok("disk", found)


def check_sync(folder: Path) -> Check:
    """Whether fsync takes the time that a write to a disk takes."""
    times = []
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".doctor-") as probe:
            for _ in range(_PROBES):
                probe.write(b"\0" * 4096)
                probe.flush()
                began = time.perf_counter()
                os.fsync(probe.fileno())
                times.append(time.perf_counter() - began)
    except OSError as error:
        return fail("fsync", f"cannot write and sync: {error.strerror}", "Check the disk and its mount.")
    median = statistics.median(times)
    found = f"{median * 1000:.2f} ms"
    if median > SLOW_SYNC:
        return warn("fsync", f"{found}, which is slow", "Use a local SSD: every commit waits for this.")
    if median < QUICK_SYNC:
        return warn("fsync", f"{found}, too fast for a disk", "Do not keep state in memory: a power cut would lose it.")
    return ok("fsync", found)


def check_plugins(load: Callable[[], "Registry"]) -> Iterator[Check]:
    """Whether every plug-in loads, and what they bring."""
    try:
        registry = load()
    except DocmillError as error:
        yield fail("plug-ins", error.message, "Install the module, or correct `plugins` (DOCMILL_PLUGINS).")
        return
    services = {service for service, _ in registry.processors}
    counts = (
        f"{_count(len(registry.steps), 'step type')}, {_count(len(registry.processors), 'processor')} of "
        f"{_count(len(services), 'service')}, {_count(len(registry.loaders), 'entity loader')}"
    )
    yield ok("plug-ins", counts)
    yield ok("step types", ", ".join(sorted(registry.steps)))


def check_models(settings: Settings) -> Check:
    """Which providers of models can be asked; those that the settings speak of must be."""
    from docmill.ai.providers.access import accesses

    section = settings.ai
    found = accesses({name: provider.opens for name, provider in section.providers.items()})
    missing = {name: access.missing() for name, access in found.items()}
    ready = [name for name in found if missing[name] is None]
    names = [section.model, *section.models.values()]
    meant = {section.provider, *section.providers, *(name.partition(":")[0] for name in names)}
    wanted = [reason for name, reason in missing.items() if reason is not None and name in meant]
    told = f"ready: {', '.join(['local', *ready])}"
    if wanted:
        return warn("models", told, " ".join(wanted))
    unused = [name for name in found if name not in ready]
    return ok("models", f"{told}; without a key or a library: {', '.join(unused)}" if unused else told)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def check_database(settings: Settings, open_database: Callable[[], "Database"]) -> Iterator[Check]:
    """Whether the database answers, at which schema, and who works on it."""
    from sqlalchemy.exc import DBAPIError

    from docmill.db import schema

    try:
        database = open_database()
    except DocmillError as error:
        yield fail("database", error.message, "Correct DOCMILL_DATABASE_URL.")
        return
    if database.path is not None and not database.path.exists():
        yield warn("database", f"{database} does not exist yet", "The first command makes it; or `docmill db upgrade`.")
        return
    try:
        with database.read() as connection:
            revision = schema.current_revision(connection)
            version = connection.dialect.server_version_info or ()
        yield ok("database", f"{database.kind} {'.'.join(str(part) for part in version)}, {database}")
        yield _check_revision(revision)
        if revision == schema.HEAD:
            yield from _check_work(settings, database)
    except DocmillError as error:
        yield fail("database", error.message, "Start it, or correct DOCMILL_DATABASE_URL.")
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0]
        yield fail("database", f"{database}: {reason}", "Check rights and contents; restore a backup if it is damaged.")
    finally:
        database.close()


def _check_revision(revision: str | None) -> Check:
    from docmill.db import schema

    if revision == schema.HEAD:
        return ok("schema", f"revision {revision}")
    found = f"revision {revision}, this release needs {schema.HEAD}" if revision else "none yet"
    if revision is not None and revision > schema.HEAD:
        return fail("schema", found, "A newer release wrote it: upgrade Docmill.")
    return fail("schema", found, "Run `docmill db upgrade`.")


def _check_workers(leased: "Sequence[WorkerView]", is_gone: Callable[[str], bool]) -> Check:
    """Who works: a lease holds for a while after the death of its process, a lock on this host does not."""
    gone = [worker for worker in leased if is_gone(worker.id)]
    alive = [worker for worker in leased if worker not in gone]

    def places(workers: "Sequence[WorkerView]") -> str:
        return ", ".join(f"{worker.host} (pid {worker.pid})" for worker in workers)

    dead = f"; gone without a word: {places(gone)}" if gone else ""
    if alive:
        found = f"{len(alive)} alive: {places(alive)}{dead}"
        remedy = "None needed: a living worker takes the steps of those that are gone over within a second."
        return warn("workers", found, remedy) if gone else ok("workers", found)
    return warn(
        "workers",
        f"none alive, so jobs wait{dead}",
        "Start one: `docmill worker`. `docmill process` needs none: it does its own work.",
    )


def _check_work(settings: Settings, database: "Database") -> Iterator[Check]:
    from docmill.engine.takeover import is_gone
    from docmill.services.workers import alive_workers, ready_queues

    yield _check_workers(alive_workers(database), lambda worker_id: is_gone(settings.run_dir, worker_id))
    from docmill.model.statuses import StepKind

    served = {*settings.pools, *(kind.value for kind in StepKind)}
    stray = sorted(ready_queues(database) - served)
    if stray:
        named = ", ".join(stray)
        yield warn("pools", f"steps wait in pools not in the settings: {named}", "Name them under `pools`.")
