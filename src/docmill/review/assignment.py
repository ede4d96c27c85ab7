"""Who gets an item: of the reviewers the one with the fewest that are not decided, of equals the one waiting longest.

The rows of an organisation's reviewers are locked while one of them is chosen: two items that come at the same moment
do not both go to whoever had the fewest.
"""

from typing import Any, Protocol

from sqlalchemy import bindparam, func, select, text, update

from docmill.db.tables import review_items, reviewers
from docmill.db.tables.review import UNDECIDED
from docmill.db.types import IdType


class Executes(Protocol):
    """A transaction: that of a service, or the one that completes a step."""

    def execute(self, statement: Any, parameters: Any = None) -> Any: ...


_ORG = bindparam("org", type_=IdType())
_HOLD = select(reviewers.c.reviewer).where(reviewers.c.org_id == _ORG).order_by(reviewers.c.reviewer).with_for_update()
# Another statement than the lock: what was given out while we waited for it must be counted.
_LOAD = (
    select(func.count())
    .select_from(review_items)
    .where(review_items.c.org_id == _ORG, review_items.c.assigned_to == reviewers.c.reviewer, text(UNDECIDED))
    .correlate(reviewers)
    .scalar_subquery()
)
_LEAST = (
    select(reviewers.c.reviewer)
    .where(reviewers.c.org_id == _ORG)
    .order_by(_LOAD, reviewers.c.turn, reviewers.c.reviewer)
    .limit(1)
)
_LAST = select(func.max(reviewers.c.turn)).where(reviewers.c.org_id == _ORG).scalar_subquery()
_GIVEN = (
    update(reviewers)
    .where(reviewers.c.org_id == _ORG, reviewers.c.reviewer == bindparam("whom"))
    .values(turn=_LAST + 1)
)


def least_loaded(db: Executes, org_id: str) -> str:
    """The reviewer whose turn it is, noted as given; empty if the organisation has none."""
    if not db.execute(_HOLD, {"org": org_id}).all():
        return ""
    chosen = str(db.execute(_LEAST, {"org": org_id}).scalar_one())
    db.execute(_GIVEN, {"org": org_id, "whom": chosen})
    return chosen
