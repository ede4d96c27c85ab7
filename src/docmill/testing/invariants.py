"""What must hold of every job whatever happened to it: for the pure engine and for every store alike."""

from docmill.engine.state import JobState, StepState
from docmill.model.statuses import JobStatus, StepStatus
from docmill.templates.plan import Plan

LIVE = frozenset({StepStatus.READY, StepStatus.IN_PROGRESS, StepStatus.WAITING})


def check_state(plan: Plan, state: JobState) -> None:
    """A submitted job at rest, between two operations."""
    statuses = [step.status for step in state.steps]
    assert len(statuses) == len(plan.steps)
    assert state.status.finished == all(status.settled for status in statuses), (
        "finished exactly when all steps settled"
    )
    if state.held:
        assert state.status is JobStatus.PENDING
        assert not LIVE.intersection(statuses), "a job that is held has begun"
    else:
        going = state.status.finished or LIVE.intersection(statuses)
        assert going, "an unfinished job must have something to go on with"
    if StepStatus.IN_PROGRESS in statuses:
        assert state.status is JobStatus.IN_PROGRESS
    if state.status is JobStatus.WAITING:
        assert StepStatus.WAITING in statuses
    for planned, step in zip(plan.steps, state.steps, strict=True):
        _check_step(step)
        if step.status in (StepStatus.READY, StepStatus.IN_PROGRESS, StepStatus.COMPLETED, StepStatus.FAILED):
            assert all(state.steps[d].status.settled for d in planned.depends_on), (
                "ran before what it depends on settled"
            )
    if statuses[plan.finish] in (StepStatus.READY, StepStatus.IN_PROGRESS, StepStatus.WAITING, StepStatus.COMPLETED):
        assert all(status.settled for status in statuses[: plan.finish]), "the finish step waits for all others"


def _check_step(step: StepState) -> None:
    assert (step.worker is not None) == (step.status is StepStatus.IN_PROGRESS), "a worker holds exactly what runs"
    queued = step.status in (StepStatus.READY, StepStatus.IN_PROGRESS)
    assert (step.due_at is not None) == queued, "exactly what is ready, or was claimed from there, has a due time"
    assert step.deadline is None or step.status is StepStatus.WAITING, "only a wait has a deadline"
    assert (step.reason is not None) == (step.status is StepStatus.SKIPPED), "exactly what was skipped has a reason"


def check_change(before: JobState, after: JobState) -> None:
    """Two looks at the same job: nothing that may only rise has fallen."""
    assert after.run >= before.run, "run fell"
    for old, new in zip(before.steps, after.steps, strict=True):
        assert new.epoch >= old.epoch, "epoch fell"
    if after.run == before.run:
        assert after.settled >= before.settled, "progress fell within one run"
        assert not before.status.finished or after == before, "a finished job changed without a rerun"
        for old, new in zip(before.steps, after.steps, strict=True):
            assert not old.status.settled or new == old, "a settled step changed without a rerun"
            assert new.failures >= old.failures
            assert new.crashes >= old.crashes
            # Whoever is asked about a result may want another one.
            asked = old.status is StepStatus.WAITING
            assert new.checkpointed or not old.checkpointed or asked, "a checkpoint was lost"
