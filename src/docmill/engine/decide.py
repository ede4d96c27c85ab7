"""The whole planning of a job, as a pure function: state and events in, new state and transitions out.

Folding the same events in any partition into batches gives the same state: what follows from an event (`_advance`) is
worked out before the next one is looked at.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, assert_never

from docmill.engine.events import (
    Answered,
    Cancelled,
    Checkpointed,
    Claimed,
    Completed,
    Crashed,
    Deferred,
    Event,
    Failed,
    Freed,
    Released,
    Reopened,
    Rerun,
    Skipped,
    StepEvent,
    Submitted,
    Suspended,
)
from docmill.engine.retry import retry_delay
from docmill.engine.state import JobState, StepState
from docmill.model.statuses import (
    FailureAction,
    JobStatus,
    SkipReason,
    StepKind,
    StepStatus,
)
from docmill.templates.plan import Plan, PlanStep

SUSPECT_CRASHES = 2
"""From this many crashes on a step is claimed alone: should it be the poison, it takes nobody's last chance with it."""


class Transition(NamedTuple):
    """One change of status; `position` None is the job itself."""

    position: int | None
    before: str
    after: str
    reason: str | None = None


class Decision(NamedTuple):
    """What the events amount to."""

    state: JobState
    transitions: tuple[Transition, ...]
    accepted: tuple[bool, ...]
    """For each event, whether it had effect (or had already had it); False: the lease was lost, or it came too late."""


class _Fold:
    """The state under construction: steps mutable by position, transitions in order."""

    __slots__ = ("held", "job", "now", "plan", "run", "steps", "transitions")

    def __init__(self, plan: Plan, state: JobState, now: datetime) -> None:
        self.plan = plan
        self.now = now
        self.job = state.status
        self.run = state.run
        self.held = state.held
        self.steps = list(state.steps)
        self.transitions: list[Transition] = []

    def put(self, position: int, after: StepState, reason: str | None = None) -> None:
        before = self.steps[position]
        self.steps[position] = after
        if before.status is not after.status:
            self.transitions.append(Transition(position, before.status, after.status, reason))

    def put_job(self, status: JobStatus) -> None:
        if status is not self.job:
            self.transitions.append(Transition(None, self.job, status))
            self.job = status


def decide(plan: Plan, state: JobState, events: Sequence[Event], now: datetime) -> Decision:
    """Fold the events into the job and plan what comes next."""
    fold = _Fold(plan, state, now)
    accepted = tuple([_apply(fold, event) for event in events])
    return Decision(JobState(fold.job, tuple(fold.steps), fold.run, fold.held), tuple(fold.transitions), accepted)


def _apply(fold: _Fold, event: Event) -> bool:
    match event:
        case Claimed():
            return _claim(fold, event)
        case Submitted():
            accepted = _submit(fold, event)
        case Freed():
            accepted, fold.held = fold.held, False
        case Cancelled():
            accepted = _cancel(fold)
        case Rerun():
            accepted = _rerun(fold, event)
        case _:
            accepted = _report(fold, event)
    if accepted:
        _advance(fold)
    return accepted


def _submit(fold: _Fold, event: Submitted) -> bool:
    fold.held = event.held
    for position in event.without:
        after = _idle(fold.steps[position], StepStatus.SKIPPED, reason=SkipReason.CONDITION)
        fold.put(position, after, SkipReason.CONDITION)
    for position in event.computed:
        # The epoch makes it a stored step, which is where its result is.
        fold.steps[position] = StepState(epoch=1, checkpointed=True)
    return True


def _claim(fold: _Fold, event: Claimed) -> bool:
    step = fold.steps[event.position]
    if step.status is not StepStatus.READY or (step.due_at is not None and step.due_at > fold.now):
        return False
    after = step._replace(status=StepStatus.IN_PROGRESS, epoch=step.epoch + 1, worker=event.worker)
    fold.put(event.position, after)
    # Nothing else can follow from a claim.
    fold.put_job(JobStatus.IN_PROGRESS)
    return True


