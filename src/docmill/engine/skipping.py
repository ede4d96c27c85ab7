"""Steps that their job's metadata alone rules out: skipped where they become ready, before any worker claims them."""

from collections.abc import Mapping
from datetime import datetime

from docmill.engine.events import Claimed, Skipped
from docmill.engine.locked import LockedJob
from docmill.templates import conditions


def skip_ruled_out(job: LockedJob, worker: str, now: datetime) -> None:
    """Skip what became ready in this transaction and cannot hold; what that makes ready may be ruled out in turn."""
    metadata = {"metadata": job.was.head.metadata}
    waiting = list(job.fresh())
    while waiting:
        skipped = [position for position in waiting if _ruled_out(job, position, metadata)]
        # Claimed all the same, so that the history is the one that a worker would have made.
        for position in skipped:
            if job.fold(Claimed(position=position, worker=worker), now):
                job.fold(Skipped(position=position, epoch=job.state.steps[position].epoch), now)
        waiting = [position for position in job.fresh() if position not in waiting] if skipped else []


def _ruled_out(job: LockedJob, position: int, metadata: Mapping[str, object]) -> bool:
    condition = job.plan.steps[position].condition
    # One with a result in hand was let through before.
    if condition is None or job.state.steps[position].checkpointed:
        return False
    return conditions.parse(condition).cannot_hold(metadata)
