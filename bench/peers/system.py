"""A peer as a `System`: every role is played by a process in the peer's own environment."""

import json
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import ROOT
from bench.peers import environment
from bench.peers.catalogue import PeerSpec
from bench.processes import BenchError, die_with_parent
from bench.results import Work
from bench.settings import Kind, Settings
from bench.workload import Tuning

_ROLE_TIMEOUT_S = 120


@dataclass(frozen=True, kw_only=True)
class PeerSystem:
    """One peer, driven from outside."""

    spec: PeerSpec
    home: Path

    @property
    def name(self) -> str:
        """A short identifier."""
        return self.spec.name

    @property
    def title(self) -> str:
        """The name in the report."""
        return self.spec.title

    @property
    def durable(self) -> bool:
        """Whether an acknowledged job survives kill -9 of everything."""
        return self.spec.durable

    def tuning(self, work: Work) -> Tuning:
        """The best reasonable set-up for a workload."""
        return self.spec.tuning(work)

    def prepare(self, settings: Settings) -> None:
        """Create the schema."""
        self._play(settings, "prepare")

    def submit(self, settings: Settings, kind: Kind, count: int) -> float:
        """Enqueue jobs numbered from 0; return the seconds it took, start-up of the producer excluded."""
        return self._play(settings, "submit", kind.value, str(count))["seconds"]

    def probe(self, settings: Settings, count: int, gap_s: float) -> None:
        """Enqueue latency probes."""
        self._play(settings, "probe", str(count), str(gap_s))

    def stored(self, settings: Settings, kind: Kind) -> int:
        """Count what the peer's own store holds."""
        return int(self._play(settings, "stored", kind.value)["stored"])

    def finished(self, settings: Settings) -> int | None:
        """The last step is code of ours: the event log shows it."""
        return None

    def worker_command(self, index: int) -> Sequence[str]:
        """The command line of one worker process."""
        return self._command("work", str(index))

    def _command(self, *words: str) -> list[str]:
        return [str(environment.python_of(self.home, self.name)), "-m", "bench.peers.role", self.spec.module, *words]

    def _play(self, settings: Settings, *words: str) -> dict[str, float]:
        return answer_of(self._command(*words), settings, f"{self.title} failed to {words[0]}")


def answer_of(command: Sequence[str], settings: Settings, failure: str) -> dict[str, float]:
    """Run a role that ends, and return what it answers."""
    done = subprocess.run(
        command,
        env=settings.environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_ROLE_TIMEOUT_S,
        check=False,
        preexec_fn=die_with_parent(signal.SIGKILL),
    )
    if done.returncode:
        raise BenchError(f"{failure}:\n{done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer
