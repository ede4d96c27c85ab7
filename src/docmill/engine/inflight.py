"""The steps this process runs, by (job, position, epoch)."""

from collections.abc import Callable, Iterable
from threading import Lock

from docmill.engine.batch import StepRun

Key = tuple[str, int, int]


class Inflight:
    """Shared by lanes and runner."""

    def __init__(self, on_lost: Callable[[list[Key]], None]) -> None:
        self._runs: dict[Key, StepRun] = {}
        self._doubted: set[Key] = set()
        self._missing: set[Key] = set()
        self._on_lost = on_lost
        self._lock = Lock()

    def add(self, runs: Iterable[StepRun]) -> None:
        """These steps are ours now."""
        with self._lock:
            self._runs.update({run.key: run for run in runs})

    def remove(self, run: StepRun) -> None:
        """The step was reported, or its lease is lost."""
        with self._lock:
            self._runs.pop(run.key, None)

    def compare(self, ours: set[Key]) -> list[Key]:
        """Given what the database says we run: drop what is no longer ours, return what nobody here knows of.

        Both only on the second sighting in a row: a commit of the other lane may be between its two sides.
        """
        with self._lock:
            here = set(self._runs)
            missing, unknown = here - ours, ours - here
            lost = [key for key in missing if key in self._missing]
            strangers = [key for key in unknown if key in self._doubted]
            self._missing, self._doubted = missing, unknown
            for key in lost:
                self._runs.pop(key, None)
        if lost:
            self._on_lost(lost)
        return strangers

    @property
    def doubtful(self) -> bool:
        """Whether the last comparison left something to be looked at again."""
        return bool(self._missing or self._doubted)
