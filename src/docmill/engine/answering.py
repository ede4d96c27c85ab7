"""Callbacks acted on, under the lock of their job: by their receiver, by the transaction that lets the step wait, or by
the sweeper. Whoever comes first settles them; they were checked and stored before, with what their token is good for.
"""

from datetime import datetime
from typing import Any

import orjson

from docmill.engine.events import Answered, Failed
from docmill.engine.locked import LockedJob
from docmill.engine.sql.rows import HotSql
from docmill.engine.sql.statements import RECEIVED_CALLBACKS, SETTLE_CALLBACK
from docmill.engine.state import StepState
from docmill.model.callbacks import CallbackOutcome, CallbackStatus
from docmill.model.statuses import StepStatus


def answer(
    sql: HotSql, job: LockedJob | None, job_id: str, position: int, now: datetime, *, wait: bool
) -> dict[str, CallbackOutcome]:
    """Settle what was received for this step, oldest first; what can not be settled yet is left out.

    `job` is None when it does not exist, or (without `wait`) when somebody else holds it.
    """
    if job is None and not wait and sql.existing_jobs([job_id]):
        return {}
    outcomes: dict[str, CallbackOutcome] = {}
    for callback_id, epoch, payload in sql.query(RECEIVED_CALLBACKS, {"job_id": job_id, "position": position}):
        outcome = CallbackOutcome.UNKNOWN
        if job is not None:
            outcome = _act(job, position, epoch, callback_id, orjson.loads(payload), now)
        if outcome is not CallbackOutcome.RECEIVED:
            outcomes[callback_id] = outcome
    rows = [{"id": id_, "outcome": outcome.value, "now": now} for id_, outcome in outcomes.items()]
    sql.run_each(SETTLE_CALLBACK, rows)
    return outcomes


def _act(
    job: LockedJob, position: int, epoch: int, callback_id: str, payload: dict[str, Any], now: datetime
) -> CallbackOutcome:
    if payload["status"] == CallbackStatus.COMPLETED and "fault" not in payload:
        result = orjson.dumps(payload.get("resultData")).decode()
        accepted = job.fold(Answered(position=position, epoch=epoch, result=result), now)
    else:
        error = _error(payload, attempt=job.state.steps[position].failures + 1)
        step = job.state.steps[position]
        # A waiting step only: under the same epoch its worker may be about to let it wait.
        failed = Failed(position=position, epoch=epoch, error=error, jitter=_jitter(callback_id))
        accepted = step.status is StepStatus.WAITING and job.fold(failed, now)
    return CallbackOutcome.APPLIED if accepted else standing(job.state.steps[position], epoch)


def standing(step: StepState, epoch: int) -> CallbackOutcome:
    """What an answer to the attempt of this epoch is worth when the step does not wait for it."""
    if step.epoch == epoch and step.status is StepStatus.IN_PROGRESS:
        # Quicker than the worker that sends it out: kept until the step waits.
        return CallbackOutcome.RECEIVED
    # Answered, and perhaps still being applied.
    answered = step.status is StepStatus.COMPLETED or step.checkpointed
    return CallbackOutcome.DUPLICATE if answered else CallbackOutcome.LATE


def _error(payload: dict[str, Any], *, attempt: int) -> str:
    fault = payload.get("fault") or {
        "code": "executor_failed",
        "message": payload.get("errorMessage") or "The executor reported a failure and did not say why.",
    }
    return orjson.dumps({**fault, "attempt": attempt}).decode()


def _jitter(callback_id: str) -> float:
    """In [0, 1), from the random end of the id: folding the same callback again gives the same delay."""
    return int(callback_id[-8:], 16) / 2**32
