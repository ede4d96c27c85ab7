"""A migrated database and the short way to do things to it: for tests of everything that stands on the store."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, cast

from sqlalchemy import Connection, Row, delete, func, insert, select

from docmill.db import schema
from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import job_events, job_steps, jobs, step_parts, workers
from docmill.db.tables.workers import WorkerStatus
from docmill.engine.batch import Batch, NewJob, Outcome, QueueClaim, Report, StepRun
from docmill.engine.chain import verify_chain
from docmill.engine.events import Completed, Event
from docmill.engine.known import KnownJobs
from docmill.engine.sql.rows import Beginning, HotSql
from docmill.engine.state import JobState, StepState
from docmill.engine.store import PlanSource, Store
from docmill.engine.sweeper import Sweep, Sweeper
from docmill.model.ids import DEFAULT_ORG, derived_id, new_id
from docmill.model.statuses import JobStatus, SkipReason, StepStatus
from docmill.services.templates import Templates
from docmill.templates.compile import CompiledTemplate
from docmill.templates.document import digest, document_from_plan
from docmill.templates.plan import Plan

ANN, BOB = derived_id("worker", "ann"), derived_id("worker", "bob")
OTHER_ORG = derived_id("organisation", "other")


def migrate(url: str) -> None:
    """Bring an empty database to the schema of this release."""
    database = Database(url)
    try:
        with database.write() as connection:
            schema.upgrade(connection)
    finally:
        database.close()


def compiled(plan: Plan) -> CompiledTemplate:
    """A plan as the template it came from."""
    document = document_from_plan(plan)
    return CompiledTemplate(plan=plan, document=document, digest=digest(document))


class Clock:
    """Time that moves only when told to."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Timed:
    """`HotSql` under a clock of the test's own; all other statements are the real ones."""

    def __init__(self, sql: HotSql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock

    def begin(self, ids: Sequence[str], *, wait: bool, queues: Sequence[str] = ()) -> Beginning:
        return self._sql.begin(ids, wait=wait, queues=queues)._replace(now=self._clock.now)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sql, name)


def timed(store: Store, clock: Clock) -> Store:
    """The same store, living by this clock."""
    store.sql = cast(HotSql, Timed(store.sql, clock))
    return store


class Lease(TypedDict):
    """The two fields by which every report is fenced."""

    position: int
    epoch: int


def lease(run: StepRun) -> Lease:
    """For `Completed(**lease(run))` and the like."""
    return {"position": run.step.position, "epoch": run.state.epoch}


