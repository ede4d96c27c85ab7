"""Kinds of operations, so that a comparison can say what it has seen and what it has not."""

from docmill.engine.events import (
    Answered,
    Checkpointed,
    Completed,
    Crashed,
    Deferred,
    Failed,
    Released,
    Reopened,
    Skipped,
    StepEvent,
    Suspended,
)
from docmill.engine.state import JobState
from docmill.model.statuses import StepStatus
from docmill.testing.system import Report

KINDS = frozenset(
    {
        "submit",
        "submit: held",
        "free",
        "free refused",
        "claim",
        "checkpoint",
        "complete",
        "join",
        "fail: retry",
        "fail: retry after",
        "fail: permanent",
        "fail: attempts used up",
        "fail: apply",
        "skip",
        "defer",
        "suspend",
        "answer: complete",
        "answer: applied",
        "answer: fail",
        "answer: reopen",
        "answer refused",
        "release",
        "crash",
        "crash: last",
        "stale refused",
        "repeat accepted",
        "cancel",
        "cancel refused",
        "rerun: keep",
        "rerun: drop",
        "rerun: held",
        "rerun refused",
        "tick",
    }
)
"""Everything a long enough run must have done at least once; `Driver.done` counts them."""


def kind_of(report: Report, before: JobState, after: JobState, *, accepted: bool) -> str:
    """Under which name the report is counted."""
    event = report.event
    old, new = before.steps[event.position], after.steps[event.position]
    if not accepted:
        if isinstance(event, Answered) and event.epoch == old.epoch:
            return "answer refused"
        return "stale refused" if event.epoch != old.epoch else "late refused"
    if old == new and not isinstance(event, Checkpointed):
        return "repeat accepted"
    if old.status is StepStatus.WAITING:
        return _kind_of_answer(event, applied=new.status is StepStatus.READY)
    if isinstance(event, Failed):
        return _kind_of_failure(event, failed=new.status is StepStatus.FAILED)
    names: dict[type[StepEvent], str] = {
        Checkpointed: "checkpoint",
        Completed: "complete",
        Skipped: "skip",
        Deferred: "defer",
        Suspended: "suspend",
        Released: "release",
        Crashed: "crash",
    }
    return names[type(event)]


def _kind_of_answer(event: StepEvent, *, applied: bool) -> str:
    match event:
        case Answered():
            return "answer: applied" if applied else "answer: complete"
        case Reopened():
            return "answer: reopen"
        case Failed():
            return "answer: fail"
        case _:
            return "answer: complete"


def _kind_of_failure(event: Failed, *, failed: bool) -> str:
    if event.permanent:
        return "fail: permanent"
    if failed:
        return "fail: attempts used up"
    if event.result is not None:
        return "fail: apply"
    return "fail: retry" if event.retry_after is None else "fail: retry after"
