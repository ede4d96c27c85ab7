"""`python -m bench setup|quick|full|peers|docmill`: see README.md in this folder."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console

from bench import docmill_systems, plan, servers
from bench.measure import ROOT
from bench.peers import catalogue, environment
from bench.peers.catalogue import PeerSpec
from bench.peers.system import PeerSystem
from bench.processes import BenchError
from bench.report import Report
from bench.results import Result, Work
from bench.run import run_plan, subject
from bench.workload import System

HOME = ROOT / ".bench"
_PEER_NAMES = tuple(spec.name for spec in catalogue.ALL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: all measured and complete; 1: something failed or was lost; 2: wrong use; 130: interrupted."""
    options = _parser().parse_args(arguments)
    # A polite end must unwind like Ctrl-C does, or servers and workers would be left to the kernel alone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        specs = _chosen(options)
        for spec in specs:
            environment.ensure(HOME, spec.name)
        if options.command != "peers":
            docmill_systems.setup(HOME)
        return 0 if options.command == "setup" else _measure(options, specs)
    except KeyboardInterrupt:
        print("Interrupted; servers and workers are ended.", file=sys.stderr)
        return 130
    except (BenchError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 1


def _measure(options: argparse.Namespace, specs: Sequence[PeerSpec]) -> int:
    chosen = plan.QUICK if options.command == "quick" else plan.FULL
    results: list[Result] = []
    with servers.running(HOME) as running:
        load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores before the start"
        print(f"One durable write takes {running.fdatasync_us:.0f} µs here; {load}.", file=sys.stderr)
        ours: tuple[System, ...] = () if options.command == "peers" else docmill_systems.systems(running)
        peers = tuple(PeerSystem(spec=spec, home=HOME) for spec in specs)
        results.extend(run_plan(chosen, running, ours=ours, peers=peers, works=frozenset(options.work or Work)))
        if ours and options.work is None:
            results.extend(docmill_systems.figures(HOME, running))
    subjects = [subject(system, ours=True) for system in ours] + [subject(system, ours=False) for system in peers]
    report = Report(subjects=subjects, results=results)
    console = Console(width=None if sys.stdout.isatty() else 160)
    for table in report.tables():
        console.print(table)
    print(report.json_line(), flush=True)
    return 0 if report.sound else 1


def _chosen(options: argparse.Namespace) -> Sequence[PeerSpec]:
    match options.command:
        case "docmill":
            return ()
        case "quick":
            usual: Sequence[PeerSpec] = catalogue.QUICK
        case _:
            usual = catalogue.ALL
    return usual if options.only is None else [spec for spec in catalogue.ALL if spec.name in options.only]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Docmill and its peers, side by side.")
    parser.add_argument("command", choices=("setup", "quick", "full", "peers", "docmill"))
    parser.add_argument("--only", nargs="+", choices=_PEER_NAMES, metavar="PEER", help=f"of {', '.join(_PEER_NAMES)}")
    parser.add_argument("--work", nargs="+", type=Work, choices=tuple(Work), metavar="W", help="of W1 … W5")
    return parser


if __name__ == "__main__":
    sys.exit(main())
