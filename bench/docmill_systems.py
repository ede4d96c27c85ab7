"""Docmill's own systems under test, and the figures that no peer has: where `bench` meets `bench.docmill`."""

from pathlib import Path

import psycopg

from bench.docmill import growth, seed, system
from bench.plan import DOCMILL_POSTGRES
from bench.processes import BenchError
from bench.results import Failure, Result, Work
from bench.servers import Servers
from bench.workload import System
from docmill.model.errors import DocmillError


def systems(servers: Servers) -> tuple[System, ...]:
    """All systems of Docmill, each to be measured on the workloads the plan has for its name."""
    return system.ALL


def setup(home: Path) -> None:
    """Make what is kept between runs."""
    seed.ensure(home)


def figures(home: Path, servers: Servers) -> tuple[Result, ...]:
    """Numbers that no peer has: `growth_time` and `growth_buffers`.

    `enqueue_jobs_s` and `rss_mb` follow from W2 and W3 of `docmill-postgres`; a figure of that name given here wins.
    """
    try:
        return growth.measure(home, servers)
    except (BenchError, psycopg.Error, DocmillError) as error:
        return (Failure(system=DOCMILL_POSTGRES, work=Work.W2, reason=f"Growth was not measured: {error}"),)
