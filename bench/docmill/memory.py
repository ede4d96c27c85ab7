"""What a worker process weighs with 3,000 model calls in flight.

W3 does not show it: at the engine's speed, and with a wait of 3 s, so many are never in flight in one process.
"""

import time

from bench import flow
from bench.docmill.system import POSTGRES
from bench.measure import ROOT
from bench.meter import EventLog
from bench.processes import BenchError, WorkerGroup
from bench.results import Figure
from bench.servers import Servers
from bench.settings import Kind, Settings

IN_FLIGHT = 3000
_TIMEOUT_S = 60.0


def measure(running: Servers) -> Figure:
    """The peak resident size of one worker at the moment when all its slots wait."""
    folder = running.folder / "memory"
    folder.mkdir()
    log = EventLog(running.events / "memory.log")
    settings = Settings(
        database_url=running.fresh_database("docmill_memory"),
        redis_url=running.redis_url(),
        event_log=str(log.path),
        folder=str(folder),
        processes=1,
        concurrency=IN_FLIGHT,
        wait_s=2 * _TIMEOUT_S,
        trace=True,
    )
    POSTGRES.prepare(settings)
    POSTGRES.submit(settings, Kind.FLOW, IN_FLIGHT)
    command = POSTGRES.worker_command(0)
    with WorkerGroup([command], environment=settings.environment(), cwd=ROOT, log=folder / "worker.log") as workers:
        deadline = time.monotonic() + _TIMEOUT_S
        while sum(1 for _, step in log.in_flight() if step == flow.WAITING) < IN_FLIGHT:
            if time.monotonic() > deadline:
                raise BenchError(f"A worker did not get {IN_FLIGHT:,} steps in flight within {_TIMEOUT_S:.0f} s.")
            workers.check()
            time.sleep(0.2)
            log.read()
        return Figure(key="rss_mb", value=workers.peak_rss_mb())
