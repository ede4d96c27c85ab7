"""Docmill's own systems under test: the place where the engine meets the benchmark.

Fill in when the engine exists. Each system implements `bench.workload.System` under one of the names in `bench.plan`
(`docmill-postgres`, `docmill-postgres-processor`, `docmill-sqlite`); `bench.measure.Measured` does the rest.
"""

from bench.results import Figure
from bench.servers import Servers
from bench.workload import System


def systems(servers: Servers) -> tuple[System, ...]:
    """All systems of Docmill, each to be measured on the workloads the plan has for its name."""
    return ()


def figures(servers: Servers) -> tuple[Figure, ...]:
    """Numbers that no peer has: `growth_time` and `growth_buffers`.

    `enqueue_jobs_s` and `rss_mb` follow from W2 and W3 of `docmill-postgres`; a figure of that name given here wins.
    """
    return ()
