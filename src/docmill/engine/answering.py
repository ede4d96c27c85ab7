"""Callbacks acted on, under the lock of their job: by their receiver, by the transaction that lets the step wait, or by
the sweeper. Whoever comes first settles them; they were checked and stored before, with what their token is good for.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from docmill.engine.batch import NewJob, StepRun
from docmill.engine.events import Answered, Failed
from docmill.engine.follow_ups import kept_follow_ups
from docmill.engine.locked import LockedJob
from docmill.engine.sql.rows import HotSql
from docmill.engine.sql.statements import RECEIVED_CALLBACKS, SETTLE_CALLBACK
from docmill.engine.state import StepState
from docmill.model.callbacks import CallbackOutcome, CallbackStatus
from docmill.model.errors import PermanentError
from docmill.model.statuses import StepStatus


class Answers(NamedTuple):
    """What became of the callbacks of a step, and the jobs that are submitted because of it."""

    outcomes: dict[str, CallbackOutcome]
    follow_ups: tuple[NewJob, ...] = ()


def answer(sql: HotSql, job: LockedJob, run: StepRun, now: datetime) -> Answers:
    """Settle what was received for this step, oldest first; what can not be settled yet is left out."""
    position = run.step.position
    outcomes: dict[str, CallbackOutcome] = {}
    follow_ups: tuple[NewJob, ...] = ()
    for callback_id, epoch, payload in _received(sql, run.job.id, position):
        event = _event(job, position, epoch, callback_id, orjson.loads(payload))
        wanted: tuple[NewJob, ...] = ()
        if isinstance(event, Answered) and _waits(job, position, epoch) and not run.step.processor:
            # With a processor they are submitted when it has run, as ever.
            try:
                wanted = kept_follow_ups(sql, run)
            except PermanentError as error:
                record = _record({"code": error.code, "message": error.message}, job, position)
                event = Failed(position=position, epoch=epoch, error=record, permanent=True)
        # A failure of a waiting step only: under the same epoch its worker may be about to let it wait.
        accepted = (isinstance(event, Answered) or _waits(job, position, epoch)) and job.fold(event, now)
        outcome = CallbackOutcome.APPLIED if accepted else standing(job.state.steps[position], epoch)
        if accepted:
            follow_ups += wanted
        if outcome is not CallbackOutcome.RECEIVED:
            outcomes[callback_id] = outcome
    _settle(sql, outcomes, now)
    return Answers(outcomes, follow_ups)


def nobody_asked(sql: HotSql, job_id: str, position: int, now: datetime) -> dict[str, CallbackOutcome]:
    """Settle what was received for a step of a job that is not there any more."""
    outcomes = dict.fromkeys((row[0] for row in _received(sql, job_id, position)), CallbackOutcome.UNKNOWN)
    _settle(sql, outcomes, now)
    return outcomes


def _received(sql: HotSql, job_id: str, position: int) -> list[Any]:
    return sql.query(RECEIVED_CALLBACKS, {"job_id": job_id, "position": position})


def _settle(sql: HotSql, outcomes: Mapping[str, CallbackOutcome], now: datetime) -> None:
    rows = [{"id": id_, "outcome": outcome.value, "now": now} for id_, outcome in outcomes.items()]
    sql.run_each(SETTLE_CALLBACK, rows)


def _event(job: LockedJob, position: int, epoch: int, callback_id: str, payload: dict[str, Any]) -> Answered | Failed:
    if payload["status"] == CallbackStatus.COMPLETED and "fault" not in payload:
        return Answered(position=position, epoch=epoch, result=orjson.dumps(payload.get("resultData")).decode())
    fault = payload.get("fault") or {
        "code": "executor_failed",
        "message": payload.get("errorMessage") or "The executor reported a failure and did not say why.",
    }
    error = _record(fault, job, position)
    return Failed(position=position, epoch=epoch, error=error, jitter=_jitter(callback_id))


def _waits(job: LockedJob, position: int, epoch: int) -> bool:
    step = job.state.steps[position]
    return step.status is StepStatus.WAITING and step.epoch == epoch


def standing(step: StepState, epoch: int) -> CallbackOutcome:
    """What an answer to the attempt of this epoch is worth when the step does not wait for it."""
    if step.epoch == epoch and step.status is StepStatus.IN_PROGRESS:
        # Quicker than the worker that sends it out: kept until the step waits.
        return CallbackOutcome.RECEIVED
    # Answered, and perhaps still being applied.
    answered = step.status is StepStatus.COMPLETED or step.checkpointed
    return CallbackOutcome.DUPLICATE if answered else CallbackOutcome.LATE


def _record(fault: Mapping[str, object], job: LockedJob, position: int) -> str:
    return orjson.dumps({**fault, "attempt": job.state.steps[position].failures + 1}).decode()


def _jitter(callback_id: str) -> float:
    """In [0, 1), from the random end of the id: folding the same callback again gives the same delay."""
    return int(callback_id[-8:], 16) / 2**32
