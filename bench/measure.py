"""How each workload is measured, the same for every system."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import flow
from bench.meter import EventLog
from bench.processes import BenchError, WorkerGroup
from bench.results import Latency, Takeover, Throughput, Work, quantile
from bench.servers import Servers
from bench.settings import Kind, Settings
from bench.workload import Size, System, Tuning

ROOT = Path(__file__).resolve().parent.parent
MODEL_WAIT_S = 3.0
_CRASH_WAIT_S = 2.0
_POLL_S = 0.02
_STORED_TIMEOUT_S = 10.0
_START_TIMEOUT_S = 30.0
_WARM_UP_PROBES = 20
_PROBE_GAP_S = 0.037
"""Not a divisor of any polling interval in use, so that probes meet every phase of a poll."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A system together with the servers of this run: a `Workload`."""

    system: System
    servers: Servers

    def w1(self, size: Size) -> Throughput:
        """No-op tasks from a filled queue."""
        return self._drain(Work.W1, Kind.NOOP, size, wait_s=0.0)

    def w2(self, size: Size) -> Throughput:
        """Six-step workflows from a filled queue, results stored."""
        return self._drain(Work.W2, Kind.FLOW, size, wait_s=0.0)

    def w3(self, size: Size) -> Throughput:
        """As W2, with a wait of three seconds in step c."""
        return self._drain(Work.W3, Kind.FLOW, size, wait_s=MODEL_WAIT_S)

    def w4(self, size: Size) -> Latency:
        """Enqueue-to-start latency on idle workers; the first probes warm up and are not counted."""
        tuning = self.system.tuning(Work.W4)
        settings, log = self._open(tuning, wait_s=0.0, trace=False)
        self.system.prepare(settings)
        with self._workers(settings, tuning) as workers:
            self.system.submit(settings, Kind.NOOP, 1)
            _wait(log, workers, lambda: bool(log.finished), _START_TIMEOUT_S)
            asked = _WARM_UP_PROBES + size.count
            self.system.probe(settings, asked, _PROBE_GAP_S)
            _wait(log, workers, lambda: len(log.probes) >= asked, size.timeout_s)
        times = [seconds * 1000 for seconds in log.probes[_WARM_UP_PROBES:]]
        if not times:
            raise BenchError(f"{self.system.title} started none of {asked} probes within {size.timeout_s:.0f} s.")
        return Latency(
            system=self.system.name,
            setting=tuning.note,
            probes=size.count,
            answered=len(times),
            p50_ms=quantile(times, 0.5),
            p99_ms=quantile(times, 0.99),
            max_ms=max(times),
        )

    def w5(self, size: Size) -> Takeover:
        """Kill as soon as every slot waits in step c, restart at once, and watch until all is done or time is up."""
        tuning = self.system.tuning(Work.W5)
        settings, log = self._open(tuning, wait_s=_CRASH_WAIT_S, trace=True)
        self.system.prepare(settings)
        target = min(size.count, tuning.slots)
        with self._workers(settings, tuning) as workers:
            self.system.submit(settings, Kind.FLOW, size.count)
            _wait(log, workers, lambda: _waiting(log) >= target, _START_TIMEOUT_S)
            killed_at = time.monotonic()
            workers.kill()
        log.read()
        in_flight, done_before = log.in_flight(), dict(log.ends)
        if not in_flight:
            raise BenchError(f"{self.system.title} had no step in flight at the kill: nothing to take over.")
        progress = _Progress(system=self.system, settings=settings, log=log, kind=Kind.FLOW, count=size.count)
        with self._workers(settings, tuning) as workers:
            _wait(log, workers, progress.complete, size.timeout_s)
        again = [min(late) for key in in_flight if (late := [at for at in log.starts[key] if at > killed_at])]
        all_taken = len(again) == len(in_flight)
        return Takeover(
            system=self.system.name,
            setting=tuning.note,
            asked=size.count,
            finished=progress.finished,
            in_flight=len(in_flight),
            taken_over=len(again),
            seconds=max(again) - killed_at if all_taken else None,
            waited_s=size.timeout_s,
            reran=sum(1 for key, count in done_before.items() if log.ends[key] > count),
        )

    def _drain(self, work: Work, kind: Kind, size: Size, *, wait_s: float) -> Throughput:
        tuning = self.system.tuning(work)
        settings, log = self._open(tuning, wait_s=wait_s, trace=False)
        self.system.prepare(settings)
        enqueue_s = self.system.submit(settings, kind, size.count)
        steps = len(flow.STEPS) if kind is Kind.FLOW else 1
        expected = size.count * steps
        progress = _Progress(system=self.system, settings=settings, log=log, kind=kind, count=size.count)
        with self._workers(settings, tuning) as workers:
            complete = _wait(log, workers, progress.complete, size.timeout_s)
            peak_rss_mb = workers.peak_rss_mb()
            stored = self._read_back(settings, kind, expected if complete else 0)
        if log.first_start is None or log.last_end is None:
            raise BenchError(f"{self.system.title} ran nothing of {work} within {size.timeout_s:.0f} s.")
        seconds = max(log.last_end, progress.seen_at or 0.0) - log.first_start
        # A run cut short is rated by its steps: queues work breadth-first, so few workflows may have ended by then.
        done = size.count if complete else len(log.ends) / steps
        return Throughput(
            system=self.system.name,
            work=work,
            setting=tuning.note,
            asked=size.count,
            finished=progress.finished,
            stored=stored,
            expected_stored=expected,
            seconds=seconds,
            rate=done / seconds if seconds > 0 else 0.0,
            enqueue_rate=size.count / enqueue_s if enqueue_s > 0 else 0.0,
            reran=log.reran(),
            peak_rss_mb=peak_rss_mb,
        )

    def _read_back(self, settings: Settings, kind: Kind, expected: int) -> int:
        """Count stored results; the last ones may be a moment behind the events."""
        deadline = time.monotonic() + _STORED_TIMEOUT_S
        while (stored := self.system.stored(settings, kind)) < expected and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return stored

    def _open(self, tuning: Tuning, *, wait_s: float, trace: bool) -> tuple[Settings, EventLog]:
        """Empty servers and an empty event log for one measurement."""
        path = self.servers.events / f"{self.system.name}-{time.monotonic_ns()}.log"
        folder = self.servers.folder / path.stem
        folder.mkdir()
        self.servers.flush_redis()
        settings = Settings(
            database_url=self.servers.fresh_database(self.system.name.replace("-", "_")),
            redis_url=self.servers.redis_url(),
            event_log=str(path),
            folder=str(folder),
            processes=tuning.processes,
            concurrency=tuning.concurrency,
            wait_s=wait_s,
            trace=trace,
        )
        return settings, EventLog(path)

    def _workers(self, settings: Settings, tuning: Tuning) -> WorkerGroup:
        return WorkerGroup(
            [self.system.worker_command(index) for index in range(tuning.processes)],
            environment=settings.environment(),
            cwd=ROOT,
            log=self.servers.folder / f"{self.system.name}.log",
        )


