"""Celery on Redis (not durable): chain and chord, results stored, late acknowledgement so a crash may redeliver."""

import time
from collections.abc import Callable
from typing import Any

import redis
from celery import Celery, chain, chord, group

from bench import flow
from bench.meter import Meter
from bench.settings import Kind, Settings

_MANY = 16
"""Above this many slots per worker, threads: a process each would only measure the scheduler of the machine."""


class CeleryPeer:
    """Producer and worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._meter = Meter(settings.event_log, trace=settings.trace)
        self._app = Celery("bench", broker=f"{settings.redis_url}/0", backend=f"{settings.redis_url}/1")
        self._app.conf.update(
            task_acks_late=True,
            task_reject_on_worker_lost=True,
            worker_prefetch_multiplier=4,
            worker_hijack_root_logger=False,
            broker_connection_retry_on_startup=True,
            # kombu's default of 10 is too few for 100 threads.
            broker_transport_options={"max_connections": 2 * settings.concurrency + 20},
        )
        self._noop, self._probe = self._simple_tasks()
        self._steps = {name: self._app.task(name=name)(self._step_named(name)) for name in flow.STEPS}

    def _simple_tasks(self) -> tuple[Any, Any]:
        """Celery makes tasks of functions, not of bound methods."""
        meter = self._meter

        @self._app.task(name="noop")
        def noop(number: int) -> flow.Outcome:
            meter.noop(number)
            return flow.outcome("noop")

        @self._app.task(name="probe", ignore_result=True)
        def probe(sent_at: float) -> None:
            meter.probed(sent_at)

        return noop, probe

    def _step_named(self, name: str) -> Callable[[object, int], flow.Outcome]:
        def step(previous: object, workflow: int) -> flow.Outcome:
            return flow.run_step(self._meter, workflow, name, self._settings.wait_s)

        return step

    def _flow(self, workflow: int) -> Any:
        a, b, c, d, e, f = (self._steps[name] for name in flow.STEPS)
        parallel = chord(group(d.s(workflow), e.s(workflow)), f.s(workflow))
        return chain(a.s(None, workflow), b.s(workflow), c.s(workflow), parallel)

    def prepare(self) -> None:
        """Redis is emptied by the driver; Celery needs nothing."""

    def submit(self, kind: Kind, count: int) -> None:
        with self._app.producer_pool.acquire(block=True) as producer:
            for number in range(count):
                if kind is Kind.NOOP:
                    self._noop.apply_async((number,), producer=producer)
                else:
                    self._flow(number).apply_async(producer=producer)

    def probe(self, count: int, gap_s: float) -> None:
        for _ in range(count):
            self._probe.delay(time.monotonic())
            time.sleep(gap_s)

    def stored(self, kind: Kind) -> int:
        results = redis.Redis.from_url(f"{self._settings.redis_url}/1")
        return sum(1 for _ in results.scan_iter("celery-task-meta-*", count=1000))

    def work(self, index: int) -> None:
        slots = self._settings.concurrency
        pool = "threads" if slots > _MANY else "prefork"
        options = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"]
        self._app.worker_main(["worker", "-P", pool, "-c", str(slots), "-n", f"worker-{index}@bench", *options])


def build(settings: Settings) -> CeleryPeer:
    """The peer for these settings."""
    return CeleryPeer(settings)
