"""How much of what is run: the sizes behind `quick` and `full`.

Sizes are chosen so that a drain takes several seconds on two cores at each system's own speed: shorter ones measure
ramp-up, longer ones only cost time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.results import Work
from bench.workload import Size

DOCMILL_POSTGRES = "docmill-postgres"
DOCMILL_PROCESSOR = "docmill-postgres-processor"
DOCMILL_SQLITE = "docmill-sqlite"

Sizes = Mapping[str, Mapping[Work, Size]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which workloads each system runs, and how often the central one (W2) is repeated."""

    sizes: Sizes
    rounds: int
    """The same number for everybody: a repeat in a quieter minute for one side alone would shift the ratio."""


def _sizes(timeout_s: float, **counts: int) -> Mapping[Work, Size]:
    return {Work(name.upper()): Size(count=count, timeout_s=timeout_s) for name, count in counts.items()}


QUICK = Plan(
    rounds=1,
    sizes={
        DOCMILL_POSTGRES: _sizes(30, w2=10_000, w3=6000, w4=100, w5=20),
        DOCMILL_PROCESSOR: _sizes(30, w2=3000),
        DOCMILL_SQLITE: _sizes(30, w2=5000),
        "dbos": _sizes(15, w2=300),
        "procrastinate": _sizes(15, w2=400),
        "saq": _sizes(15, w2=400),
        "huey": _sizes(15, w2=2000),
    },
)

FULL = Plan(
    rounds=3,
    sizes={
        DOCMILL_POSTGRES: _sizes(60, w1=20_000, w2=10_000, w3=12_000, w4=200, w5=20),
        DOCMILL_PROCESSOR: _sizes(60, w2=5000),
        DOCMILL_SQLITE: _sizes(60, w1=10_000, w2=5000, w3=6000, w4=200, w5=20),
        "celery": _sizes(40, w1=3000, w2=500, w3=1000, w4=200, w5=4),
        "dbos": _sizes(40, w1=500, w2=500, w3=1000, w4=200, w5=20),
        "procrastinate": _sizes(40, w1=2000, w2=800, w3=1000, w4=200, w5=20),
        "saq": _sizes(40, w1=2000, w2=800, w3=1000, w4=200, w5=20),
        "huey": _sizes(40, w1=10_000, w2=4000, w3=1000, w4=200, w5=20),
    },
)
