"""The real store behind the driver's `System`: the same programs that drive `decide` drive SQLite and PostgreSQL."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select

from docmill.db.tables import jobs
from docmill.db.tables.workers import WorkerStatus
from docmill.engine.batch import Batch, Outcome, QueueClaim, StepRun
from docmill.engine.batch import Report as StoredReport
from docmill.engine.events import Cancelled, Claimed, Freed, Rerun
from docmill.engine.known import KnownJobs
from docmill.engine.locked import SUSPECT
from docmill.engine.state import JobState
from docmill.engine.store import Store
from docmill.model.ids import derived_id
from docmill.model.statuses import StepKind, StepStatus
from docmill.templates.plan import Plan
from docmill.testing.oracle import START
from docmill.testing.system import Lease, Report
from docmill.testing.world import Clock, World, timed

QUEUES = tuple(queue for kind in StepKind for queue in (kind.value, kind.value + SUSPECT))


class StoreSystem:
    """One program's jobs in an otherwise empty database.

    Two stores take turns, as two processes would: what one remembers of a job is old after the other's next write.
    """

    def __init__(self, world: World, workers: Sequence[str]) -> None:
        world.clear()
        self.clock = Clock(START)
        self._world = world
        self._workers = {derived_id("worker", name): name for name in workers}
        self._sweeper = "sweeper"
        world.register_workers(*self._workers)
        sessions = (world.store.session, world.other.session)
        self._stores = [timed(Store(session, world.plans, KnownJobs()), self.clock) for session in sessions]
        self._turn = 0
        self._jobs: dict[str, str] = {}
        self._states: dict[str, JobState] | None = None

    def submit(self, job_id: str, plan: Plan, held: bool = False) -> None:
        stored_id = derived_id("job", job_id)
        self._jobs[stored_id] = job_id
        new = self._world.new_job(plan, id=stored_id)
        self._commit(Batch(submissions=[replace(new, held=held)]))

    def free(self, job_id: str) -> bool:
        return self.report_events(job_id, Freed())[0]

    def claim(self, worker: str, limit: int, job_id: str | None = None) -> Sequence[Lease]:
        worker_id = derived_id("worker", worker)
        if job_id is not None:
            return self._claim_of(job_id, worker_id, limit)
        leases: list[Lease] = []
        for queue in QUEUES:
            if len(leases) < limit:
                claim = QueueClaim(queue=queue, limit=limit - len(leases), turn=self._turn)
                leases += map(self._lease, self._commit(Batch(claims=[claim], worker=worker_id)).started)
        return leases

    def _claim_of(self, job_id: str, worker_id: str, limit: int) -> Sequence[Lease]:
        """Steps of one job, as a message that names the job makes a worker do."""
        due = [
            position
            for position, step in enumerate(self.snapshot(job_id).steps)
            if step.status is StepStatus.READY and (step.due_at is None or step.due_at <= self.clock.now)
        ][:limit]
        accepted = self.report_events(job_id, *[Claimed(position=position, worker=worker_id) for position in due])
        state = self.snapshot(job_id)
        return [
            Lease(job_id, position, state.steps[position].epoch)
            for position, good in zip(due, accepted, strict=True)
            if good
        ]

    def report(self, reports: Sequence[Report]) -> Sequence[bool]:
        batch = [StoredReport(job_id=derived_id("job", job_id), event=event) for job_id, event in reports]
        return self._commit(Batch(reports=batch)).accepted

    def report_events(self, job_id: str, *events: Claimed | Freed | Cancelled | Rerun) -> Sequence[bool]:
        batch = [StoredReport(job_id=derived_id("job", job_id), event=event) for event in events]
        return self._commit(Batch(reports=batch)).accepted

    def sweep(self, worker: str) -> Sequence[Lease]:
        """The worker's row says dead; the real sweeper finds its steps."""
        worker_id = derived_id("worker", worker)
        store = self._next_store()
        with store.session.read():
            held = store.sql.running_steps(worker_id, 1000)
        self._world.set_worker(worker_id, WorkerStatus.DEAD)
        sweep = self._world.sweep(own=self._sweeper, store=store, queues=QUEUES)
        assert sweep.recovered == len(held)
        self._world.set_worker(worker_id, WorkerStatus.ALIVE)
        self._states = None
        return [Lease(self._jobs[job], position, epoch) for job, position, epoch in held]

    def cancel(self, job_id: str) -> bool:
        return self.report_events(job_id, Cancelled())[0]

    def rerun(self, job_id: str, positions: frozenset[int], keep_checkpoints: bool, held: bool = False) -> bool:
        event = Rerun(positions=positions, keep_checkpoints=keep_checkpoints, held=held)
        return self.report_events(job_id, event)[0]

    def snapshot(self, job_id: str) -> JobState:
        if self._states is None:
            self._states = self._world.states()
        state = self._states[derived_id("job", job_id)]
        # Workers under the names that the driver gave them.
        steps = tuple(step._replace(worker=self._workers[step.worker]) if step.worker else step for step in state.steps)
        return state._replace(steps=steps)

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def _lease(self, run: StepRun) -> Lease:
        return Lease(self._jobs[run.job.id], run.step.position, run.state.epoch)

    def _next_store(self) -> Store:
        self._turn += 1
        return self._stores[self._turn % 2]

    def _commit(self, batch: Batch) -> Outcome:
        self._states = None
        outcome = self._next_store().commit(batch)
        if outcome.finished:
            self._end_undoings(outcome.finished)
        return outcome

    def _end_undoings(self, finished: Sequence[str]) -> None:
        """The oracle knows nothing of the jobs that undo others: they end before anybody can claim of them."""
        query = select(jobs.c.id).where(jobs.c.parent_job_id.in_(finished), jobs.c.finished_at.is_(None))
        with self._world.looking() as connection:
            undoings = connection.execute(query).scalars().all()
        if undoings:
            self._next_store().commit(Batch(reports=[StoredReport(job_id=id_, event=Cancelled()) for id_ in undoings]))
