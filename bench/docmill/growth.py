"""What a step costs with a million finished jobs in the database, over what it costs with ten thousand.

The same batches of W2 go to both databases in turn, on one server, through workers that live throughout.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from bench import flow, servers
from bench.docmill import templates
from bench.docmill.peer import VARIANTS, flow_jobs, opened, register
from bench.docmill.seed import LARGE, SMALL, database_name, ensure
from bench.docmill.system import POSTGRES
from bench.measure import ROOT
from bench.meter import EventLog
from bench.processes import BenchError, WorkerGroup
from bench.results import Figure, Work
from bench.servers import Servers
from bench.settings import Settings
from docmill.bootstrap import App

_BATCH = 1000
_ROUNDS = 5
_TIMEOUT_S = 60.0
_LIVE = "select count(*) from processing_jobs where status in ('PENDING', 'IN_PROGRESS', 'WAITING')"
_TOUCHED = "select blks_hit + blks_read from pg_stat_database where datname = %s"


@dataclass(kw_only=True)
class _Side:
    """One of the two databases at work."""

    name: str
    app: App
    template_id: str
    log: EventLog
    workers: WorkerGroup
    connection: "psycopg.Connection[tuple[int]]"
    submitted: int = 0
    seconds: list[float] = field(default_factory=list)

    def run_batch(self) -> float:
        """Submit a batch; the seconds until the last of its jobs is finished."""
        numbers = range(self.submitted, self.submitted + _BATCH)
        self.submitted += _BATCH
        logged = self.submitted * (len(flow.STEPS) - 1)
        began = time.monotonic()
        self.app.jobs.submit(flow_jobs(self.template_id, numbers))
        while time.monotonic() < began + _TIMEOUT_S:
            self.log.read()
            # The database is asked only at the very end: the question touches buffers too.
            if len(self.log.ends) >= logged and self._live() == 0:
                return time.monotonic() - began
            self.workers.check()
            time.sleep(0.005)
        raise BenchError(f"A batch of {_BATCH} workflows on {self.name} did not end within {_TIMEOUT_S:.0f} s.")

    def _live(self) -> int:
        row = self.connection.execute(_LIVE).fetchone()
        return row[0] if row else 0


def measure(home: Path, running: Servers) -> tuple[Figure, ...]:
    """Both figures. `home` is the git-ignored folder of the benchmark."""
    data = ensure(home)
    small, large = f"{database_name(SMALL)}_run", database_name(LARGE)
    # No autovacuum: it would be counted with the steps, at moments of its own choosing.
    with (
        servers.postgres(data, log=running.folder / "growth.log", autovacuum="off") as port,
        psycopg.connect(servers.url(port, "postgres"), autocommit=True) as admin,
    ):
        _freshen(admin, port, small=small, large=large)
        before = {name: _touched(admin, name) for name in (small, large)}
        with ExitStack() as stack:
            sides = [stack.enter_context(_side(running, port, name)) for name in (small, large)]
            for turn in range(_ROUNDS + 1):
                for side in sides:
                    seconds = side.run_batch()
                    # The first batch fills caches.
                    if turn:
                        side.seconds.append(seconds)
        touched = {name: _touched(admin, name) - before[name] for name in before}
    times = {side.name: statistics.median(side.seconds) for side in sides}
    for side in sides:
        steps = side.submitted * len(flow.STEPS)
        told = f"{times[side.name] / _BATCH / len(flow.STEPS) * 1e6:.0f} µs, {touched[side.name] / steps:.1f} buffers"
        print(f"Growth, {side.name}: {told} per step", file=sys.stderr, flush=True)
    return (
        Figure(key="growth_time", value=times[large] / times[small]),
        Figure(key="growth_buffers", value=touched[large] / touched[small]),
    )


def _freshen(admin: "psycopg.Connection[tuple[object, ...]]", port: int, *, small: str, large: str) -> None:
    """A new copy of the small database; the large one tidied after the last run, which made it hardly larger."""
    admin.execute(f"drop database if exists {small}".encode())
    admin.execute(f"create database {small} template {database_name(SMALL)}".encode())
    for name in (small, large):
        with psycopg.connect(servers.url(port, name), autocommit=True) as connection:
            connection.execute("vacuum")
    admin.execute("checkpoint")


@contextmanager
def _side(running: Servers, port: int, name: str) -> Iterator[_Side]:
    """Workers on one database, and a producer with an open connection."""
    tuning = POSTGRES.tuning(Work.W2)
    folder = running.folder / f"growth-{name}"
    folder.mkdir()
    log = running.events / f"growth-{name}.log"
    settings = Settings(
        database_url=servers.url(port, name),
        redis_url=running.redis_url(),
        event_log=str(log),
        folder=str(folder),
        processes=tuning.processes,
        concurrency=tuning.concurrency,
    )
    commands = [POSTGRES.worker_command(index) for index in range(tuning.processes)]
    with (
        opened(settings, VARIANTS["postgres"]) as app,
        psycopg.connect(settings.database_url, autocommit=True) as connection,
        WorkerGroup(commands, environment=settings.environment(), cwd=ROOT, log=folder / "workers.log") as workers,
    ):
        register(app)
        template_id = app.templates.find(templates.FLOW).id
        yield _Side(
            name=name, app=app, template_id=template_id, log=EventLog(log), workers=workers, connection=connection
        )


def _touched(admin: "psycopg.Connection[tuple[object, ...]]", name: str) -> int:
    """Buffers touched in a database so far; sessions hand in their counts when they end, so they must be gone."""
    deadline = time.monotonic() + _TIMEOUT_S
    while admin.execute("select 1 from pg_stat_activity where datname = %s", (name,)).fetchone():
        if time.monotonic() > deadline:
            raise BenchError(f"Sessions on {name} did not end: their buffers cannot be counted.")
        time.sleep(0.05)
    row = admin.execute(_TOUCHED, (name,)).fetchone()
    return int(str(row[0])) if row else 0
