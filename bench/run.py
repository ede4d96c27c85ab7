"""Runs a plan over systems: rounds interleaved, so that a slow minute of the machine hits everybody alike."""

import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import assert_never

import psycopg

from bench.measure import Measured
from bench.plan import Plan
from bench.processes import BenchError
from bench.report import Subject
from bench.results import Failure, Figure, Latency, Result, Takeover, Throughput, Work
from bench.servers import Servers
from bench.workload import Size, System, Workload

REPEATED = Work.W2


def run_plan(
    plan: Plan, servers: Servers, *, ours: Sequence[System], peers: Sequence[System], works: Collection[Work]
) -> Iterator[Result]:
    """All results, as they come. W2 goes in rounds over all systems; the others follow once each."""
    for _ in range(plan.rounds if REPEATED in works else 0):
        for system in _alternating(ours, peers):
            size = plan.sizes.get(system.name, {}).get(REPEATED)
            if size is not None:
                yield _one(Measured(system=system, servers=servers), REPEATED, size)
    for work in Work:
        if work is REPEATED or work not in works:
            continue
        for system in (*ours, *peers):
            size = plan.sizes.get(system.name, {}).get(work)
            if size is not None:
                yield _one(Measured(system=system, servers=servers), work, size)


def _alternating(ours: Sequence[System], peers: Sequence[System]) -> list[System]:
    """Ours and peers in turn, so that neither side has the quieter half of a round to itself."""
    pairs = zip_longest(ours, peers)
    return [system for pair in pairs for system in pair if system is not None]


def subject(system: System, *, ours: bool) -> Subject:
    """What the report needs to know of a system."""
    return Subject(name=system.name, title=system.title, durable=system.durable, ours=ours)


def _one(workload: Workload, work: Work, size: Size) -> Result:
    """One measurement; a failure becomes a record, so that the others still run."""
    try:
        result = _measure(workload, work, size)
    except (BenchError, psycopg.Error, subprocess.TimeoutExpired) as error:
        result = Failure(system=workload.system.name, work=work, reason=str(error))
    print(f"{work} {workload.system.title}: {_short(result)}", file=sys.stderr, flush=True)
    return result


def _measure(workload: Workload, work: Work, size: Size) -> Result:
    match work:
        case Work.W1:
            return workload.w1(size)
        case Work.W2:
            return workload.w2(size)
        case Work.W3:
            return workload.w3(size)
        case Work.W4:
            return workload.w4(size)
        case Work.W5:
            return workload.w5(size)
        case _:
            assert_never(work)


def _short(result: Result) -> str:
    match result:
        case Throughput():
            return f"{result.rate:,.1f}/s, {result.finished} of {result.asked} in {result.seconds:.1f} s"
        case Latency():
            return f"p50 {result.p50_ms:.1f} ms, p99 {result.p99_ms:.1f} ms"
        case Takeover():
            return f"{result.taken_over} of {result.in_flight} taken over, {result.finished} of {result.asked} finished"
        case Failure():
            return f"FAILED: {result.reason}"
        case Figure():
            return f"{result.key} = {result.value}"
        case _:
            assert_never(result)
