"""Whoever reviews no more: what they had, assigned, postponed or claimed, is for anybody."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, or_, select, text, update

from docmill.db.tables import review_items, reviewers
from docmill.db.tables.review import UNDECIDED
from docmill.db.types import IdType
from docmill.model.review import ReviewStatus
from docmill.review.queue import NOBODY

_C = review_items.c
_WITHDRAW = delete(reviewers).where(
    reviewers.c.org_id == bindparam("org", type_=IdType()), reviewers.c.reviewer == bindparam("whom")
)


def discharge(
    connection: Connection, org_id: str, leaving: Collection[str], now: datetime, *, deciding: Collection[str] = ()
) -> None:
    """No more work for members or keys; what is theirs, also what is postponed or being looked at, is for anybody.

    Unless they still decide, their claims end: nobody else could have those items for as long as they last.
    """
    if not leaving:
        return
    # In the order in which whoever looks for the least loaded locks them, and before any item.
    connection.execute(_WITHDRAW, [{"org": org_id, "whom": each} for each in sorted(leaving)])
    mine = or_(_C.assigned_to.in_(leaving), _C.claimed_by.in_(leaving))
    # In one order for all, as they are settled: an item may be assigned to one who leaves and claimed by another.
    held = select(_C.id).where(_C.org_id == org_id, text(UNDECIDED), mine).order_by(_C.id).with_for_update()
    if not connection.execute(held).all():
        return
    again = {"version": _C.version + 1, "updated_at": now}
    these = update(review_items).where(_C.org_id == org_id, text(UNDECIDED), mine)
    connection.execute(these.where(_C.assigned_to.in_(leaving)).values(assigned_to="", **again))
    ended = [each for each in leaving if each not in deciding]
    claimed = _C.status == ReviewStatus.IN_REVIEW.value, _C.claimed_by.in_(ended)
    connection.execute(these.where(*claimed).values(status=ReviewStatus.PENDING.value, **NOBODY, **again))
