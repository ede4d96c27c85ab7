"""Real worker processes on one installation: started, killed, stopped and woken by a test, gone when it ends."""

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, text

from docmill.bootstrap import App, open_app
from docmill.db.database import Database
from docmill.engine.batch import NewJob
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.settings import load_settings
from docmill.templates.compile import compile_template
from docmill.testing.nursery import WORKERS, Nursery
from docmill.testing.processes import tail
from docmill.testing.waiting import TimedOut, until
from docmill.testing.witness import VARIABLE, Witness

PLUGIN = "docmill.testing.fault_steps"
MUTATIONS = "docmill.testing.mutations"
PATIENCE = 90.0
"""Seconds a test waits for what should take a few: a slow machine must not fail it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Lease times of the workers, in seconds."""

    duration: float = 2.0
    heartbeat: float = 0.4
    sweep: float = 0.3


class WorkerProcess:
    """One process of the fleet."""

    def __init__(self, pid: int, failpoint: str, exit_code: Callable[[], int | None]) -> None:
        self.pid = pid
        self.failpoint = failpoint
        self._exit_code = exit_code

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal that killed it."""
        return self._exit_code()

    @property
    def running(self) -> bool:
        return self.exit_code is None

    def signal(self, number: signal.Signals) -> None:
        if self.running:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self.wait()

    @property
    def stopped(self) -> bool:
        """Whether it is paused by SIGSTOP: every thread of it, for they stop one after the other."""
        states = set()
        for stat in Path(f"/proc/{self.pid}/task").glob("*/stat"):
            # A thread may end while we look.
            with suppress(OSError):
                states.add(stat.read_text().rpartition(")")[2].split()[0])
        return states == {"T"}

    def wait(self, timeout: float = PATIENCE) -> int:
        """Its exit code, once it has ended."""
        until(lambda: not self.running, timeout, what=f"process {self.pid} to end")
        code = self.exit_code
        assert code is not None
        return code


@cache
def nursery() -> Nursery:
    """The nursery of this test process."""
    made = Nursery(WORKERS)
    atexit.register(made.close)
    return made


class Fleet:
    """The worker processes of one installation, and the test's own way in."""

    def __init__(self, app: App, witness: Witness, lease: Lease, environment: Mapping[str, str]) -> None:
        self.app = app
        self.witness = witness
        self.workers: list[WorkerProcess] = []
        self.deaths = 0
        home = app.settings.home
        self.log = home / "workers.log"
        # Not above: importing it reads the environment of the process.
        from docmill.testing import fault_steps

        inherited = {key: value for key, value in os.environ.items() if not key.startswith("DOCMILL_")}
        # An empty file of its own: nobody's settings reach the workers of a test.
        (home / "docmill.yaml").touch()
        self._environment = {
            **inherited,
            "DOCMILL_CONFIG": str(home / "docmill.yaml"),
            "DOCMILL_HOME": str(home),
            "DOCMILL_DATABASE_URL": app.settings.url,
            "DOCMILL_PLUGINS": ",".join(app.settings.plugins),
            "DOCMILL_LEASE__DURATION": str(lease.duration),
            "DOCMILL_LEASE__HEARTBEAT": str(lease.heartbeat),
            "DOCMILL_LEASE__SWEEP": str(lease.sweep),
            # The stand-in model answers as fast as it is asked.
            "DOCMILL_AI__RATE": "100000",
            "DOCMILL_AI__BURST": "1000",
            "DOCMILL_AI__PRICES": fault_steps.PRICES,
            VARIABLE: str(witness.directory),
            **environment,
        }

    @property
    def database(self) -> Database:
        return self.app.database

    def start(
        self, failpoint: str = "", *, ready: bool = False, fresh: bool = False, **environment: str
    ) -> WorkerProcess:
        """Start one worker, armed or not; with `ready`, return once it claims; with `fresh`, in a new interpreter."""
        if failpoint:
            environment = {**environment, "DOCMILL_FAILPOINT": failpoint}
        worker = (self._launch if fresh else self._spawn)("docmill.testing.worker_process", (), environment)
        worker.failpoint = failpoint
        self.workers.append(worker)
        if ready:
            self.wait_ready(worker)
        return worker

    def run_client(self, *arguments: str, failpoint: str = "") -> int:
        """Run one client process (`docmill.testing.client_process`) to its end; its exit code."""
        client = self.start_client(*arguments, failpoint=failpoint)
        try:
            return client.wait()
        finally:
            client.kill()

    def start_client(self, *arguments: str, failpoint: str = "") -> WorkerProcess:
        """Start one client process; the caller waits for its end."""
        armed = {"DOCMILL_FAILPOINT": failpoint} if failpoint else {}
        return self._spawn("docmill.testing.client_process", arguments, armed)

    def start_process(self, module: str, *arguments: str, **environment: str) -> WorkerProcess:
        """Start a module's `main` in the environment of this installation; gone with the test, if not before."""
        return self._spawn(module, arguments, environment)

    def _spawn(self, module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> WorkerProcess:
        pid = nursery().spawn(module, {**self._environment, **environment}, self.log, arguments)
        return WorkerProcess(pid, "", lambda: nursery().exit_code(pid))

    def _launch(self, module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> WorkerProcess:
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env={**self._environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        return WorkerProcess(process.pid, "", process.poll)

    def wait_ready(self, worker: WorkerProcess) -> None:
        """Wait until the worker has told the witness that it serves."""
        self.until(
            lambda: not worker.running or any(note.pid == worker.pid for note in self.witness.notes("ready")),
            f"worker {worker.pid} to be ready",
        )
        assert worker.running, f"worker {worker.pid} ended while starting:\n{tail(self.log, 40)}"

    @contextmanager
    def nobody_writes(self) -> Iterator[None]:
        """On SQLite, hold the lock of writers: whoever is stopped meanwhile is in no transaction.

        Had it that lock itself, nobody could do anything, wrong or right, until it woke.
        """
        lock = self.database.writer_lock()
        if lock is None:
            yield
            return
        with closing(lock), lock:
            yield

    def stop(self, worker: WorkerProcess) -> None:
        """Pause a worker, and wait until every thread of it stands still."""
        worker.signal(signal.SIGSTOP)
        self.until(lambda: worker.stopped, "the worker to stop")

    def reap(self) -> list[WorkerProcess]:
        """Workers that have ended since the last look."""
        ended = [worker for worker in self.workers if not worker.running]
        self.workers = [worker for worker in self.workers if worker not in ended]
        self.deaths += len(ended)
        return ended

    def until(self, condition: Callable[[], object], what: str, timeout: float = PATIENCE) -> None:
        """Wait for a condition; a failure ends with the workers' last words."""
        try:
            until(condition, timeout, interval=0.03, what=what)
        except TimedOut as error:
            raise AssertionError(f"{error}\n{tail(self.log, 60)}") from error

    def register(self, *templates: str) -> None:
        """Store templates."""
        for source in templates:
            self.app.templates.register(compile_template(source, catalogue=self.app.catalogue))

    def new_jobs(
        self, template: str, count: int, *, org_id: str = DEFAULT_ORG, metadata: Mapping[str, object] | None = None
    ) -> list[NewJob]:
        """Jobs of the newest version of a template, each for an entity of its own, not yet submitted."""
        template_id = self.app.templates.find(template).id
        given = metadata or {}
        return [
            NewJob(template_id=template_id, org_id=org_id, entity_type="thing", entity_id=new_id(), metadata=given)
            for _ in range(count)
        ]

    def submit(self, template: str, count: int = 1, **metadata: object) -> list[str]:
        """Submit jobs; their ids."""
        new = self.new_jobs(template, count, metadata=metadata)
        self.app.jobs.submit(new)
        return [job.id for job in new]

    def submit_batch(self, template: str, count: int, limit: int) -> str:
        """Submit jobs as a batch, of which only so many may be active; its id."""
        return self.app.batches.submit(self.new_jobs(template, count), limit=limit).id

    def unfinished(self) -> int:
        """How many jobs have not come to their end."""
        with self.database.read() as connection:
            return count(connection, "processing_jobs where finished_at is null")

    def finish(self, timeout: float = PATIENCE) -> None:
        """Wait until every job has ended."""
        self.until(lambda: self.unfinished() == 0, "all jobs to finish", timeout)

    def scalar(self, query: str, **parameters: object) -> object:
        """One value from the database."""
        with self.database.read() as connection:
            return connection.execute(text(query), parameters).scalar()

    def close(self) -> None:
        """Kill what still runs, stopped or not."""
        for worker in self.workers:
            worker.kill()
        self.workers.clear()


def count(connection: Connection, what: str) -> int:
    return int(connection.execute(text(f"select count(*) from {what}")).scalar_one())


@contextmanager
def open_fleet(
    home: Path, url: str | None, *, lease: Lease | None = None, plugins: Sequence[str] = (), **environment: str
) -> Iterator[Fleet]:
    """A fleet without workers on a fresh or existing installation; everything it started is gone afterwards."""
    witness = Witness(home / "witness")
    settings = load_settings(home=home, database_url=url, plugins=(PLUGIN, *plugins))
    with open_app(settings, check_schema=url is None) as app:
        fleet = Fleet(app, witness, lease or Lease(), environment)
        try:
            prepare(app)
            yield fleet
        finally:
            fleet.close()
            witness.close()


def prepare(app: App) -> None:
    """Schema, the effects' table and the templates every test uses; nothing happens if they are there."""
    from docmill.db import schema
    from docmill.testing import fault_steps

    with app.database.write() as connection:
        if schema.current_revision(connection) is None:
            schema.upgrade(connection)
        if not connection.dialect.has_table(connection, "effects"):
            connection.execute(text(fault_steps.EFFECTS))
    for source in (fault_steps.CHILD, fault_steps.EVERYTHING, fault_steps.SAGA, fault_steps.QUESTION):
        app.templates.register(compile_template(source, catalogue=app.catalogue))
