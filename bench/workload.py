"""The two faces of a measured system.

`System` is what an implementation supplies: how to prepare, fill, run workers and count. `Workload` is what the command
line calls: one function per workload, each returning a record. `bench.measure.Measured` turns any System into a
Workload, so that Docmill and every peer are measured by the same code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.results import Latency, Takeover, Throughput, Work
from bench.settings import Kind, Settings


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How the workers of a system are set up for one workload."""

    processes: int
    """Worker processes the driver starts."""
    concurrency: int
    """Tasks in flight in each of them."""
    note: str
    """A few words for the report."""
    capacity: int | None = None
    """Tasks that can run at once in all; given where it is not processes × concurrency."""

    @property
    def slots(self) -> int:
        """Tasks that can run at once over all worker processes."""
        return self.capacity if self.capacity is not None else self.processes * self.concurrency


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much work of one workload, and the time after which waiting for it ends."""

    count: int
    timeout_s: float


class System(Protocol):
    """A queue or engine under test. All methods run in the driver; workers are commands that the driver starts."""

    @property
    def name(self) -> str:
        """A short identifier: `docmill-postgres`, `dbos`."""
        ...

    @property
    def title(self) -> str:
        """The name in the report."""
        ...

    @property
    def durable(self) -> bool:
        """Whether an acknowledged job survives kill -9 of everything, servers included."""
        ...

    def tuning(self, work: Work) -> Tuning:
        """The best reasonable set-up for a workload."""
        ...

    def prepare(self, settings: Settings) -> None:
        """Create the schema in a database that is empty."""
        ...

    def submit(self, settings: Settings, kind: Kind, count: int) -> float:
        """Enqueue `count` jobs numbered from 0, as fast as the system can; return the seconds it took."""
        ...

    def probe(self, settings: Settings, count: int, gap_s: float) -> None:
        """Enqueue `count` tasks that call `Meter.probed(time.monotonic() at the call)`, `gap_s` apart."""
        ...

    def stored(self, settings: Settings, kind: Kind) -> int:
        """Count step results (or finished step rows) in the system's own store."""
        ...

    def finished(self, settings: Settings) -> int | None:
        """Count jobs that the system's own store has as finished.

        None where the last step is code of ours, so that the event log shows its end.
        """
        ...

    def worker_command(self, index: int) -> Sequence[str]:
        """The command line of worker process `index`; it finds its settings in the environment."""
        ...


class Workload(Protocol):
    """One function per workload."""

    @property
    def system(self) -> System:
        """What is measured."""
        ...

    def w1(self, size: Size) -> Throughput:
        """No-op tasks from a filled queue."""
        ...

    def w2(self, size: Size) -> Throughput:
        """Six-step workflows from a filled queue, results stored."""
        ...

    def w3(self, size: Size) -> Throughput:
        """As W2, with a wait of three seconds in step c."""
        ...

    def w4(self, size: Size) -> Latency:
        """Enqueue-to-start latency on idle workers."""
        ...

    def w5(self, size: Size) -> Takeover:
        """kill -9 with steps in flight, restart, and see."""
        ...
