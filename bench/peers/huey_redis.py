"""huey on Redis (not durable). Steps enqueue their successors; d and e join by a counter in Redis."""

import time

import redis
from huey import RedisHuey

from bench import flow
from bench.meter import Meter
from bench.settings import Kind, Settings

_MANY = 16
"""Above this many slots per consumer, threads: a process each would only measure the scheduler of the machine."""


class HueyPeer:
    """Producer and consumer."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._meter = Meter(settings.event_log, trace=settings.trace)
        self._huey = RedisHuey("bench", url=f"{settings.redis_url}/0", results=True)
        self._counters = redis.Redis.from_url(f"{settings.redis_url}/1")
        self._noop = self._huey.task(name="noop")(self._run_noop)
        self._probe = self._huey.task(name="probe")(self._run_probe)
        self._step = self._huey.task(name="step")(self._run_step)

    def _run_noop(self, number: int) -> flow.Outcome:
        self._meter.noop(number)
        return flow.outcome("noop")

    def _run_probe(self, sent_at: float) -> None:
        self._meter.probed(sent_at)

    def _run_step(self, workflow: int, step: str) -> flow.Outcome:
        outcome = flow.run_step(self._meter, workflow, step, self._settings.wait_s)
        following = flow.successors(step)
        if step in flow.JOINING:
            arrived = self._counters.incr(f"join-{workflow}")
            following = (flow.LAST,) if arrived == len(flow.JOINING) else ()
        for name in following:
            self._step(workflow, name)
        return outcome

    def prepare(self) -> None:
        self._huey.flush()

    def submit(self, kind: Kind, count: int) -> None:
        for number in range(count):
            if kind is Kind.NOOP:
                self._noop(number)
            else:
                self._step(number, flow.FIRST)

    def probe(self, count: int, gap_s: float) -> None:
        for _ in range(count):
            self._probe(time.monotonic())
            time.sleep(gap_s)

    def stored(self, kind: Kind) -> int:
        return int(self._huey.storage.result_store_size())

    def work(self, index: int) -> None:
        slots = self._settings.concurrency
        self._huey.create_consumer(
            workers=slots,
            worker_type="thread" if slots > _MANY else "process",
            periodic=False,
        ).run()


def build(settings: Settings) -> HueyPeer:
    """The peer for these settings."""
    return HueyPeer(settings)
