"""Recovery strategies: what a step type does about its own failures, asked before an attempt is given up.

A strategy judges what the step's function raised, or that it ran out of time. What processors raise is not its matter:
the result is kept then, and only the apply is tried again.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, assert_never

from docmill.engine.batch import StepRun
from docmill.engine.context import Context
from docmill.engine.failure import Judged, error_json
from docmill.engine.loading import Loader
from docmill.engine.thread_call import in_thread
from docmill.model import errors
from docmill.plugin import Fallback, GiveUp, Recovery, Retry, StepType

log = logging.getLogger("docmill.engine")

_PATIENCE = 30.0
"""Seconds a strategy may think."""


class TimedOut(errors.RetryableError):
    """The attempt took longer than the template allows."""

    code = "timed_out"


async def computed(
    run: StepRun,
    context: Context,
    step_type: StepType,
    loader: Loader,
    compute: Callable[[], Awaitable[Any]],
    timed_out: Callable[[], bool],
) -> Any:
    """The value of `compute`, or what the step's strategy offers in its place."""
    name = run.step.recovery or step_type.recovery
    strategy = None if name is None else step_type.recoveries.get(name)
    if name is None or strategy is None:
        return await compute()
    if run.state.failures:
        context.recovery_model = _model_of(await loader.error(run))
    try:
        return await compute()
    except (errors.LeaseLost, errors.Deferred):
        raise  # Neither is a failure of the step.
    except asyncio.CancelledError:
        if not timed_out():
            raise
        _go_on()
        error: Exception = TimedOut(f"The step took longer than its time-out of {run.step.timeout:g} s.")
    except Exception as raised:
        error = raised
    return await _judged(run, context, name, strategy, error)


async def _judged(run: StepRun, context: Context, name: str, strategy: Recovery, error: Exception) -> Any:
    try:
        verdict = await asyncio.wait_for(_ask(strategy, context, error), _PATIENCE)
        after = _seconds(verdict.after) if isinstance(verdict, Retry) else None
    except Exception as own:
        log.warning("the recovery %s of step %s failed itself", name, run.step.step_key, exc_info=own)
        raise error from own
    match verdict:
        case None:
            raise error
        case Fallback():
            context.recovered = error_json(run, error, recovery={"strategy": name, "outcome": "fallback"})
            return verdict.result
        case Retry():
            record = {"strategy": name, "outcome": "retry", "model": dict(verdict.model)}
            raise Judged(error, permanent=False, retry_after=after, recovery=record) from error
        case GiveUp():
            record = {"strategy": name, "outcome": "give_up"}
            raise Judged(error, permanent=True, retry_after=None, recovery=record) from error
        case _:
            assert_never(verdict)


async def _ask(strategy: Callable[..., Any], context: Context, error: Exception) -> Any:
    if inspect.iscoroutinefunction(strategy):
        return await strategy(context, error)
    return await in_thread(lambda: strategy(context, error))


def _seconds(after: timedelta | float | None) -> float | None:
    if after is None:
        return None
    return after.total_seconds() if isinstance(after, timedelta) else float(after)


def _go_on() -> None:
    """Take the cancellation back: the time-out has done its work, and the strategy may still wait for something."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def _model_of(error: object) -> Mapping[str, object]:
    """The model settings that the strategy asked for when the last attempt failed."""
    recovery = error.get("recovery") if isinstance(error, dict) else None
    model = recovery.get("model") if isinstance(recovery, dict) else None
    return model if isinstance(model, dict) else {}
