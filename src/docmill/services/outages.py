"""A model that is away, as a run sees it: what it waits for, and when waiting has no sense any more.

The gateway leaves a model alone that failed too often, and probes it once in a while. So a run alone would go on for
hours, a probe at a time, over documents that nobody can read yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from docmill.ai.breaker import Breaker
from docmill.ai.clock import Clock, database_clock
from docmill.ai.rows import read_breaker
from docmill.db.database import Database
from docmill.db.tables import documents, job_steps
from docmill.model.ai import BreakerState
from docmill.model.errors import DocmillError
from docmill.model.statuses import StepStatus

PROBES = 5
"""Probes in a row that may fail during one run: by the defaults, so many minutes."""
_SAID = {
    "model_unavailable": "cannot be reached",
    "model_timeout": "does not answer in time",
    "model_rate_limited": "takes no more requests",
}
_SAYS_NOTHING = "does not answer"


class ModelAway(DocmillError):
    """The model of a run stays away; what needs it waits, and the same command goes on with it."""

    code = "model_unavailable"

    def __init__(self, outage: "Outage", *, done: int, total: int) -> None:
        super().__init__(
            f"{outage.message or f'{outage.model} {outage.said}.'} {outage.probes} tries one after the other failed; "
            f"{done} of {total} documents are done, the others wait. The same command goes on from here; with another "
            "--model, or none, they are read without it.",
            model=outage.model,
            done=done,
            total=total,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A model that does not answer just now."""

    model: str
    said: str
    """What is wrong with it, as what follows its name in a sentence."""
    message: str
    """What the provider or the network said last; empty if nobody heard it in this run."""
    next_try: datetime
    seconds: float
    """Until then; 0: now."""
    probes: int
    """How many have failed in a row since the run began."""

    @property
    def hopeless(self) -> bool:
        """Whether to wait any longer has no sense."""
        return self.probes >= PROBES


class Vigil:
    """Watches over the model of one run. Look now and then: it counts what happens between two looks."""

    def __init__(self, database: Database, model: str, *, open_seconds: float, clock: Clock = database_clock) -> None:
        self._database = database
        self._model = model
        self._open = timedelta(seconds=open_seconds)
        self._clock = clock
        self._before: int | None = None

    def look(self, document_ids: Sequence[str]) -> Outage | None:
        """How long these documents wait for the model; None if it is well, as far as anybody knows."""
        with self._database.read() as connection:
            breaker = read_breaker(connection, self._model, lock=False)
            if breaker is None or breaker.failures == 0:
                self._before = None
                return None
            return self._outage(breaker, _waiting(connection, document_ids), self._clock(connection))

    def _failed_probes(self, breaker: Breaker) -> int:
        """Once it is open only probes count as failures; those it had at the first look are none of this run."""
        if breaker.state is BreakerState.CLOSED:
            self._before = None
            return 0
        if self._before is None or breaker.failures < self._before:
            self._before = breaker.failures
        return breaker.failures - self._before

    def _outage(self, breaker: Breaker, waiting: "Sequence[_Waiting]", now: datetime) -> Outage | None:
        match breaker.state:
            case BreakerState.OPEN if breaker.opened_at is not None:
                next_try = breaker.opened_at + self._open
            case BreakerState.CLOSED if waiting:
                next_try = min(each.due_at for each in waiting)
            case BreakerState.CLOSED:
                return None
            case _:
                next_try = now
        last = max(waiting, key=lambda each: each.due_at, default=None)
        return Outage(
            model=self._model,
            said=_SAYS_NOTHING if last is None else _SAID[last.code],
            message="" if last is None else last.message,
            next_try=next_try,
            seconds=max(0.0, (next_try - now).total_seconds()),
            probes=self._failed_probes(breaker),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """A step that a model failed, before its next attempt."""

    due_at: datetime
    code: str
    message: str


def _waiting(connection: Connection, document_ids: Sequence[str]) -> list[_Waiting]:
    """The steps of these documents that models failed for a reason of health, and that are tried again."""
    query = (
        select(job_steps.c.due_at, job_steps.c.error)
        .join(documents, documents.c.job_id == job_steps.c.job_id)
        .where(documents.c.id.in_(document_ids), job_steps.c.status == StepStatus.READY.value)
        .where(job_steps.c.failures > 0, job_steps.c.due_at.is_not(None), job_steps.c.error.is_not(None))
    )
    return [
        _Waiting(due_at=row.due_at, code=row.error["code"], message=row.error["message"])
        for row in connection.execute(query)
        if row.error["code"] in _SAID
    ]