@dataclass
class World:
    """One database with two known workers, a store to act through, and looks at what is stored."""

    database: Database
    run_dir: Path
    plans: PlanSource = field(default_factory=PlanSource)

    def __post_init__(self) -> None:
        self._stores: list[Store] = []
        self._templates: dict[tuple[str, str], str] = {}
        self.store = self.new_store()
        self.register_workers(ANN, BOB)

    @cached_property
    def other(self) -> Store:
        """A second store, opened at its first use."""
        return self.new_store()

    def new_store(self) -> Store:
        """Another store on a connection of its own: another process, as far as the database can tell."""
        self._stores.append(Store(self.database.as_engine().session(), self.plans, KnownJobs()))
        return self._stores[-1]

    def close(self) -> None:
        for store in self._stores:
            store.session.close()
        self.database.close()

    # Doing.

    def register_workers(self, *ids: str, lease: float = 3600.0) -> None:
        """Workers that are alive for `lease` seconds (from now on; negative: were)."""
        with self.database.write() as connection:
            now = database_now(connection)
            expires_at = now + timedelta(seconds=lease)
            values = {"host": "h", "boot_id": "b", "pid": 1, "status": WorkerStatus.ALIVE, "started_at": now}
            connection.execute(delete(workers).where(workers.c.id.in_(ids)))
            connection.execute(insert(workers), [{"id": id_, "expires_at": expires_at, **values} for id_ in ids])

    def template(self, plan: Plan, org_id: str = DEFAULT_ORG) -> str:
        """The id of the template with this plan, registered at its first use."""
        template = compiled(plan)
        key = (org_id, template.digest)
        if key not in self._templates:
            self._templates[key] = Templates(self.database, org_id).register(template).id
        return self._templates[key]

    def new_job(
        self, plan: Plan, *, org_id: str = DEFAULT_ORG, id: str | None = None, priority: int = 0, title: str = ""
    ) -> NewJob:
        """A job to submit, for an entity of its own."""
        job_id = id or new_id()
        return NewJob(
            id=job_id,
            template_id=self.template(plan, org_id),
            org_id=org_id,
            entity_type="document",
            entity_id=job_id,
            priority=priority,
            title=title,
        )

    def submit(self, plan: Plan, *, org_id: str = DEFAULT_ORG, id: str | None = None, priority: int = 0) -> str:
        """Submit one job of this plan; its id."""
        job = self.new_job(plan, org_id=org_id, id=id, priority=priority)
        self.store.commit(Batch(submissions=[job]))
        return job.id

    def claim(
        self, limit: int = 100, *, queue: str = "system", worker: str = ANN, turn: int = 0, store: Store | None = None
    ) -> tuple[StepRun, ...]:
        """Claim from one queue."""
        batch = Batch(claims=[QueueClaim(queue=queue, limit=limit, turn=turn)], worker=worker)
        return (store or self.store).commit(batch).started

    def claim_one(self, *, queue: str = "system", worker: str = ANN) -> StepRun:
        """Claim the one step that must be there."""
        (run,) = self.claim(1, queue=queue, worker=worker)
        return run

    def report(self, job_id: str, *events: Event, store: Store | None = None, wait: bool = True) -> tuple[bool, ...]:
        """Report on one job in one transaction; for each event, whether it was accepted."""
        return self.commit(Batch(reports=[Report(job_id=job_id, event=e) for e in events], wait=wait), store).accepted

    def commit(self, batch: Batch, store: Store | None = None) -> Outcome:
        return (store or self.store).commit(batch)

    def complete(self, run: StepRun, result: str | None = '"done"') -> bool:
        return self.report(run.job.id, Completed(**lease(run), result=result))[0]

    def run_to_end(self, queues: Sequence[str] = ("system",)) -> None:
        """Claim and complete whatever is due until nothing is."""
        while runs := [run for queue in queues for run in self.claim(queue=queue)]:
            for run in runs:
                assert self.complete(run)

    def sweep(self, *, own: str = ANN, store: Store | None = None, queues: Sequence[str] = ("system",)) -> Sweep:
        """One sweep by the worker `own`."""
        patience = self.database.patience
        sweeper = Sweeper(store or self.store, run_dir=self.run_dir, own_id=lambda: own, patience=patience)
        return sweeper.sweep(tuple(queues))

    def set_worker(self, worker_id: str, status: WorkerStatus) -> None:
        with self.database.write() as connection:
            connection.execute(workers.update().where(workers.c.id == worker_id).values(status=status))

    def clear(self) -> None:
        """Forget all jobs."""
        with self.database.write() as connection:
            for table in (job_events, step_parts, job_steps, jobs):
                connection.execute(delete(table))

    # Looking.

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        with self.database.read() as connection:
            yield connection

    def job(self, job_id: str) -> Row[Any]:
        with self.looking() as connection:
            return connection.execute(select(jobs).where(jobs.c.id == job_id)).one()

    def steps(self, job_id: str) -> Mapping[str, Row[Any]]:
        """The stored steps by key."""
        with self.looking() as connection:
            query = select(job_steps).where(job_steps.c.job_id == job_id).order_by(job_steps.c.position)
            return {row.step_key: row for row in connection.execute(query)}

    def statuses(self, job_id: str) -> dict[str, str]:
        return {key: row.status for key, row in self.steps(job_id).items()}

    def parts(self, job_id: str) -> dict[tuple[int, str], object]:
        with self.looking() as connection:
            query = select(step_parts).where(step_parts.c.job_id == job_id)
            return {(row.position, row.name): row.value for row in connection.execute(query)}

    def events(self, job_id: str) -> Sequence[Row[Any]]:
        with self.looking() as connection:
            query = select(job_events).where(job_events.c.job_id == job_id).order_by(job_events.c.version)
            return connection.execute(query).all()

    def count(self) -> int:
        """All jobs there are."""
        with self.looking() as connection:
            return connection.execute(select(func.count()).select_from(jobs)).scalar_one()

    def states(self) -> dict[str, JobState]:
        """All jobs as a decision would see them, read through the tables and not through the hot SQL."""
        with self.looking() as connection:
            heads = connection.execute(select(jobs.c.id, jobs.c.status, jobs.c.run, jobs.c.total, jobs.c.held)).all()
            stored = {(row.job_id, row.position): _state(row) for row in connection.execute(select(job_steps))}
        return {
            head.id: JobState(
                JobStatus(head.status),
                tuple(stored.get((head.id, position), StepState()) for position in range(head.total)),
                head.run,
                bool(head.held),
            )
            for head in heads
        }

    def state(self, job_id: str) -> JobState:
        return self.states()[job_id]

    def check(self) -> None:
        """What must hold of every stored job: columns agree with steps, and the chain of events verifies."""
        states = self.states()
        with self.looking() as connection:
            rows = connection.execute(select(jobs)).all()
            # Where there are thousands, every nth stands for its like.
            for row in rows[:: 1 + len(rows) // 200]:
                state = states[row.id]
                assert (row.settled, row.total) == (state.settled, len(state.steps)), "progress disagrees with steps"
                assert (row.finished_at is not None) == state.status.finished
                assert (row.started_at is not None) or state.status in (JobStatus.PENDING, JobStatus.CANCELLED)
                assert verify_chain(connection, row.id) == []


def _state(row: Row[Any]) -> StepState:
    return StepState(
        status=StepStatus(row.status),
        epoch=row.epoch,
        failures=row.failures,
        crashes=row.crashes,
        checkpointed=row.checkpointed,
        worker=row.worker_id,
        due_at=row.due_at,
        deadline=row.deadline_at,
        reason=SkipReason(row.reason) if row.reason else None,
    )
