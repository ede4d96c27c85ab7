"""Procrastinate on PostgreSQL. Steps enqueue their successors; d and e join by a counter in the same database.

Procrastinate keeps no results: each one travels to its successor as an argument, which is stored with the job.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import procrastinate
import psycopg

from bench import flow
from bench.meter import Meter
from bench.settings import Kind, Settings

_BATCH = 500
_JOIN = """
insert into bench_join values (%(workflow)s, 1)
on conflict (workflow) do update set arrived = bench_join.arrived + 1 returning arrived
"""


class ProcrastinatePeer:
    """Producer and worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._meter = Meter(settings.event_log, trace=settings.trace)
        connector = procrastinate.PsycopgConnector(conninfo=settings.database_url, min_size=2, max_size=12)
        self._app = procrastinate.App(connector=connector)
        self._noop = self._app.task(name="noop")(self._run_noop)
        self._probe = self._app.task(name="probe")(self._run_probe)
        self._step = self._app.task(name="step")(self._run_step)

    async def _run_noop(self, number: int) -> None:
        self._meter.noop(number)

    async def _run_probe(self, sent_at: float) -> None:
        self._meter.probed(sent_at)

    async def _run_step(self, workflow: int, step: str, previous: flow.Outcome | None = None) -> None:
        outcome = await flow.run_step_async(self._meter, workflow, step, self._settings.wait_s)
        following = flow.successors(step)
        if step in flow.JOINING:
            row = await self._app.connector.execute_query_one_async(_JOIN, workflow=workflow)
            following = (flow.LAST,) if row["arrived"] == len(flow.JOINING) else ()
        jobs = [{"workflow": workflow, "step": name, "previous": outcome} for name in following]
        if len(jobs) == 1:
            await self._step.defer_async(**jobs[0])
        elif jobs:
            await self._step.batch_defer_async(*jobs)

    def prepare(self) -> None:
        async def create() -> None:
            await self._app.schema_manager.apply_schema_async()
            await self._app.connector.execute_query_async(
                "create table bench_join (workflow bigint primary key, arrived int not null)"
            )

        self._run(create)

    def submit(self, kind: Kind, count: int) -> None:
        async def enqueue() -> None:
            for begin in range(0, count, _BATCH):
                numbers = range(begin, min(count, begin + _BATCH))
                if kind is Kind.NOOP:
                    await self._noop.batch_defer_async(*[{"number": number} for number in numbers])
                else:
                    await self._step.batch_defer_async(*[{"workflow": n, "step": flow.FIRST} for n in numbers])

        self._run(enqueue)

    def probe(self, count: int, gap_s: float) -> None:
        async def enqueue() -> None:
            for _ in range(count):
                await self._probe.defer_async(sent_at=time.monotonic())
                await asyncio.sleep(gap_s)

        self._run(enqueue)

    def stored(self, kind: Kind) -> int:
        with psycopg.connect(self._settings.database_url) as connection:
            row = connection.execute("select count(*) from procrastinate_jobs where status = 'succeeded'").fetchone()
        return int(row[0]) if row else 0

    def work(self, index: int) -> None:
        self._run(lambda: self._app.run_worker_async(concurrency=self._settings.concurrency, name=f"worker-{index}"))

    def _run(self, action: Callable[[], Awaitable[None]]) -> None:
        async def opened() -> None:
            async with self._app.open_async():
                await action()

        asyncio.run(opened())


def build(settings: Settings) -> ProcrastinatePeer:
    """The peer for these settings."""
    return ProcrastinatePeer(settings)
