"""Runs inside a peer's environment: `python -m bench.peers.role MODULE prepare|submit|probe|stored|work [ARGUMENT …]`.

Answers with one JSON line on standard output.
"""

import importlib
import json
import os
import signal
import sys
import time
from typing import Protocol, cast

from bench.processes import die_with_parent
from bench.settings import Kind, Settings


class Peer(Protocol):
    """What each peer's module builds from the settings; see `bench.workload.System` for the meaning of each."""

    def prepare(self) -> None: ...

    def submit(self, kind: Kind, count: int) -> float | None: ...

    def probe(self, count: int, gap_s: float) -> None: ...

    def stored(self, kind: Kind) -> int: ...

    def work(self, index: int) -> None: ...


def build(module: str) -> Peer:
    """Import the peer's module, which needs the peer installed, and build the peer."""
    return cast(Peer, importlib.import_module(f"bench.peers.{module}").build(Settings.from_environment()))


def play(peer: Peer, role: str, *arguments: str) -> None:
    """Play one role to its end and print the answer."""
    match role, arguments:
        case "prepare", ():
            peer.prepare()
            answer: dict[str, float] = {}
        case "submit", (kind, count):
            began = time.perf_counter()
            took = peer.submit(Kind(kind), int(count))
            answer = {"seconds": time.perf_counter() - began if took is None else took}
        case "probe", (count, gap_s):
            peer.probe(int(count), float(gap_s))
            answer = {}
        case "stored", (kind,):
            answer = {"stored": peer.stored(Kind(kind))}
        case "work", (index,):
            peer.work(int(index))
            answer = {}
        case _:
            raise SystemExit(f"Unknown role {role!r} with arguments {arguments!r}: see {__name__}.")
    print(json.dumps(answer), flush=True)


def main(module: str, role: str, *arguments: str) -> None:
    """Play one role of the peer in this module."""
    # Pools fork children of their own: those must not outlive this process either.
    os.register_at_fork(after_in_child=die_with_parent(signal.SIGKILL))
    play(build(module), role, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
