"""Docmill's own systems under test, and the figures that no peer has: where `bench` meets `bench.docmill`."""

from collections.abc import Callable
from pathlib import Path

import psycopg

from bench.docmill import batches, growth, memory, rates, seed, system
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
    """Numbers that no peer has: memory, batches, model rates and growth. `enqueue_jobs_s` follows from W2."""
    measurements: dict[str, Callable[[], tuple[Result, ...]]] = {
        "memory": lambda: (memory.measure(servers),),
        "batches": lambda: batches.measure(servers),
        "rates": lambda: (rates.measure(servers),),
        "growth": lambda: growth.measure(home, servers),
    }
    results: list[Result] = []
    for name, measure in measurements.items():
        try:
            results.extend(measure())
        except (BenchError, psycopg.Error, DocmillError) as error:
            results.append(Failure(system=DOCMILL_POSTGRES, work=Work.W3, reason=f"{name}: {error}"))
    return tuple(results)
