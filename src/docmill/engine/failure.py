"""What an error that a step or a processor raised means for the step. Pure, but for a word in the log."""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

import orjson

from docmill.engine.batch import StepRun
from docmill.engine.events import Deferred, Failed, Released, StepEvent
from docmill.engine.retry import LONGEST_DELAY
from docmill.model import errors

log = logging.getLogger("docmill.engine")


class Judged(Exception):
    """A failure that a recovery strategy has looked at: what was raised, and what the strategy makes of it."""

    def __init__(
        self, cause: BaseException, *, permanent: bool, retry_after: float | None, recovery: Mapping[str, object]
    ) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.permanent = permanent
        self.retry_after = retry_after
        self.recovery = recovery


def failure(
    run: StepRun,
    error: BaseException,
    *,
    now: datetime,
    jitter: float,
    code: str | None = None,
    result: str | None = None,
) -> StepEvent:
    """The event to report. Never raises, whatever it is given: a step without a report would run for ever."""
    position, epoch = run.step.position, run.state.epoch
    if isinstance(error, Judged):
        return Failed(
            position=position,
            epoch=epoch,
            error=error_json(run, error.cause, recovery=error.recovery),
            permanent=error.permanent,
            retry_after=error.retry_after,
            jitter=jitter,
        )
    try:
        if isinstance(error, errors.Deferred):
            delay = min(LONGEST_DELAY, max(0.0, error.delay))
            return Deferred(position=position, epoch=epoch, until=now + timedelta(seconds=delay))
        if isinstance(error, errors.LeaseLost):
            return Released(position=position, epoch=epoch)
        retry_after = error.retry_after if isinstance(error, errors.RetryableError) else None
        retry_after = None if retry_after is None else float(retry_after)
        stored = error_json(run, error, code=code)
    except Exception as unreadable:
        retry_after = None
        stored = _record(run, "exception", _unreadable(error, unreadable))
    return Failed(
        position=position,
        epoch=epoch,
        error=stored,
        permanent=isinstance(error, errors.PermanentError),
        retry_after=retry_after,
        jitter=jitter,
        result=result,
    )


def error_json(
    run: StepRun, error: BaseException, *, code: str | None = None, recovery: Mapping[str, object] | None = None
) -> str:
    """The error as it is stored with the step. Never raises either."""
    try:
        message = _message(run, error)
        code = code or (error.code if isinstance(error, errors.DocmillError) else "exception")
    except Exception as unreadable:
        code, message = "exception", _unreadable(error, unreadable)
    try:
        return _record(run, code, message, recovery)
    except TypeError:
        return _record(run, code, message)  # Model settings that are no JSON.


def _record(run: StepRun, code: str, message: str, recovery: Mapping[str, object] | None = None) -> str:
    record: dict[str, object] = {"code": code, "message": message, "attempt": run.state.failures + 1}
    return orjson.dumps(record | ({"recovery": recovery} if recovery else {})).decode()


def _unreadable(error: BaseException, why: Exception) -> str:
    return f"{type(error).__name__}, which cannot be read ({type(why).__name__})"


def _message(run: StepRun, error: BaseException) -> str:
    if isinstance(error, errors.DocmillError):
        return _storable(str(error))
    message = f"{type(error).__name__}: {error}"
    log.warning("step %s of job %s failed", run.step.step_key, run.job.id, exc_info=error)
    return _storable(message)


def _storable(message: str) -> str:
    """A message as any database takes it: not endless, no NUL, no broken surrogates."""
    return message[:2000].replace("\0", "").encode("utf-8", "replace").decode()
