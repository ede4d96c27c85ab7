"""SAQ on PostgreSQL. Steps enqueue their successors; d and e join by a counter in the same database."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import psycopg
from saq import Worker
from saq.queue.postgres import PostgresQueue

from bench import flow
from bench.meter import Meter
from bench.settings import Kind, Settings

_JOIN = """
insert into bench_join values (%s, 1)
on conflict (workflow) do update set arrived = bench_join.arrived + 1 returning arrived
"""
_POOL = 20
_TRIES = 3
"""Default 1, which makes a swept job fail instead of running again."""
_SWEEP_S = 5
"""How often jobs of dead workers are looked for; default 60."""


class SaqPeer:
    """Producer and worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._meter = Meter(settings.event_log, trace=settings.trace)

    async def _run_noop(self, _: Mapping[str, object], *, number: int) -> flow.Outcome:
        self._meter.noop(number)
        return flow.outcome("noop")

    async def _run_probe(self, _: Mapping[str, object], *, sent_at: float) -> None:
        self._meter.probed(sent_at)

    async def _run_step(self, _: Mapping[str, object], *, workflow: int, step: str) -> flow.Outcome:
        outcome = await flow.run_step_async(self._meter, workflow, step, self._settings.wait_s)
        following = flow.successors(step)
        if step in flow.JOINING:
            async with self._queue.pool.connection() as connection:
                cursor = await connection.execute(_JOIN, (workflow,))
                (arrived,) = await cursor.fetchone()
            following = (flow.LAST,) if arrived == len(flow.JOINING) else ()
        for name in following:
            await self._queue.enqueue("step", workflow=workflow, step=name, retries=_TRIES)
        return outcome

    def prepare(self) -> None:
        async def create() -> None:
            async with self._queue.pool.connection() as connection:
                await connection.execute("create table bench_join (workflow bigint primary key, arrived int not null)")

        self._run(create)

    def submit(self, kind: Kind, count: int) -> None:
        async def enqueue(number: int) -> None:
            if kind is Kind.NOOP:
                await self._queue.enqueue("noop", number=number)
            else:
                await self._queue.enqueue("step", workflow=number, step=flow.FIRST, retries=_TRIES)

        async def all_of_them() -> None:
            for begin in range(0, count, _POOL):
                await asyncio.gather(*(enqueue(number) for number in range(begin, min(count, begin + _POOL))))

        self._run(all_of_them)

    def probe(self, count: int, gap_s: float) -> None:
        async def enqueue() -> None:
            for _ in range(count):
                await self._queue.enqueue("probe", sent_at=time.monotonic())
                await asyncio.sleep(gap_s)

        self._run(enqueue)

    def stored(self, kind: Kind) -> int:
        with psycopg.connect(self._settings.database_url) as connection:
            row = connection.execute("select count(*) from saq_jobs where status = 'complete'").fetchone()
        return int(row[0]) if row else 0

    def work(self, index: int) -> None:
        functions = [("noop", self._run_noop), ("probe", self._run_probe), ("step", self._run_step)]

        async def serve() -> None:
            worker = Worker(
                self._queue,
                functions,
                concurrency=self._settings.concurrency,
                id=f"worker-{index}",
                timers={"sweep": _SWEEP_S},
            )
            await worker.start()

        self._run(serve)

    def _run(self, action: Callable[[], Awaitable[None]]) -> None:
        """SAQ binds its pool to the running loop, so the queue is made inside it."""

        async def connected() -> None:
            self._queue = PostgresQueue(url=self._settings.database_url, min_size=4, max_size=_POOL)
            await self._queue.connect()
            try:
                await action()
            finally:
                await self._queue.disconnect()

        asyncio.run(connected())


def build(settings: Settings) -> SaqPeer:
    """The peer for these settings."""
    return SaqPeer(settings)
