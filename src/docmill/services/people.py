"""The members of one organisation: who they are, what they may do, inviting and removing them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from docmill.db.clock import database_now
from docmill.db.conflicts import insert_into
from docmill.db.database import Database
from docmill.db.tables import api_keys, invitations, memberships, reviewers, sessions, users
from docmill.model.errors import Conflict, Forbidden, NotFound
from docmill.model.ids import DEFAULT_ORG, canonical_id, is_id
from docmill.model.people import PERMISSIONS, Permission, Principal, Role, may_grant
from docmill.people.audit import Deed, record, record_all
from docmill.review.discharging import discharge
from docmill.services.acting import OrgService
from docmill.services.invitations import (
    INVITED_FOR,
    Invitation,
    check_founded,
    checked_email,
    close_ways,
    invitation,
    invite,
)
from docmill.services.keys import revoke_made_by, scopes_of

MEMBER = "member"
RESET_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Somebody who belongs to the organisation."""

    id: str
    email: str
    name: str
    role: Role
    created_at: datetime


class People(OrgService):
    """The members of one organisation. Each method takes whoever acts; time is the database's."""

    def __init__(self, database: Database, org_id: str = DEFAULT_ORG) -> None:
        self._database = database.scoped(org_id)
        self._org_id = org_id

    def list(self, principal: Principal) -> Sequence[Member]:
        """All members, by address."""
        self._allow(principal, Permission.MEMBERS_READ)
        with self._database.read() as connection:
            return [_member(row) for row in connection.execute(self._members().order_by(users.c.email))]

    def get(self, principal: Principal, who: str) -> Member:
        """A member, by id or address."""
        self._allow(principal, Permission.MEMBERS_READ)
        with self._database.read() as connection:
            return _member(self._found(connection, who))

    def hold_reviewer(self, principal: Principal, who: str, connection: Connection) -> None:
        """NotFound if nobody of this id may review: what is given to nobody waits for nobody, and is never seen again.

        Called in the transaction that gives it, before anything else is locked: until its commit they stay who they
        are, and whoever leaves then is discharged of it. Whoever asks is somebody. Where there are no members people
        are known by whatever they are called.
        """
        self._allow(principal, Permission.REVIEW_MANAGE)
        anybody = select(memberships.c.user_id).where(memberships.c.org_id == self._org_id)
        if who == principal.id or connection.execute(anybody.limit(1)).first() is None:
            return
        if not is_id(who) or Permission.REVIEW_DECIDE not in self._scopes(connection, who):
            raise NotFound(
                f"There is no member {who} who may review; `GET /members` has their ids.", field="to", member=who
            )

    def _scopes(self, connection: Connection, who: str) -> frozenset[Permission]:
        """What a member or a key may do, until the commit; nothing, where there is neither."""
        member = select(memberships.c.role).where(*self._mine(who))
        role = connection.execute(member.with_for_update(read=True)).scalar()
        if role is not None:
            return PERMISSIONS[Role(role)]
        mine = select(api_keys).where(api_keys.c.org_id == self._org_id, api_keys.c.id == who)
        key = connection.execute(mine.with_for_update(read=True)).one_or_none()
        return frozenset() if key is None else scopes_of(key, database_now(connection))

    def invitations(self, principal: Principal) -> Sequence[Invitation]:
        """Ways in that nobody has used yet, also those whose time is up; the newest first."""
        self._allow(principal, Permission.MEMBERS_READ)
        query = select(invitations).where(invitations.c.org_id == self._org_id, invitations.c.used_at.is_(None))
        with self._database.read() as connection:
            return [invitation(row) for row in connection.execute(query.order_by(invitations.c.created_at.desc()))]

    def invite(
        self, principal: Principal, email: str, role: Role, *, within: timedelta = INVITED_FOR
    ) -> tuple[Invitation, str]:
        """A way in for somebody, and its secret, which is shown once."""
        self._allow(principal, Permission.MEMBERS_MANAGE)
        _check_grant(principal, role)
        email = checked_email(email)
        with self._writing() as connection:
            check_founded(connection, self._org_id)
            if connection.execute(self._members().where(users.c.email == email)).first() is not None:
                raise Conflict(
                    f"{email} is a member already. `docmill members role` changes what they may do.", email=email
                )
            now = database_now(connection)
            made = invite(connection, self._org_id, email, role, now=now, by=principal.id, within=within)
            after = {"email": email, "role": role.value}
            record(connection, principal, "member.invite", ("invitation", made[0].id), None, after, now=now)
        return made

    def withdraw(self, principal: Principal, invitation_id: str) -> None:
        """Take an invitation back that nobody has used."""
        self._allow(principal, Permission.MEMBERS_MANAGE)
        with self._writing() as connection:
            now = database_now(connection)
            mine = (invitations.c.org_id == self._org_id, invitations.c.id == canonical_id(invitation_id))
            gone = delete(invitations).where(*mine, invitations.c.used_at.is_(None)).returning(invitations)
            row = connection.execute(gone).one_or_none()
            if row is None:
                raise NotFound(
                    f"There is no open invitation {invitation_id}. `docmill members list` shows those there are.",
                    id=invitation_id,
                )
            before = {"email": row.email, "role": row.role}
            record(connection, principal, "member.withdraw", ("invitation", row.id), before, None, now=now)

    def reset(self, principal: Principal, who: str) -> tuple[Invitation, str]:
        """A way for a member to choose a password anew, and its secret. Their sessions end when it is used.

        For somebody who belongs to other organisations too it is good only if the installation made it: see
        `Sessions.accept`.
        """
        self._allow(principal, Permission.MEMBERS_MANAGE)
        with self._writing() as connection:
            row = self._held(connection, who)
            # Whoever could, would become what they may not make.
            _check_grant(principal, Role(row.role))
            now = database_now(connection)
            role = Role(row.role)
            made = invite(
                connection, self._org_id, row.email, role, now=now, by=principal.id, within=RESET_FOR, resets=True
            )
            record(connection, principal, "member.reset", (MEMBER, row.id), None, None, now=now)
        return made

    def set_role(
        self, principal: Principal, who: str, role: Role, *, onto: Callable[[Member], None] | None = None
    ) -> Member:
        """Let a member do something else. It counts from their next request on.

        Keys that they made and could not make any more are revoked, and what would let them in anew is closed: whoever
        made it decided about another role. `onto` may refuse what they are until now.
        """
        self._allow(principal, Permission.MEMBERS_MANAGE)
        _check_grant(principal, role)
        with self._writing() as connection:
            self._hold_owners(connection)
            row = self._held(connection, who)
            _check_grant(principal, Role(row.role))
            if onto is not None:
                onto(_member(row))
            if row.role != role.value:
                self._check_owner_left(connection, row, role)
                now = database_now(connection)
                close_ways(connection, self._org_id, row.email)
                connection.execute(update(memberships).where(*self._mine(row.id)).values(role=role.value))
                enlist(connection, self._org_id, row.id, role)
                deeds = revoke_made_by(connection, self._org_id, row.id, role, now=now)
                leaving = [deed.subject[1] for deed in deeds] + ([] if role is Role.REVIEWER else [row.id])
                decides = Permission.REVIEW_DECIDE in PERMISSIONS[role]
                discharge(connection, self._org_id, leaving, now, deciding=[row.id] if decides else [])
                change = ({"role": row.role}, {"role": role.value})
                record_all(connection, principal, [Deed("member.role", (MEMBER, row.id), *change), *deeds], now=now)
            return _member(self._found(connection, row.id))

    def remove(self, principal: Principal, who: str) -> None:
        """Let a member go: their sessions and keys end, what was theirs to review is for others.

        No way in that was made for them, or to choose a password anew, leads back.
        """
        self._allow(principal, Permission.MEMBERS_MANAGE)
        with self._writing() as connection:
            self._hold_owners(connection)
            row = self._held(connection, who)
            _check_grant(principal, Role(row.role))
            self._check_owner_left(connection, row, None)
            now = database_now(connection)
            # Before the sessions, as whoever accepts does: two that lock in the same order do not wait for each other.
            close_ways(connection, self._org_id, row.email)
            connection.execute(delete(sessions).where(sessions.c.org_id == self._org_id, sessions.c.user_id == row.id))
            connection.execute(delete(memberships).where(*self._mine(row.id)))
            deeds = revoke_made_by(connection, self._org_id, row.id, None, now=now)
            discharge(connection, self._org_id, [row.id, *(deed.subject[1] for deed in deeds)], now)
            before = {"email": row.email, "role": row.role}
            record_all(connection, principal, [Deed("member.remove", (MEMBER, row.id), before), *deeds], now=now)

    def _writing(self) -> AbstractContextManager[Connection]:
        return self._database.write()

    def _mine(self, user_id: str) -> tuple[Any, Any]:
        return memberships.c.org_id == self._org_id, memberships.c.user_id == user_id

    def _members(self) -> Any:
        columns = (users.c.id, users.c.email, users.c.name, memberships.c.role, memberships.c.created_at)
        joined = memberships.join(users, users.c.id == memberships.c.user_id)
        return select(*columns).select_from(joined).where(memberships.c.org_id == self._org_id)

    def _held(self, connection: Connection, who: str) -> Row[Any]:
        """A member whose role stays what it is until the commit: what was checked is what is changed."""
        return self._found(connection, who, self._members().with_for_update(of=memberships))

    def _found(self, connection: Connection, who: str, among: Any = None) -> Row[Any]:
        members = self._members() if among is None else among
        stored = canonical_id(who)
        which = users.c.id == stored if stored is not None else users.c.email == who.strip().casefold()
        row: Row[Any] | None = connection.execute(members.where(which)).one_or_none()
        if row is None:
            raise NotFound(f"There is no member {who}. `docmill members list` shows those there are.", member=who)
        return row

    def _hold_owners(self, connection: Connection) -> None:
        """Of two owners who remove each other at once, the second finds itself the last."""
        owners = (memberships.c.org_id == self._org_id, memberships.c.role == Role.OWNER.value)
        connection.execute(
            select(memberships.c.user_id).where(*owners).order_by(memberships.c.user_id).with_for_update()
        ).all()

    def _check_owner_left(self, connection: Connection, row: Row[Any], role: Role | None) -> None:
        if row.role != Role.OWNER.value or role is Role.OWNER:
            return
        others = self._members().where(memberships.c.role == Role.OWNER.value, users.c.id != row.id)
        if connection.execute(others.limit(1)).first() is None:
            raise Conflict(
                f"{row.email} is the only owner. Make somebody else owner first: `docmill members role`.", id=row.id
            )


