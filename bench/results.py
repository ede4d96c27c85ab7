"""What was measured, as frozen records."""

import statistics
from dataclasses import dataclass
from enum import StrEnum


class Work(StrEnum):
    """The five workloads; README.md says what each one is."""

    W1 = "W1"
    W2 = "W2"
    W3 = "W3"
    W4 = "W4"
    W5 = "W5"


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """One drain of a filled queue (W1, W2, W3)."""

    system: str
    work: Work
    setting: str
    asked: int
    finished: int
    stored: int
    """Results (or finished rows) read back from the system's own store afterwards."""
    expected_stored: int
    seconds: float
    rate: float
    """Tasks or workflows per second, from the first start to the last end."""
    enqueue_rate: float
    reran: int
    peak_rss_mb: float

    @property
    def complete(self) -> bool:
        """All work finished and all its results were found again."""
        return self.finished == self.asked and self.stored >= self.expected_stored


@dataclass(frozen=True, kw_only=True)
class Latency:
    """From the call that enqueues to the first line of the task's code, on idle workers (W4)."""

    system: str
    setting: str
    probes: int
    answered: int
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, kw_only=True)
class Takeover:
    """kill -9 of all workers with steps in flight, and an immediate restart (W5)."""

    system: str
    setting: str
    asked: int
    finished: int
    in_flight: int
    taken_over: int
    seconds: float | None
    """From the kill until the last of the steps in flight runs again; None when some never did in `waited_s`."""
    waited_s: float
    reran: int
    """Steps that had ended before the kill and ended again after it."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number of Docmill alone, by the key it has in the JSON line."""

    key: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A measurement that could not be made, so that the report shows the gap."""

    system: str
    work: Work
    reason: str


Result = Throughput | Latency | Takeover | Figure | Failure


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Repeats of one throughput: the median is the figure, least and most show the noise."""

    median: float
    least: float
    most: float
    repeats: int


def spread(rates: list[float]) -> Spread:
    """Summarise at least one rate."""
    return Spread(median=statistics.median(rates), least=min(rates), most=max(rates), repeats=len(rates))


def quantile(values: list[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
