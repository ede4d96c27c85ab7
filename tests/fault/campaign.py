"""A kill campaign: workers armed to die, restarted at once, until every planned death has happened."""

import random
import signal
from collections import Counter, deque
from dataclasses import dataclass, field

from docmill.engine.failpoints import NAMES
from docmill.testing.fleet import Fleet, WorkerProcess
from tests.fault import scenarios

CLIENTS = ("submit.stored", "cancel.stored", "callback.stored", "callback.answered", "resolve.stored")
"""Points that client processes pass."""
MODEL = ("model.asking", "model.answering")
"""Boundaries inside the stand-in model: it was asked, it has answered, and nobody here knows yet."""
POINTS = tuple(name for name in NAMES if name not in CLIENTS)
EVERYTHING = (*CLIENTS, *POINTS, *MODEL)
WORKERS = 2
JOBS = 12
"""Submitted at a time, so that every point is passed again and again."""
RESTLESS = 150
"""Looks at the fleet without a death until somebody is killed from outside: a sweeper needs a corpse."""
_RARE = frozenset({"worker.registered", "drain.begun", "sweep.marked", "sweep.batch"})


@dataclass
class Campaign:
    """Which deaths are still to come, and which have been."""

    fleet: Fleet
    planned: deque[str]
    random: random.Random
    deaths: Counter[str] = field(default_factory=Counter)
    idle: int = 0

    def run(self) -> None:
        """Until all planned deaths have happened; then let plain workers finish."""
        fleet = self.fleet
        for point in [point for point in self.planned if point in CLIENTS]:
            self.planned.remove(point)
            self._client(point)
        for _ in range(WORKERS):
            self._start()
        fleet.until(self._look, "every planned death to happen", timeout=60 + 20.0 * len(self.planned))
        for _ in range(WORKERS):
            fleet.start()
        fleet.finish()

    def _client(self, point: str) -> None:
        """A client dies before it could ring, says it again, and nothing is doubled."""
        if point == "submit.stored":
            said: tuple[str, ...] = ("submit", "fault everything", f"batch-{self.deaths[point]}", "3")
        elif point.startswith("callback."):
            said = ("callbacks", self._answers())
        elif point == "resolve.stored":
            said = ("resolve", self._question())
        else:
            said = ("cancel", self.fleet.submit("fault everything")[0])
        code = self.fleet.run_client(*said, failpoint=f"{point}:1:kill")
        assert code == -signal.SIGKILL, f"the client did not pass {point}"
        assert self.fleet.run_client(*said) == 0
        self.deaths[point] += 1

    def _answers(self) -> str:
        """Callbacks to a job whose steps wait for them."""
        worker = self.fleet.start(ready=True)
        known = {note.key for note in self.fleet.witness.notes("waiting")}
        notes = [note for note in scenarios.waiting(self.fleet) if note.key not in known]
        worker.kill()
        self.fleet.reap()
        return scenarios.answers(self.fleet, "answers", [scenarios.answer(note) for note in notes])

    def _question(self) -> str:
        """An issue that a job waits for."""
        worker = self.fleet.start(ready=True)
        (job,) = self.fleet.submit("fault question")
        asked = "select id from processing_issues where job_id = :job and status = 'open'"
        self.fleet.until(lambda: self.fleet.scalar(asked, job=job), "the question to be asked")
        worker.kill()
        self.fleet.reap()
        return str(self.fleet.scalar(asked, job=job))

    def _start(self) -> None:
        if not self.planned:
            return
        point = self.planned.popleft()
        if point in MODEL:
            self.fleet.start(DOCMILL_WITNESS_KILL=point).failpoint = point
        else:
            nth = 1 if point in _RARE else self.random.randint(1, 6)
            self.fleet.start(f"{point}:{nth}:kill").failpoint = point

    def _look(self) -> bool:
        """Restart who died; true when all are done."""
        fleet = self.fleet
        for worker in fleet.reap():
            assert worker.exit_code == -signal.SIGKILL, f"a worker ended with {worker.exit_code}"
            self._count(worker)
            self._start()
            self.idle = 0
        if not fleet.workers:
            return True
        self.idle += 1
        if fleet.unfinished() < JOBS:
            fleet.submit("fault everything", JOBS)
            fleet.submit("fault saga", 2)
            fleet.submit_batch("fault child", 6, limit=2)
        for worker in fleet.workers:
            if worker.failpoint.startswith("drain.begun") and self._is_ready(worker):
                worker.signal(signal.SIGTERM)
        if self.idle >= RESTLESS:
            # Killed from outside: counts for nothing, and its own death is planned again.
            victim = self.random.choice(fleet.workers)
            self.planned.append(_point(victim))
            victim.failpoint = "outside"
            victim.kill()
        return False

    def _is_ready(self, worker: WorkerProcess) -> bool:
        return any(note.pid == worker.pid for note in self.fleet.witness.notes("ready"))

    def _count(self, worker: WorkerProcess) -> None:
        self.deaths[_point(worker)] += 1


def _point(worker: WorkerProcess) -> str:
    return worker.failpoint.partition(":")[0]


def plan(kills: int, seed: int) -> deque[str]:
    """As many deaths as asked for, spread evenly over all points, in random order."""
    chosen = [EVERYTHING[n % len(EVERYTHING)] for n in range(kills)]
    random.Random(seed).shuffle(chosen)
    return deque(chosen)