def _report(fold: _Fold, event: StepEvent) -> bool:
    """One fenced event: the epoch must be the step's own, and the step must still be running or waiting."""
    position = event.position
    step = fold.steps[position]
    if step.epoch != event.epoch:
        return False
    if step.status is StepStatus.WAITING:
        # Only answers may touch a waiting step; its worker has let go of it.
        if not isinstance(event, Completed | Failed | Answered | Reopened):
            return isinstance(event, Suspended)
    elif isinstance(event, Answered | Reopened):
        # Before its question was put, or after it was answered.
        return False
    elif step.status is not StepStatus.IN_PROGRESS:
        # The same report again (a commit whose answer was lost) is no news and no loss.
        return step.status is StepStatus.COMPLETED and isinstance(event, Completed)
    match event:
        case Checkpointed():
            fold.steps[position] = step._replace(checkpointed=True)
        case Completed():
            checkpointed = step.checkpointed or event.paid
            fold.put(position, _idle(step, StepStatus.COMPLETED)._replace(checkpointed=checkpointed))
        case Answered():
            _answer(fold, position, step)
        case Reopened():
            fold.put(position, _again(step, fold.now)._replace(checkpointed=False), "reopened")
        case Skipped():
            fold.put(position, _idle(step, StepStatus.SKIPPED, reason=SkipReason.CONDITION), SkipReason.CONDITION)
        case Suspended():
            after = step._replace(status=StepStatus.WAITING, worker=None, due_at=None, deadline=event.deadline)
            fold.put(position, after._replace(checkpointed=step.checkpointed or event.paid))
        case Deferred():
            fold.put(position, _again(step, event.until), "deferred")
        case Released():
            fold.put(position, _again(step, step.due_at or fold.now), "released")
        case Crashed():
            _crash(fold, position, step)
        case Failed():
            _fail(fold, position, step, event)
        case _:
            assert_never(event)
    return True


def _idle(step: StepState, status: StepStatus, reason: SkipReason | None = None) -> StepState:
    return step._replace(status=status, worker=None, due_at=None, deadline=None, reason=reason)


def _again(step: StepState, due_at: datetime) -> StepState:
    """Ready once more. The epoch stays: the claim that follows raises it."""
    return step._replace(status=StepStatus.READY, worker=None, due_at=due_at, deadline=None)


def _answer(fold: _Fold, position: int, step: StepState) -> None:
    """An answer is as good as paid for. With a processor there is still something to do with it, by a worker."""
    step = step._replace(checkpointed=True)
    if fold.plan.steps[position].processor:
        fold.put(position, _again(step, fold.now), "answered")
    else:
        fold.put(position, _idle(step, StepStatus.COMPLETED), "answered")


def _crash(fold: _Fold, position: int, step: StepState) -> None:
    crashes = step.crashes + 1
    # The epoch moves now, not at the next claim: whoever was declared dead may still be writing.
    step = step._replace(crashes=crashes, epoch=step.epoch + 1)
    if crashes >= fold.plan.steps[position].max_crashes:
        fold.put(position, _idle(step, StepStatus.FAILED), "worker_died")
    else:
        fold.put(position, _again(step, step.due_at or fold.now), "crashed")


def _fail(fold: _Fold, position: int, step: StepState, event: Failed) -> None:
    step = step._replace(failures=step.failures + 1, checkpointed=step.checkpointed or event.result is not None)
    delay = retry_delay(
        fold.plan.steps[position],
        failures=step.failures,
        permanent=event.permanent,
        retry_after=event.retry_after,
        jitter=event.jitter,
    )
    if delay is None:
        fold.put(position, _idle(step, StepStatus.FAILED), "failed")
    else:
        fold.put(position, _again(step, fold.now + timedelta(seconds=delay)), "retry")


def _cancel(fold: _Fold) -> bool:
    """Ends at once: running steps lose their epoch, so what they still report is void."""
    if fold.job.finished:
        return False
    for position, step in enumerate(fold.steps):
        if not step.status.settled:
            fold.put(position, _idle(step, StepStatus.CANCELLED)._replace(epoch=step.epoch + 1))
    fold.held = False
    fold.put_job(JobStatus.CANCELLED)
    return True


def _rerun(fold: _Fold, event: Rerun) -> bool:
    """Back to PENDING for these steps and all whose outcome rested on them; only a finished job can run again."""
    if not fold.job.finished:
        return False
    if event.after_run not in (None, fold.run):
        # This very wish was granted before; whoever repeats it does not know.
        return False
    plan = fold.plan
    again = set(event.positions) | {plan.finish}
    again |= {position for position, step in enumerate(fold.steps) if _rests_on_failure(step)}
    # A failure that fails the job cannot stay behind: it would end the new run before its first step.
    again |= {planned.position for planned in plan.steps if _fatal(fold, planned)}
    if plan.compensate and fold.job in (JobStatus.FAILED, JobStatus.CANCELLED):
        # What they had done was undone.
        again |= {planned.position for planned in plan.steps if planned.compensation and _completed(fold, planned)}
    frontier = list(again)
    while frontier:
        for dependent in plan.dependents[frontier.pop()]:
            if dependent not in again:
                again.add(dependent)
                frontier.append(dependent)
    if plan.undoes:
        # What was undone stays so, and what had not been done has nothing to undo.
        again = {position for position in again if position == plan.finish or not _undone(fold.steps[position])}
    for position in sorted(again):
        step = fold.steps[position]
        keep = (event.keep_checkpoints or plan.undoes) and step.checkpointed
        fold.put(position, StepState(epoch=step.epoch + 1, checkpointed=keep), "rerun")
    fold.run += 1
    fold.held = event.held
    fold.put_job(JobStatus.PENDING)
    return True


