"""What a producer or worker process of a measured system needs to know, handed over in one environment variable."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Self

VARIABLE = "DOCMILL_BENCH_SETTINGS"


class Kind(StrEnum):
    """What is put on the queue."""

    NOOP = "noop"
    FLOW = "flow"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One measurement: where the servers are, where events go, how the workers are tuned."""

    database_url: str
    redis_url: str
    event_log: str
    folder: str
    """A folder of this measurement, on the disk where the servers keep their data."""
    processes: int
    concurrency: int
    wait_s: float = 0.0
    """How long step c waits, as if for a model's answer."""
    trace: bool = False
    """Also log the start of every step, not only of the first: W5 needs it, rates do not."""

    def environment(self) -> Mapping[str, str]:
        """The current environment plus these settings, for a child process."""
        return {**os.environ, VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> Self:
        """Read back what `environment` wrote."""
        return cls(**json.loads(os.environ[VARIABLE]))
