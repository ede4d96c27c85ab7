"""Which steps a manual retry runs again. Pure; what follows from them is for `decide` to work out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from docmill.model.errors import Conflict, InvalidInput, NotFound
from docmill.model.statuses import SkipReason, StepStatus
from docmill.services.job_views import JobView, StepView
from docmill.templates.plan import Plan

_WENT_WRONG = frozenset({StepStatus.FAILED, StepStatus.CANCELLED})
_FOR_A_FAILURE = frozenset({SkipReason.DEPENDENCY_FAILED, SkipReason.JOB_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What a person wants run again; nothing said: what went wrong, and what rests on it."""

    steps: Sequence[str] = ()
    """These, and what depends on them."""
    from_step: str | None = None
    """This one, and every later group."""
    everything: bool = False
    keep_checkpoints: bool = True
    """What was paid for is used again."""


def positions_to_retry(view: JobView, plan: Plan, retry: Retry) -> frozenset[int]:
    """The positions that this retry of a finished job names; Conflict if there is nothing it could do."""
    if (len(retry.steps) > 0) + (retry.from_step is not None) + retry.everything > 1:
        raise InvalidInput("Retry some steps, from a step on, or everything: give one of them.", field="steps")
    if plan.undoes:
        return _left_to_undo(view, plan, retry)
    if retry.everything:
        return frozenset(range(len(plan.steps)))
    if retry.from_step is not None:
        (first,) = _named(plan, [retry.from_step])
        group = plan.steps[first].execution_group
        return frozenset([first, *(step.position for step in plan.steps if step.execution_group > group)])
    if retry.steps:
        return frozenset(_named(plan, retry.steps))
    wrong = frozenset(plan.positions[step.step_key] for step in view.steps if _went_wrong(step))
    if not wrong and view.summary.status.finished:
        raise _nothing(view, "nothing in it failed. Name a step, or retry all of it to run it from the start")
    return wrong


def _left_to_undo(view: JobView, plan: Plan, retry: Retry) -> frozenset[int]:
    """An undoing never repeats what it completed: that would undo it twice."""
    if not retry.keep_checkpoints:
        raise InvalidInput(
            "An undoing works with the results of the job it undoes; they cannot be computed afresh.",
            field="keep_checkpoints",
        )
    left = frozenset(plan.positions[step.step_key] for step in view.steps if _went_wrong(step))
    named = _named(plan, [*retry.steps, *([] if retry.from_step is None else [retry.from_step])])
    done = [plan.steps[position].step_key for position in named if position not in left]
    if view.summary.status.finished and (done or not left):
        what = f"{', '.join(done)} has been undone or had nothing to undo" if done else "all of it has been undone"
        raise _nothing(view, what)
    return left


def _went_wrong(step: StepView) -> bool:
    return step.status in _WENT_WRONG or step.reason in _FOR_A_FAILURE


def _named(plan: Plan, keys: Iterable[str]) -> list[int]:
    unknown = [key for key in keys if key not in plan.positions]
    if unknown:
        raise NotFound(f"The job has no step {', '.join(unknown)}; its steps are {', '.join(plan.positions)}.")
    return [plan.positions[key] for key in keys]


def _nothing(view: JobView, why: str) -> Conflict:
    job = view.summary
    return Conflict(f"Job {job.id} ({job.status}) has nothing to retry: {why}.", job_id=job.id)