def enlist(connection: Connection, org_id: str, user_id: str, role: Role) -> None:
    """Reviewers are given work from the day they become one."""
    if role is Role.REVIEWER:
        enrolled = insert_into(connection, reviewers).values(org_id=org_id, reviewer=user_id, turn=0)
        connection.execute(enrolled.on_conflict_do_nothing())


def add_member(connection: Connection, org_id: str, user_id: str, role: Role, *, now: datetime, by: str) -> bool:
    """Make somebody a member; False if they are one already, whose role stays."""
    known = select(memberships.c.role).where(memberships.c.org_id == org_id, memberships.c.user_id == user_id)
    if connection.execute(known).first() is not None:
        return False
    values = {"org_id": org_id, "user_id": user_id, "role": role.value, "created_at": now, "created_by": by}
    connection.execute(insert(memberships).values(**values))
    enlist(connection, org_id, user_id, role)
    return True


def _check_grant(principal: Principal, role: Role) -> None:
    if not may_grant(principal.role, role):
        raise Forbidden(
            f"{principal.name}, as {principal.role}, may not decide about the role {role}. Ask an owner.",
            role=role.value,
        )


def _member(row: Row[Any]) -> Member:
    return Member(id=row.id, email=row.email, name=row.name, role=Role(row.role), created_at=row.created_at)
