"""Who is given work by the least-loaded rule."""

from collections.abc import Sequence

from sqlalchemy import delete, select

from docmill.db.conflicts import insert_into
from docmill.db.tables import reviewers
from docmill.model.people import Permission, Principal
from docmill.people.audit import Deed
from docmill.services.review_base import Check, ReviewBase, check_text, nobody_asks


class Roster(ReviewBase):
    """The reviewers of one organisation."""

    def enroll(self, principal: Principal, reviewer: str, *, check: Check = nobody_asks) -> None:
        """Somebody is given work from now on, by the least-loaded rule; `check` as of `assign`."""
        self._allow(principal, Permission.REVIEW_MANAGE)
        check_text(reviewer, "name of a reviewer", 200, "name")
        with self._writing() as (connection, now):
            check(connection)
            # Whoever is on the list stays where they are, also if somebody else puts them there at this moment.
            enrolled = insert_into(connection, reviewers).values(org_id=self._org_id, reviewer=reviewer, turn=0)
            if connection.execute(enrolled.on_conflict_do_nothing().returning(reviewers.c.reviewer)).first() is None:
                return
            deed = Deed("review.enroll", ("reviewer", reviewer), None, {})
            self._recorder.record(connection, principal, [deed], now)

    def withdraw(self, principal: Principal, reviewer: str) -> None:
        """Somebody is given no more work; what they have stays theirs until it is reassigned."""
        self._allow(principal, Permission.REVIEW_MANAGE)
        mine = (reviewers.c.org_id == self._org_id, reviewers.c.reviewer == reviewer)
        with self._writing() as (connection, now):
            if connection.execute(delete(reviewers).where(*mine)).rowcount:
                deed = Deed("review.withdraw", ("reviewer", reviewer), {}, None)
                self._recorder.record(connection, principal, [deed], now)

    def enrolled(self, principal: Principal) -> Sequence[str]:
        """Who is given work."""
        self._allow(principal, Permission.REVIEW_READ)
        query = select(reviewers.c.reviewer).where(reviewers.c.org_id == self._org_id).order_by(reviewers.c.reviewer)
        with self._database.read() as connection:
            return [*connection.execute(query).scalars()]