def _completed(fold: _Fold, planned: PlanStep) -> bool:
    return fold.steps[planned.position].status is StepStatus.COMPLETED


def _undone(step: StepState) -> bool:
    return step.status is StepStatus.COMPLETED or step.reason is SkipReason.CONDITION


def _rests_on_failure(step: StepState) -> bool:
    """Skipped or cancelled only because the last run went wrong: the new run must look at it afresh."""
    return step.status is StepStatus.CANCELLED or step.reason in (SkipReason.DEPENDENCY_FAILED, SkipReason.JOB_FAILED)


def _advance(fold: _Fold) -> None:
    """Everything that follows from the settled statuses: skips, readiness, the job's own status."""
    if fold.job.finished or fold.held:
        return
    # The common case is a job in which nothing has gone wrong: then there is nothing to skip.
    troubled = any(step.status is StepStatus.FAILED or step.reason is not None for step in fold.steps)
    if troubled and _failing(fold):
        _skip_unstarted(fold)
    else:
        if troubled:
            _skip_dependents(fold)
        _make_ready(fold)
    fold.put_job(_job_status(fold))


def _failing(fold: _Fold) -> bool:
    return any(
        step.status is StepStatus.FAILED and _fatal(fold, planned)
        for step, planned in zip(fold.steps, fold.plan.steps, strict=True)
    )


def _fatal(fold: _Fold, planned: PlanStep) -> bool:
    """Whether the step failed in a way that fails the job; the finish step always does, whatever its action says."""
    if fold.steps[planned.position].status is not StepStatus.FAILED:
        return False
    return planned.on_failure is FailureAction.FAIL_JOB or planned.position == fold.plan.finish


def _skip_unstarted(fold: _Fold) -> None:
    for planned in fold.plan.steps:
        step = fold.steps[planned.position]
        unstarted = step.status in (StepStatus.PENDING, StepStatus.READY)
        # An outside executor is at work on its step and may finish; a question to a person has lost its point.
        moot = step.status is StepStatus.WAITING and planned.kind is not StepKind.EXTERNAL
        if unstarted or moot:
            after = _idle(step, StepStatus.SKIPPED, reason=SkipReason.JOB_FAILED)
            fold.put(planned.position, after, SkipReason.JOB_FAILED)


def _skip_dependents(fold: _Fold) -> None:
    """Transitive in one pass over a worklist, since a dependency may lie later in the same group."""
    frontier = [planned.position for planned in fold.plan.steps if _denies(fold, planned)]
    while frontier:
        for position in fold.plan.dependents[frontier.pop()]:
            step = fold.steps[position]
            if step.status is StepStatus.PENDING and position != fold.plan.finish:
                after = _idle(step, StepStatus.SKIPPED, reason=SkipReason.DEPENDENCY_FAILED)
                fold.put(position, after, SkipReason.DEPENDENCY_FAILED)
                frontier.append(position)


def _denies(fold: _Fold, planned: PlanStep) -> bool:
    """Whether the step's end forbids its dependents to run."""
    step = fold.steps[planned.position]
    if step.status is StepStatus.FAILED:
        return planned.on_failure is FailureAction.SKIP_DEPENDENTS
    return step.status is StepStatus.SKIPPED and step.reason is SkipReason.DEPENDENCY_FAILED


def _make_ready(fold: _Fold) -> None:
    """Only the first group that is not settled can have ready steps: groups run in order."""
    steps = fold.steps
    for group in fold.plan.groups:
        if all(steps[position].status.settled for position in group):
            continue
        for position in group:
            step = steps[position]
            if step.status is not StepStatus.PENDING:
                continue
            planned = fold.plan.steps[position]
            if all(steps[dependency].status.settled for dependency in planned.depends_on):
                due_at = fold.now + timedelta(seconds=planned.delay) if planned.delay else fold.now
                fold.put(position, step._replace(status=StepStatus.READY, due_at=due_at))
        return


def _job_status(fold: _Fold) -> JobStatus:
    statuses = [step.status for step in fold.steps]
    if all(status.settled for status in statuses):
        return _final_status(fold)
    if StepStatus.IN_PROGRESS in statuses:
        return JobStatus.IN_PROGRESS
    if StepStatus.READY in statuses:
        return JobStatus.PENDING if fold.job is JobStatus.PENDING else JobStatus.IN_PROGRESS
    return JobStatus.WAITING if StepStatus.WAITING in statuses else fold.job


def _final_status(fold: _Fold) -> JobStatus:
    if _failing(fold):
        return JobStatus.FAILED
    work = fold.steps[: fold.plan.finish]
    if not any(step.status is StepStatus.FAILED for step in work):
        return JobStatus.COMPLETED
    # Nothing was achieved: all failed, or were skipped because of what failed.
    achieved = any(step.status is StepStatus.COMPLETED or step.reason is SkipReason.CONDITION for step in work)
    return JobStatus.PARTIAL_SUCCESS if achieved else JobStatus.FAILED
