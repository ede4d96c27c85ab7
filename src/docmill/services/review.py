"""Review as people use it: the queue, claims, assignment, fields, decisions, comments, SLAs.

Fields are in `review_edits`, decisions in `review_decisions`, SLAs in `review_slas`, who is given work in
`review_roster`, what is shown in `review_views`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from datetime import UTC, datetime
from typing import Literal, TypeVar

from sqlalchemy import Connection, func, insert, select

from docmill.db.clock import database_now
from docmill.db.tables import review_comments, review_items
from docmill.model.errors import InvalidInput, NotFound
from docmill.model.ids import canonical_id, new_id
from docmill.model.people import Permission, Principal
from docmill.model.review import OPEN, AlreadyClaimed, ReviewStatus
from docmill.review.assignment import least_loaded
from docmill.review.editing import lacking, rechecked
from docmill.review.queue import (
    NOBODY,
    Ranked,
    claim_first,
    first_in_queue,
    look,
    open_by_priority,
)
from docmill.review.rows import fields_of
from docmill.services.document_names import document_called
from docmill.services.job_ids import prefix_bounds
from docmill.services.names import names_of
from docmill.services.review_base import Check, check_text, nobody_asks
from docmill.services.review_chores import settle_one
from docmill.services.review_decisions import Decided, Decisions
from docmill.services.review_edits import FieldEdits
from docmill.services.review_roster import Roster
from docmill.services.review_slas import SlaSettings
from docmill.services.review_views import (
    SUMMARIES,
    Comment,
    FieldChange,
    FieldView,
    ItemSummary,
    ItemView,
    comment_of,
    comments_query,
    field_views,
    line_of,
    summary,
    whose,
)

__all__ = [
    "Comment",
    "Decided",
    "FieldChange",
    "FieldView",
    "ItemSummary",
    "ItemView",
    "Review",
]

T = TypeVar("T")
MOST_COMMENT = 10_000
_NAMED = 5


class Review(FieldEdits, Decisions, SlaSettings, Roster):
    """The review of one organisation. Each method takes whoever acts; time is the database's."""

    def list(
        self,
        principal: Principal,
        *,
        status: ReviewStatus | Literal["open"] = "open",
        assigned_to: str | None = None,
        claimed_by: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[ItemSummary]:
        """A page of items: open ones by priority, others the newest first.

        `assigned_to` "": nobody; `after`: go on behind this item.
        """
        self._allow(principal, Permission.REVIEW_READ)
        if status == "open" and assigned_to is None and claimed_by is None:
            return self._by_priority(principal, limit, after)
        query = SUMMARIES.where(review_items.c.org_id == self._org_id)
        wanted = OPEN if status == "open" else (status,)
        query = query.where(review_items.c.status.in_([each.value for each in wanted]))
        query = query.where(review_items.c.superseded_by.is_(None))
        if assigned_to is not None:
            query = query.where(review_items.c.assigned_to == assigned_to)
        if claimed_by is not None:
            query = query.where(review_items.c.claimed_by == claimed_by)
        place = (review_items.c.created_at, review_items.c.id)
        with self._database.read() as connection:
            now = database_now(connection)
            if after is not None:
                last = self._found(connection, after)
                older = (review_items.c.created_at < last.created_at) | (
                    (review_items.c.created_at == last.created_at) & (review_items.c.id < last.id)
                )
                query = query.where(older)
            rows = connection.execute(query.order_by(*(column.desc() for column in place)).limit(limit)).all()
            return self._summaries(connection, rows, now, principal)

    def _by_priority(self, principal: Principal, limit: int, after: str | None) -> Sequence[ItemSummary]:
        def work(connection: Connection, now: datetime) -> Sequence[ItemSummary]:
            last = None
            if after is not None:
                row = self._found(connection, after)
                last = Ranked(summary(row, now, {}).priority.priority, row.id)
            order = open_by_priority(connection, self._org_id, now, limit, last)
            return self._in_order(connection, order, now, principal)

        return self._settled(self._database.read, work)

    def next(self, principal: Principal, *, limit: int = 1) -> Sequence[ItemSummary]:
        """What this reviewer would be given next, best first; nothing is claimed."""
        self._allow(principal, Permission.REVIEW_READ)

        def work(connection: Connection, now: datetime) -> Sequence[ItemSummary]:
            order = first_in_queue(connection, self._org_id, principal.id, now, limit)[:limit]
            return self._in_order(connection, order, now, principal)

        return self._settled(self._database.read, work)

    def _in_order(
        self, connection: Connection, order: Sequence[Ranked], now: datetime, by: Principal
    ) -> Sequence[ItemSummary]:
        ids = [ranked.id for ranked in order]
        rows = connection.execute(SUMMARIES.where(review_items.c.id.in_(ids))).all()
        found = {item.id: item for item in self._summaries(connection, rows, now, by)}
        return [found[each] for each in ids if each in found]

    def get(self, principal: Principal, item_id: str) -> ItemView:
        """An item with its fields, their evidence and checks; also by the id of its document."""
        self._allow(principal, Permission.REVIEW_READ)
        with self._database.read() as connection:
            now = database_now(connection)
            item = self._found(connection, item_id)
            rows = fields_of(connection, item.id)
            line = line_of(connection, item.id)
            count = select(func.count()).select_from(review_comments).where(review_comments.c.item_id.in_(line))
            comments = connection.execute(count).scalar_one()
            named = (*whose(item), *(row.changed_by for row in rows))
            names = names_of(connection, self._org_id, named, principal)
        extraction, schema = self._extraction_of(item)
        _, checks = rechecked(rows, extraction, schema)
        known = {row.name for row in rows}
        offered = () if schema is None else (*schema.fields, *schema.tables)
        return ItemView(
            item=summary(item, now, names),
            fields=field_views(rows, names),
            checks=checks,
            missing=lacking(rows, schema),
            addable=[name for name in offered if name not in known],
            comments=comments,
            supersedes=line[1:],
        )

    def find_id(self, principal: Principal, text: str) -> str:
        """The id that a person means: of an item, of its document, or the beginning of one if no other begins so; or
        the file that the document was.
        """
        self._allow(principal, Permission.REVIEW_READ)
        bounds = prefix_bounds(text)
        with self._database.read() as connection:
            if bounds is None:
                named = None if canonical_id(text) else document_called(connection, self._org_id, text)
                return str(self._found(connection, named or text).id)
            query = select(review_items.c.id, review_items.c.document_id).where(
                review_items.c.id.between(*bounds), review_items.c.org_id == self._org_id
            )
            rows = connection.execute(query.order_by(review_items.c.round.desc(), review_items.c.id)).fetchmany(100)
            named = None if rows else document_called(connection, self._org_id, text)
            if named is not None:
                return str(self._found(connection, named).id)
        found = {row.document_id: row.id for row in reversed(rows)}
        if not found:
            raise NotFound(f"There is no review item {text}. `docmill review list` shows those there are.", id=text)
        if len(found) > 1:
            named = ", ".join(sorted(found.values())[:_NAMED])
            raise InvalidInput(f"Several items begin with {text}: {named}. Write more of the id.", ids=sorted(found))
        return str(next(iter(found.values())))

    def claim_next(self, principal: Principal) -> ItemSummary | None:
        """Claim the item that comes first for this reviewer; None if there is none."""
        self._allow(principal, Permission.REVIEW_DECIDE)

        def work(connection: Connection, now: datetime) -> ItemSummary | None:
            until = now + self._claim_for
            claimed = claim_first(connection, self._org_id, principal.id, now, until)
            if claimed is None:
                return None
            shown = self._summary(connection, claimed.id, now, principal)
            self._record_claim(connection, principal, claimed.id, now, until)
            return shown

        return self._settled(self._database.write, work)

    def claim(self, principal: Principal, item_id: str, *, version: int | None = None) -> ItemSummary:
        """Claim this item; claiming one's own again renews the claim. AlreadyClaimed if somebody else has it."""
        self._allow(principal, Permission.REVIEW_DECIDE)

        def work(connection: Connection, now: datetime) -> ItemSummary:
            item = self._hold_item(connection, self._found(connection, item_id).id, version)
            self._check_undecided(connection, item)
            names = names_of(connection, self._org_id, whose(item), principal)
            if item.claimed_by not in ("", principal.id):
                until = item.claim_expires_at.isoformat(timespec="seconds")
                who = names.get(item.claimed_by, item.claimed_by)
                raise AlreadyClaimed(
                    f"Item {item.id} is being reviewed by {who} until {until}. Take another, or have it reassigned.",
                    id=item.id,
                    claimed_by=item.claimed_by,
                )
            if item.assigned_to not in ("", principal.id):
                who = names.get(item.assigned_to, item.assigned_to)
                raise AlreadyClaimed(
                    f"Item {item.id} is assigned to {who}. Take another, or have it reassigned.",
                    id=item.id,
                    assigned_to=item.assigned_to,
                )
            renewed = self._renewed(now)
            claim = {"claimed_by": principal.id, "claimed_at": item.claimed_at or now, "postponed_until": None}
            self._write(connection, item, now, status=ReviewStatus.IN_REVIEW, **claim, **renewed)
            shown = self._summary(connection, item.id, now, principal)
            self._record_claim(connection, principal, item.id, now, renewed["claim_expires_at"])
            return shown

        return self._settled(self._database.write, work)

    def release(self, principal: Principal, item_id: str, *, version: int | None = None) -> ItemSummary:
        """Give a claimed item back; what was done to its fields stays."""
        self._allow(principal, Permission.REVIEW_DECIDE)
        with self._writing() as (connection, now):
            item = self._hold_item(connection, self._found(connection, item_id).id, version)
            self._check_claim(connection, item, principal, now)
            self._write(connection, item, now, status=ReviewStatus.PENDING, **NOBODY)
            shown = self._summary(connection, item.id, now, principal)
            self._record(connection, principal, "release", item.id, now, {"claimed_by": item.claimed_by}, {})
            return shown

    def postpone(
        self, principal: Principal, item_id: str, until: datetime, *, version: int | None = None
    ) -> ItemSummary:
        """Leave it alone until then: nobody is given it before. Its SLA goes on."""
        self._allow(principal, Permission.REVIEW_DECIDE)
        with self._writing() as (connection, now):
            if until <= now:
                raise InvalidInput("Name a time that is still to come.", field="until")
            item = self._hold_item(connection, self._found(connection, item_id).id, version)
            self._check_undecided(connection, item)
            if item.status == ReviewStatus.IN_REVIEW.value:
                self._check_claim(connection, item, principal, now)
            later = {"postponed_until": until.astimezone(UTC)}
            self._write(connection, item, now, status=ReviewStatus.PENDING, **later, **NOBODY)
            after = {"postponed_until": until.isoformat()}
            shown = self._summary(connection, item.id, now, principal)
            self._record(connection, principal, "postpone", item.id, now, {"status": item.status}, after)
            return shown

    def resume(self, principal: Principal, item_id: str, *, version: int | None = None) -> ItemSummary:
        """End a postponement now."""
        self._allow(principal, Permission.REVIEW_DECIDE)
        with self._writing() as (connection, now):
            item = self._hold_item(connection, self._found(connection, item_id).id, version)
            self._check_undecided(connection, item)
            if item.postponed_until is None:
                return self._summary(connection, item.id, now, principal)
            self._write(connection, item, now, postponed_until=None)
            shown = self._summary(connection, item.id, now, principal)
            self._record(connection, principal, "resume", item.id, now)
            return shown

    def assign(
        self,
        principal: Principal,
        item_id: str,
        to: str | None = None,
        *,
        version: int | None = None,
        check: Check = nobody_asks,
    ) -> ItemSummary:
        """Give an item to somebody, or to the reviewer with the fewest. A claim of somebody else ends with it.

        `check` may refuse whom it is given to, in the transaction that does.
        """
        self._allow(principal, Permission.REVIEW_MANAGE)
        if to is not None:
            check_text(to, "name of a reviewer", 200, "to")
        return self._assign(principal, item_id, to, version, check)

    def unassign(self, principal: Principal, item_id: str, *, version: int | None = None) -> ItemSummary:
        """Let whoever comes first take it."""
        self._allow(principal, Permission.REVIEW_MANAGE)
        return self._assign(principal, item_id, "", version)

    def _assign(
        self,
        principal: Principal,
        item_id: str,
        to: str | None,
        version: int | None,
        check: Check = nobody_asks,
    ) -> ItemSummary:
        with self._writing() as (connection, now):
            check(connection)
            chosen = to
            if chosen is None:
                chosen = least_loaded(connection, self._org_id)
                if not chosen:
                    raise NotFound("Nobody is enrolled as a reviewer. Enrol somebody, or name whom to assign it to.")
            item = self._hold_item(connection, self._found(connection, item_id).id, version)
            self._check_undecided(connection, item)
            taken = item.claimed_by not in ("", chosen)
            if item.assigned_to == chosen and not taken:
                return self._summary(connection, item.id, now, principal)
            status, ended = (ReviewStatus.PENDING, NOBODY) if taken else (None, {})
            self._write(connection, item, now, status=status, assigned_to=chosen, **ended)
            before = {"assigned_to": item.assigned_to or None, "claimed_by": item.claimed_by or None}
            shown = self._summary(connection, item.id, now, principal)
            self._record(connection, principal, "assign", item.id, now, before, {"assigned_to": chosen or None})
            return shown

    def comment(self, principal: Principal, item_id: str, body: str, *, path: str | None = None) -> Comment:
        """Say something about an item, or about one of its fields; at any time."""
        self._allow(principal, Permission.REVIEW_DECIDE)
        check_text(body, "comment", MOST_COMMENT, "body.body")
        with self._writing() as (connection, now):
            item = self._found(connection, item_id)
            if path is not None and path not in {row.path for row in fields_of(connection, item.id)}:
                raise NotFound(f"Item {item.id} has no field {path}; name one that it shows.", path=path)
            said = Comment(id=new_id(), path=path, body=body, by=principal.id, by_name=principal.name, at=now)
            values = {each.name: getattr(said, each.name) for each in fields(said)}
            connection.execute(insert(review_comments).values(**values, org_id=self._org_id, item_id=item.id))
            self._record(connection, principal, "comment", item.id, now, None, {"body": body, "path": path})
            return said

    def comments(self, principal: Principal, item_id: str) -> Sequence[Comment]:
        """What was said about an item, oldest first."""
        self._allow(principal, Permission.REVIEW_READ)
        with self._database.read() as connection:
            line = line_of(connection, self._found(connection, item_id).id)
            return [comment_of(row) for row in connection.execute(comments_query(line))]

    def _record_claim(
        self, connection: Connection, principal: Principal, item_id: str, now: datetime, until: datetime
    ) -> None:
        after = {"claimed_by": principal.id, "claim_expires_at": until.isoformat()}
        self._record(connection, principal, "claim", item_id, now, None, after)

    def _settled(
        self, begun: Callable[[], AbstractContextManager[Connection]], work: Callable[[Connection, datetime], T]
    ) -> T:
        """Work in a transaction, at a moment for which the order of the queue holds: what has passed until then is
        written down. Nearly always nothing has, and the look at it is the transaction's first statement."""
        with begun() as connection:
            now, due = look(connection, self._org_id)
            if not due:
                return work(connection, now)
        settle_one(self._database, self._org_id, now, self._recorder)
        with begun() as connection:
            return work(connection, now)
