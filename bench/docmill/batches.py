"""What batches cost: seconds to submit one of ten thousand jobs, and how fast one runs within the default limit."""

import time

from bench.docmill import templates
from bench.docmill.peer import VARIANTS, flow_jobs, opened
from bench.docmill.system import POSTGRES, SQLITE, DocmillSystem
from bench.measure import ROOT
from bench.processes import BenchError, WorkerGroup
from bench.results import Figure, Work
from bench.servers import Servers
from bench.settings import Settings
from docmill.bootstrap import App

SUBMITTED = 10_000
RUN = 2_000
_TIMEOUT_S = 120.0


def measure(running: Servers) -> tuple[Figure, ...]:
    """The figures of both databases; the clock runs from the call of `Batches.submit` to its return."""
    return (
        Figure(key="batch_submit_s", value=_submit(running, POSTGRES, "docmill_batch")),
        Figure(key="batch_submit_sqlite_s", value=_submit(running, SQLITE, "docmill_batch_sqlite")),
        Figure(key="batch_jobs_s", value=_run(running)),
    )


def _settings(running: Servers, system: DocmillSystem, name: str) -> Settings:
    folder = running.folder / name
    folder.mkdir()
    tuning = system.tuning(Work.W2)
    return Settings(
        database_url=running.fresh_database(name),
        redis_url=running.redis_url(),
        event_log=str(running.events / f"{name}.log"),
        folder=str(folder),
        processes=tuning.processes,
        concurrency=tuning.concurrency,
    )


def _submit(running: Servers, system: DocmillSystem, name: str) -> float:
    """The better of two: the first meets empty caches."""
    settings = _settings(running, system, name)
    system.prepare(settings)
    times = []
    with opened(settings, VARIANTS[system.variant]) as app:
        template = app.templates.find(templates.FLOW)
        for begin in (0, SUBMITTED):
            jobs = flow_jobs(template.id, range(begin, begin + SUBMITTED))
            began = time.perf_counter()
            app.batches.submit(jobs)
            times.append(time.perf_counter() - began)
    return min(times)


def _run(running: Servers) -> float:
    """Jobs per second of a batch of W2 workflows with ten active at a time, on PostgreSQL."""
    settings = _settings(running, POSTGRES, "docmill_batch_run")
    POSTGRES.prepare(settings)
    commands = [POSTGRES.worker_command(index) for index in range(settings.processes)]
    log = running.folder / "docmill_batch_run" / "workers.log"
    with (
        opened(settings, VARIANTS[POSTGRES.variant]) as app,
        WorkerGroup(commands, environment=settings.environment(), cwd=ROOT, log=log) as workers,
    ):
        template = app.templates.find(templates.FLOW)
        # The first few wait for the workers to start.
        for numbers in (range(RUN, RUN + 20), range(RUN)):
            batch = app.batches.submit(flow_jobs(template.id, numbers))
            _wait(app, batch.id, workers)
        view = app.batches.get(batch.id)
        if view.started_at is not None and view.finished_at is not None:
            return RUN / (view.finished_at - view.started_at).total_seconds()
    raise BenchError("A batch ended without having begun.")


def _wait(app: App, batch_id: str, workers: WorkerGroup) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    for _ in app.batches.watch(batch_id):
        workers.check()
        if time.monotonic() > deadline:
            raise BenchError(f"A batch did not end within {_TIMEOUT_S:.0f} s.")
