"""Docmill's own systems under test, and the figures that no peer has: where `bench` meets `bench.docmill`."""

from bench.docmill import system
from bench.results import Figure
from bench.servers import Servers
from bench.workload import System


def systems(servers: Servers) -> tuple[System, ...]:
    """All systems of Docmill, each to be measured on the workloads the plan has for its name."""
    return system.ALL


def figures(servers: Servers) -> tuple[Figure, ...]:
    """Numbers that no peer has: `growth_time` and `growth_buffers`.

    `enqueue_jobs_s` and `rss_mb` follow from W2 and W3 of `docmill-postgres`; a figure of that name given here wins.
    """
    return ()