@dataclass(kw_only=True)
class _Progress:
    """How far a filled queue is worked off: by the event log, or by the store where that knows more."""

    system: System
    settings: Settings
    log: EventLog
    kind: Kind
    count: int
    finished: int = 0
    seen_at: float | None = None
    """When the store first said that all is finished: a moment late, never early."""

    def complete(self) -> bool:
        """Whether all has come to its end. The store is asked only when it cannot be long."""
        self.finished = len(self.log.finished)
        logged = len(flow.STEPS) - 1 if self.kind is Kind.FLOW else 1
        if len(self.log.ends) >= self.count * logged:
            finished = self.system.finished(self.settings)
            if finished is not None:
                self.finished, self.seen_at = finished, time.monotonic()
        return self.finished >= self.count


def _waiting(log: EventLog) -> int:
    """Workflows whose step c has started and not ended."""
    return sum(1 for _, step in log.in_flight() if step == flow.WAITING)


def _wait(log: EventLog, workers: WorkerGroup, done: Callable[[], bool], timeout_s: float) -> bool:
    """Read events until `done`, or until the time is up: then the answer is False."""
    deadline = time.monotonic() + timeout_s
    while True:
        log.read()
        if done():
            return True
        if time.monotonic() > deadline:
            return False
        workers.check()
        time.sleep(_POLL_S)
