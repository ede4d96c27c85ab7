"""The outside counter: workers append one line per event to a file, the driver reads the file.

One `write` with O_APPEND is atomic for lines this short, costs a few microseconds, survives kill -9 of the writer and
works from any process, thread or coroutine of any system. Times are CLOCK_MONOTONIC, which all processes of one
machine share.
"""

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

NOOP_STEP = "noop"
_FIRST_STEPS = frozenset({"a", NOOP_STEP})
_LAST_STEPS = frozenset({"f", NOOP_STEP})


class Meter:
    """The worker's side. Keep one per process tree; the descriptor may be inherited over fork."""

    def __init__(self, path: str, *, trace: bool) -> None:
        self._descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
        self._trace = trace

    def started(self, workflow: int, step: str) -> None:
        """A step's code begins. Only first steps are logged unless tracing: they start the clock."""
        if self._trace or step in _FIRST_STEPS:
            self._write(f"S {workflow} {step} {time.monotonic():.6f}\n")

    def ended(self, workflow: int, step: str) -> None:
        """A step's code is done; its result is about to be stored."""
        self._write(f"E {workflow} {step} {time.monotonic():.6f}\n")

    def noop(self, number: int) -> None:
        """A task of W1 ran."""
        self.started(number, NOOP_STEP)
        self.ended(number, NOOP_STEP)

    def probed(self, sent_at: float) -> None:
        """A latency probe of W4, enqueued at `sent_at` (time.monotonic), has reached its code."""
        self._write(f"L {time.monotonic() - sent_at:.6f}\n")

    def _write(self, line: str) -> None:
        os.write(self._descriptor, line.encode())


StepKey = tuple[int, str]


@dataclass
class EventLog:
    """The driver's side: reads what was appended since last time and keeps the totals."""

    path: Path
    starts: dict[StepKey, list[float]] = field(default_factory=dict)
    ends: Counter[StepKey] = field(default_factory=Counter)
    probes: list[float] = field(default_factory=list)
    finished: set[int] = field(default_factory=set)
    first_start: float | None = None
    last_end: float | None = None
    _offset: int = 0

    def read(self) -> None:
        """Take in all complete new lines."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._offset)
            chunk = file.read()
        complete = chunk.rfind(b"\n") + 1
        self._offset += complete
        for line in chunk[:complete].decode().splitlines():
            self._take(line.split())

    def in_flight(self) -> frozenset[StepKey]:
        """Steps that began and did not end (meaningful with tracing)."""
        return frozenset(key for key in self.starts if key not in self.ends)

    def reran(self) -> int:
        """Steps whose code ended more than once."""
        return sum(1 for count in self.ends.values() if count > 1)

    def _take(self, words: list[str]) -> None:
        match words:
            case ["S", workflow, step, at]:
                moment = float(at)
                self.starts.setdefault((int(workflow), step), []).append(moment)
                self.first_start = moment if self.first_start is None else min(self.first_start, moment)
            case ["E", workflow, step, at]:
                self.ends[int(workflow), step] += 1
                if step in _LAST_STEPS:
                    self.finished.add(int(workflow))
                self.last_end = max(self.last_end or 0.0, float(at))
            case ["L", seconds]:
                self.probes.append(float(seconds))
            case _:
                raise ValueError(f"Unreadable event {words!r} in {self.path}: was the file written by something else?")
