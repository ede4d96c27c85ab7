"""Cancelling a batch: its row says so first, so that nothing more is let in; then its jobs end, some at a time.

Each transaction locks its jobs in id order and then the batch, as everybody does. Whoever dies in between leaves the
word in the row, and a sweeper goes on.
"""

from typing import NamedTuple

from docmill.engine.batch import Batch, Report
from docmill.engine.events import Cancelled
from docmill.engine.sql.statements import UNFINISHED_OF_BATCH
from docmill.engine.store import Store

BEFORE_ALL = "00000000-0000-0000-0000-000000000000"
AT_ONCE = 500


class Stretch(NamedTuple):
    """How far a cancel has come."""

    last: str | None
    """The last job looked at; None when there was none left."""
    cancelled: int


def cancel_some(store: Store, batch_id: str, after: str = BEFORE_ALL, *, wait: bool = True) -> Stretch:
    """Cancel the next unfinished jobs of the batch, in id order, in one transaction."""
    with store.session.read():
        found = store.sql.query(UNFINISHED_OF_BATCH, {"batch_id": batch_id, "after": after, "limit": AT_ONCE})
    ids = [job_id for (job_id,) in found]
    if not ids:
        return Stretch(None, 0)
    outcome = store.commit(Batch(reports=[Report(job_id=job_id, event=Cancelled()) for job_id in ids], wait=wait))
    return Stretch(ids[-1], sum(outcome.accepted))
