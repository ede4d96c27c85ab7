"""Steps that end where they become ready, before any worker claims them: ruled out by their job's metadata alone, or
done at once."""

from collections.abc import Mapping
from datetime import datetime

from docmill.engine.batch import AtOnce, StepRun, parsed
from docmill.engine.events import Claimed, Completed, Skipped
from docmill.engine.locked import LockedJob, queue_of
from docmill.engine.sql.rows import HotSql
from docmill.engine.sql.statements import STORED_RESULTS
from docmill.templates import conditions


def end_on_the_spot(job: LockedJob, worker: str, now: datetime, sql: HotSql, at_once: AtOnce | None) -> None:
    """End what became ready in this transaction and needs nobody; what that makes ready may do so in turn."""
    metadata = {"metadata": job.was.head.metadata}
    tried: set[int] = set()
    while waiting := [position for position in job.fresh() if position not in tried]:
        tried.update(waiting)
        for position in waiting:
            end: Completed | Skipped | None = None
            if _ruled_out(job, position, metadata):
                end = Skipped(position=position, epoch=job.state.steps[position].epoch + 1)
            elif at_once is not None:
                end = at_once(run_of(job, position, True), lambda: _results(job, sql))
            # Claimed all the same, so that the history is the one that a worker would have made.
            if end is not None and job.fold(Claimed(position=position, worker=worker), now):
                job.fold(end, now)


def run_of(job: LockedJob, position: int, on_the_spot: bool) -> StepRun:
    """The step as it stands under the lock of its job."""
    step, state = job.plan.steps[position], job.state.steps[position]
    stored = job.stored_results
    results = None if stored is None else job.completed(stored)
    return StepRun(job.was.head, job.state.run, job.plan, step, state, queue_of(step, state), on_the_spot, results)


def _results(job: LockedJob, sql: HotSql) -> dict[str, object]:
    """What the completed steps of the job came to, this transaction included."""
    stored = job.stored_results
    if stored is None:
        stored = {**dict(sql.query(STORED_RESULTS, {"job_id": job.was.head.id})), **job.results}
    return parsed(job.completed(stored))


def _ruled_out(job: LockedJob, position: int, metadata: Mapping[str, object]) -> bool:
    condition = job.plan.steps[position].condition
    # One with a result in hand was let through before.
    if condition is None or job.state.steps[position].checkpointed:
        return False
    return conditions.parse(condition).cannot_hold(metadata)
