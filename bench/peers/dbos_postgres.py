"""DBOS on PostgreSQL: a durable workflow function of six steps, started through a DBOS queue."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
from dbos import DBOS, DBOSClient

from bench import flow
from bench.meter import Meter
from bench.settings import Kind, Settings

_QUEUE = "bench"
_VERSION = "bench-1"
_POLL_S = 0.1
"""Default 1.0, which would put half a second into W4; the effect on W2 was not measured apart."""


class DbosPeer:
    """Producer and worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._meter = Meter(settings.event_log, trace=settings.trace)

    def _launch(self, executor: str) -> None:
        DBOS(
            config={
                "name": "bench",
                "system_database_url": self._settings.database_url,
                "application_version": _VERSION,
                # A fixed name per worker lets a restarted worker recover what it had in flight.
                "executor_id": executor,
                "log_level": "ERROR",
                "run_migrations": True,
            }
        )
        self._register()
        DBOS.launch()
        DBOS.register_queue(_QUEUE, worker_concurrency=self._settings.concurrency, polling_interval_sec=_POLL_S)

    def _register(self) -> None:
        meter, wait_s = self._meter, self._settings.wait_s

        def step_named(name: str) -> Callable[[int], Coroutine[Any, Any, flow.Outcome]]:
            @DBOS.step(name=name)
            async def step(workflow: int) -> flow.Outcome:
                return await flow.run_step_async(meter, workflow, name, wait_s)

            return step  # type: ignore[no-any-return, unused-ignore]

        steps = {name: step_named(name) for name in flow.STEPS}

        @DBOS.workflow(name=Kind.FLOW.value)
        async def run_flow(workflow: int) -> flow.Outcome:
            for name in ("a", "b", "c"):
                await steps[name](workflow)
            await asyncio.gather(steps["d"](workflow), steps["e"](workflow))
            return await steps["f"](workflow)

        @DBOS.workflow(name=Kind.NOOP.value)
        async def run_noop(number: int) -> flow.Outcome:
            meter.noop(number)
            return flow.outcome("noop")

        @DBOS.workflow(name="probe")
        async def run_probe(sent_at: float) -> None:
            meter.probed(sent_at)

    def prepare(self) -> None:
        self._launch("prepare")
        DBOS.destroy()

    def submit(self, kind: Kind, count: int) -> None:
        client = DBOSClient(system_database_url=self._settings.database_url)
        for number in range(count):
            client.enqueue(_options(kind.value), number)

    def probe(self, count: int, gap_s: float) -> None:
        client = DBOSClient(system_database_url=self._settings.database_url)
        for _ in range(count):
            client.enqueue(_options("probe"), time.monotonic())
            time.sleep(gap_s)

    def stored(self, kind: Kind) -> int:
        statement = (
            "select count(*) from dbos.workflow_status where status = 'SUCCESS'"
            if kind is Kind.NOOP
            else "select count(*) from dbos.operation_outputs where output is not null"
        )
        with psycopg.connect(self._settings.database_url) as connection:
            row = connection.execute(statement).fetchone()
        return int(row[0]) if row else 0

    def work(self, index: int) -> None:
        self._launch(f"worker-{index}")
        threading.Event().wait()


def _options(workflow: str) -> Any:
    return {"workflow_name": workflow, "queue_name": _QUEUE, "app_version": _VERSION}


def build(settings: Settings) -> DbosPeer:
    """The peer for these settings."""
    return DbosPeer(settings)
