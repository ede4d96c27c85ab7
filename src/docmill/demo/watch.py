"""What the demo shows, read from the database at one moment: jobs, steps, workers, and the news since the last look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import func, select, text

from docmill.bootstrap import App
from docmill.db.tables import job_steps, jobs, step_parts, workers
from docmill.db.tables.workers import WorkerStatus
from docmill.model.statuses import JobStatus, StepStatus
from docmill.services.following import JobEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNow:
    """One step of one job."""

    status: StepStatus
    worker: str | None
    """Name of the worker that runs it."""
    failures: int
    crashes: int
    parts: int
    """Pages whose answer is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNow:
    """One job; steps that nobody has touched yet are absent."""

    id: str
    paper: str
    status: JobStatus
    steps: Mapping[str, StepNow]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerNow:
    """One worker process."""

    name: str
    pid: int
    status: WorkerStatus
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """One change of one job (step None) or of one of its steps."""

    at: datetime
    paper: str
    step: str | None
    before: str
    after: str
    reason: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything at one moment."""

    jobs: tuple[JobNow, ...] = ()
    workers: tuple[WorkerNow, ...] = ()
    news: tuple[News, ...] = ()
    callers: Mapping[str, int] = field(default_factory=dict)
    """Paper -> the process that called back about it."""

    @property
    def finished(self) -> bool:
        return bool(self.jobs) and all(job.status.finished for job in self.jobs)


class Watcher:
    """Looks again and again; remembers only which events it has seen."""

    def __init__(self, app: App, names_by_pid: Mapping[int, str]) -> None:
        self._app = app
        self._names_by_pid = names_by_pid
        self._seen: dict[str, int] = {}

    def look(self) -> Snapshot:
        """The present, and what is new since the last look."""
        present, versions = self._present()
        news = self._news(present.jobs, versions)
        # After the news: whoever they tell of is known then.
        return replace(present, news=news, callers=self._callers())

    def glance(self) -> Snapshot:
        """The present alone; the news stays for the next look."""
        return self._present()[0]

    def _present(self) -> tuple[Snapshot, dict[str, int]]:
        with self._app.database.read() as connection:
            worker_rows = connection.execute(select(workers)).all()
            job_rows = connection.execute(select(jobs).order_by(jobs.c.entity_id)).all()
            step_rows = connection.execute(select(job_steps)).all()
            parts = {
                (row.job_id, row.position): row.stored
                for row in connection.execute(
                    select(step_parts.c.job_id, step_parts.c.position, func.count().label("stored")).group_by(
                        step_parts.c.job_id, step_parts.c.position
                    )
                )
            }
        names = {row.id: self._names_by_pid.get(row.pid, "?") for row in worker_rows}
        steps: dict[str, dict[str, StepNow]] = {}
        for row in step_rows:
            steps.setdefault(row.job_id, {})[row.step_key] = StepNow(
                status=StepStatus(row.status),
                worker=names.get(row.worker_id),
                failures=row.failures,
                crashes=row.crashes,
                parts=parts.get((row.job_id, row.position), 0),
            )
        found = tuple(
            JobNow(id=row.id, paper=row.entity_id, status=JobStatus(row.status), steps=steps.get(row.id, {}))
            for row in job_rows
        )
        present = [
            WorkerNow(
                name=names[row.id],
                pid=row.pid,
                status=WorkerStatus(row.status),
                running=sum(step.worker == names[row.id] for job in found for step in job.steps.values()),
            )
            for row in worker_rows
        ]
        snapshot = Snapshot(jobs=found, workers=tuple(sorted(present, key=lambda worker: worker.name)))
        return snapshot, {row.id: row.version for row in job_rows}

    def _callers(self) -> dict[str, int]:
        query = text("select id, called_by from demo_transactions where called_by is not null")
        with self._app.database.read() as connection:
            return {row.id: row.called_by for row in connection.execute(query)}

    def _news(self, found: Sequence[JobNow], versions: Mapping[str, int]) -> tuple[News, ...]:
        news: list[News] = []
        for job in found:
            if versions[job.id] > self._seen.get(job.id, 0):
                for event in self._app.jobs.events(job.id, after=self._seen.get(job.id, 0)):
                    # What came after the present was read is news for the next look, which knows more of it.
                    if event.version <= versions[job.id]:
                        self._seen[job.id] = event.version
                        news.extend(_told(job.paper, event))
        return tuple(sorted(news, key=lambda item: item.at))


def _told(paper: str, event: JobEvent) -> list[News]:
    errors = event.data.get("errors", {})
    news = [
        News(
            at=event.at,
            paper=paper,
            step=key,
            before=before,
            after=after,
            reason=rest[0] if rest else None,
            error=errors.get(key, {}).get("message"),
        )
        for key, before, after, *rest in event.data["steps"]
    ]
    if "job" in event.data:
        before, after = event.data["job"]
        news.append(News(at=event.at, paper=paper, step=None, before=before, after=after, reason=None, error=None))
    return news
