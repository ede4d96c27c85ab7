"""Books in a fleet: what the tests of long jobs and their dependents do and look at, told once."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, text

from docmill.db.tables import workers
from docmill.engine.batch import NewJob
from docmill.model.ids import DEFAULT_ORG
from docmill.services.jobs import JobView, StepView
from docmill.testing import book
from docmill.testing.fleet import Fleet, Lease, WorkerProcess

LEASE = Lease(duration=1.0, heartbeat=0.25, sweep=0.2)
BOOK = "gravity"
CHUNKS, CONNECTIONS = 61, 106
"""Of the book with 61 pages: 60 pairs of neighbours, and 46 that lie 15 apart."""


@dataclass(frozen=True)
class Library:
    """Tables and templates of the books, and a fleet that processes them."""

    fleet: Fleet

    # Doing.

    def add(self, pages: int, name: str = BOOK) -> None:
        """A book in its first edition."""
        self.write("insert into books (id, pages, edition) values (:id, :pages, 1)", id=name, pages=pages)

    def write(self, statement: str, **values: object) -> None:
        with self.fleet.database.write() as connection:
            connection.execute(text(statement), values)

    def process(self, *, hold: Sequence[str] = (), name: str = BOOK) -> str:
        """Submit the job of a book; the named steps wait at their gates."""
        return self._submit("book", name, hold)

    def connect(self, *, hold: Sequence[str] = (), name: str = BOOK) -> str:
        """Submit the job that looks for connections in a book."""
        return self._submit("detect connections", name, hold)

    def _submit(self, template: str, name: str, hold: Sequence[str]) -> str:
        template_id = self.fleet.app.templates.find(template).id
        about = {"entity_type": "book", "entity_id": name, "metadata": {"hold": list(hold)}}
        job = NewJob(template_id=template_id, org_id=DEFAULT_ORG, **about)  # type: ignore[arg-type]  # as named
        self.fleet.app.jobs.submit([job])
        return job.id

    def pause(self, worker: WorkerProcess) -> None:
        """Stop a worker; on SQLite between its writes, for with the one write lock in hand it would hold up all."""
        lock = self.fleet.database.writer_lock()
        held: AbstractContextManager[object] = closing(lock) if lock else nullcontext()
        with held, lock or nullcontext():
            worker.signal(signal.SIGSTOP)
            self.fleet.until(lambda: worker.stopped, "the worker to stop")

    def wake(self, worker: WorkerProcess) -> None:
        """Let it go on, and wait until it has found out that it was declared dead and taken a new name."""
        worker.signal(signal.SIGCONT)
        named = "select count(*) from workers where pid = :pid and status = '{}'"
        self.until(lambda: self.fleet.scalar(named.format("alive"), pid=worker.pid), "the zombie to take a new name")
        assert self.fleet.scalar(named.format("dead"), pid=worker.pid), "nobody declared the sleeper dead"

    def open(self, gate: str) -> None:
        self.fleet.witness.open_gate(gate)

    # Waiting.

    def until(self, condition: Callable[[], object], what: str) -> None:
        self.fleet.until(condition, what)

    def wait_held(self, step_key: str, worker: WorkerProcess | None = None) -> None:
        """Until the step waits at its gate, in this worker if one is named."""

        def held() -> bool:
            notes = self.fleet.witness.notes("holding")
            return any(note.key == step_key and (worker is None or note.pid == worker.pid) for note in notes)

        self.until(held, f"{step_key} to wait at its gate")

    def wait_completed(self, job: str, step_key: str, *, run: int = 1) -> None:
        """Until the step has completed in this run of the job."""
        self.until(
            lambda: self.view(job).summary.run == run and self.step(job, step_key).status == "COMPLETED",
            f"{step_key} to complete in run {run}",
        )

    # Looking.

    def view(self, job: str) -> JobView:
        return self.fleet.app.jobs.get(job)

    def step(self, job: str, step_key: str) -> StepView:
        return next(step for step in self.view(job).steps if step.step_key == step_key)

    def status(self, job: str) -> str:
        return self.view(job).summary.status.value

    def crashes(self) -> object:
        return self.fleet.scalar("select sum(crashes) from processing_job_steps")

    def jobs(self, template: str) -> list[str]:
        """The jobs of a template, oldest first."""
        return [job.id for job in reversed(self.fleet.app.jobs.list()) if job.template == template]

    def chunks(self) -> list[str]:
        """Ids of all chunks there are, stale ones too."""
        return self._column("select id from book_chunks order by position, id")

    def current(self) -> list[str]:
        """Ids of the chunks that are part of a book."""
        return self._column("select id from book_chunks where superseded_at is null order by position, id")

    def connections(self) -> list[str]:
        return self._column("select id from book_connections order by id")

    def _column(self, query: str) -> list[str]:
        with self.fleet.database.read() as connection:
            return [row[0] for row in connection.execute(text(query))]

    def calls(self) -> Counter[str]:
        """How often the model was called for each batch."""
        return self.fleet.witness.counts("called")

    def lease_ends(self, worker: WorkerProcess) -> datetime:
        """When the lease of a worker ends, unless it is renewed."""
        with self.fleet.database.read() as connection:
            query = select(workers.c.expires_at).where(workers.c.pid == worker.pid, workers.c.status == "alive")
            found: datetime = connection.execute(query).scalar_one()
        return found


@contextmanager
def open_library(
    open_fleet: Callable[..., AbstractContextManager[Fleet]], *, chunker: str = "saveChunks", lease: Lease = LEASE
) -> Iterator[Library]:
    """A library without books and workers."""
    with open_fleet(lease=lease, plugins=(book.PLUGIN,)) as fleet:
        with fleet.database.write() as connection:
            for statement in book.TABLES:
                connection.execute(text(statement))
        fleet.register(book.template(chunker), book.CONNECT)
        yield Library(fleet)
