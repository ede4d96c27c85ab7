"""Who the peers are and how each is set up, for the best figure a careful user would reach on two cores."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.results import Work
from bench.workload import Tuning


@dataclass(frozen=True, kw_only=True)
class PeerSpec:
    """One peer: `name` is also its environment and its requirements file."""

    name: str
    title: str
    module: str
    durable: bool
    usual: Tuning
    special: Mapping[Work, Tuning] = field(default_factory=dict)

    def tuning(self, work: Work) -> Tuning:
        """The set-up for a workload."""
        return self.special.get(work, self.usual)


def _async(concurrency: int = 100) -> Tuning:
    return Tuning(processes=2, concurrency=concurrency, note=f"2 processes × {concurrency} coroutines")


_THREADS = Tuning(processes=2, concurrency=100, note="2 processes × 100 threads")
_ONE_ASYNC = Tuning(processes=1, concurrency=100, note="1 process × 100 coroutines")

CELERY = PeerSpec(
    name="celery",
    title="Celery (Redis)",
    module="celery_redis",
    durable=False,
    usual=Tuning(processes=1, concurrency=2, note="prefork 2"),
    special={Work.W3: _THREADS},
)
DBOS = PeerSpec(
    name="dbos",
    title="DBOS (PostgreSQL)",
    module="dbos_postgres",
    durable=True,
    usual=_async(),
    special={Work.W5: _ONE_ASYNC},
)
PROCRASTINATE = PeerSpec(
    name="procrastinate",
    title="Procrastinate (PostgreSQL)",
    module="procrastinate_postgres",
    durable=True,
    usual=_async(),
    special={Work.W5: _ONE_ASYNC},
)
SAQ = PeerSpec(
    name="saq",
    title="SAQ (PostgreSQL)",
    module="saq_postgres",
    durable=True,
    usual=_async(),
    special={Work.W5: _ONE_ASYNC},
)
HUEY = PeerSpec(
    name="huey",
    title="huey (Redis)",
    module="huey_redis",
    durable=False,
    usual=Tuning(processes=1, concurrency=8, note="8 processes"),
    special={Work.W3: _THREADS},
)

ALL = (CELERY, DBOS, PROCRASTINATE, SAQ, HUEY)
QUICK = (DBOS, PROCRASTINATE, SAQ, HUEY)
