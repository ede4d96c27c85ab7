"""A whole worker in a thread of this process, for tests that want to see real steps run."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

from docmill.bootstrap.declarations import BUILT_IN
from docmill.db.database import Database
from docmill.engine.lease import LeaseSettings
from docmill.engine.worker import Worker, WorkerSettings
from docmill.plugin import Registry

LEASE = LeaseSettings(duration=60.0, heartbeat=0.2, sweep=0.1)


@contextmanager
def serving(
    database: Database,
    run_dir: Path,
    *modules: ModuleType,
    drain: float = 0.2,
    lease: LeaseSettings = LEASE,
    read_patience: float = 60.0,
) -> Iterator[tuple[Worker, "Future[None]"]]:
    """A worker that knows the built-in steps and those of these modules, and its end."""
    registry = Registry()
    for module in (*map(import_module, BUILT_IN), *modules):
        registry.add_module(module)
    settings = WorkerSettings(run_dir=run_dir, lease=lease, drain_seconds=drain, read_patience=read_patience)
    worker = Worker(database, registry, settings)
    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(lambda: asyncio.run(worker.run()))
        try:
            yield worker, end
        finally:
            if not end.done():
                worker.stop()
