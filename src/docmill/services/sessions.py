"""Signing in and out: by password, limited, with the same answer and in the same time whether there is such a person.

Sessions are rows named by the hash of their secret. What a session allows is looked up at every request, so a role that
is taken away is gone with the next.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import invitations, memberships, organisations, sessions, users
from docmill.model.errors import DocmillError, Forbidden
from docmill.model.ids import canonical_id
from docmill.model.people import PERMISSIONS, Principal, Role
from docmill.people import limits
from docmill.people.audit import record
from docmill.people.passwords import Passwords, check_password
from docmill.people.secrets import SESSION, hashed, new_secret
from docmill.services.invitations import by_installation, checked_name
from docmill.services.organisations import ensure_user
from docmill.services.people import MEMBER, add_member

IDLE, ABSOLUTE = timedelta(hours=12), timedelta(days=14)
_SEEN = timedelta(minutes=1)
"""How often it is written down that a session was used: not at every request."""


_HOLDERS = (
    select(sessions, memberships.c.role, users.c.name)
    .join(
        memberships,
        (memberships.c.org_id == sessions.c.org_id) & (memberships.c.user_id == sessions.c.user_id),
    )
    .join(users, users.c.id == sessions.c.user_id)
)
"""Sessions, with whose they are and what they may do now."""


class SignInFailed(DocmillError):
    """The address or the password is wrong; which of them is not told."""

    code = "sign_in_failed"


class InvitationInvalid(DocmillError):
    """The way in was used, withdrawn or too old, or is none; which of them is not told."""

    code = "invitation_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A new session. The token is its only proof, and is shown once."""

    token: str
    principal: Principal
    expires_at: datetime


class Sessions:
    """Everybody who is signed in, of all organisations."""

    def __init__(
        self, database: Database, passwords: Passwords, *, idle: timedelta = IDLE, absolute: timedelta = ABSOLUTE
    ) -> None:
        self._database = database
        self._passwords = passwords
        self._idle = idle
        self._absolute = absolute

    def sign_in(
        self,
        email: str,
        password: str,
        *,
        organisation: str | None = None,
        address: str | None = None,
        previous: str | None = None,
    ) -> SignedIn:
        """Begin a session, in the organisation named (by id or name) or the one joined first.

        `address` is where the attempt comes from, as far as it can be believed. `previous` is the session that the
        browser had until now: it ends, so that nobody goes on with one that was slipped to them.
        """
        email = email.strip().casefold()
        self._count(email, address)
        with self._database.as_entry().read() as connection:
            user = connection.execute(select(users).where(users.c.email == email)).one_or_none()
        # With nobody there, the same work is done for nothing.
        good = self._matches(password, None if user is None else user.password, email, address)
        if user is None or not good:
            raise _refused()
        with self._database.as_entry().read() as connection:
            place = _membership(connection, user.id, organisation)
        if place is None:
            raise _refused()
        signed_in = self._begin(user, place)
        self._forgive(email, address)
        if previous is not None:
            self.sign_out(previous)
        return signed_in

    def enter(self, email: str, *, organisation: str | None = None, previous: str | None = None) -> SignedIn:
        """Begin a session for somebody whose address an identity provider vouches for.

        Only members come in: that somebody has an address says nothing about whether they belong here.
        """
        with self._database.as_entry().read() as connection:
            query = select(users).where(users.c.email == email.strip().casefold())
            user = connection.execute(query).one_or_none()
            place = None if user is None else _membership(connection, user.id, organisation)
        if user is None or place is None:
            raise SignInFailed("Nobody with your address is a member here. Ask to be invited.")
        signed_in = self._begin(user, place)
        if previous is not None:
            self.sign_out(previous)
        return signed_in

    def ended(self, token: str) -> None:
        """Sessions come to their end every day, and whoever had one signs in again: nothing is told of them."""

    def authenticate(self, token: str) -> Principal | None:
        """Who this is; None if the session has ended, or was never there."""
        if not token.startswith(SESSION):
            return None
        query = _HOLDERS.where(sessions.c.token_hash == hashed(token))
        with self._database.as_entry().read() as connection:
            now = database_now(connection)
            row = connection.execute(query).one_or_none()
        if row is None or self._over(row, now):
            return None
        if row.seen_at <= now - _SEEN:
            seen = update(sessions).where(sessions.c.token_hash == row.token_hash).values(seen_at=now)
            with self._database.as_entry().write() as connection:
                connection.execute(seen)
        return _principal(row.org_id, row.user_id, row.name, Role(row.role))

    def sign_out(self, token: str) -> None:
        """End a session. One that has ended is no mistake, and nothing that somebody did."""
        mine = sessions.c.token_hash == hashed(token)
        with self._database.as_entry().read() as connection:
            row = connection.execute(_HOLDERS.where(mine)).one_or_none()
        if row is None:
            return
        with self._database.as_entry(row.org_id).write() as connection:
            now = database_now(connection)
            # Conditional: of two that end it at once, one does.
            gone = connection.execute(delete(sessions).where(mine).returning(sessions)).one_or_none()
            if gone is not None and not self._over(gone, now):
                principal = _principal(row.org_id, row.user_id, row.name, Role(row.role))
                record(connection, principal, "session.sign_out", (MEMBER, row.user_id), now=now)

    def accept(self, token: str, password: str, *, name: str | None = None, address: str | None = None) -> SignedIn:
        """Use a way in: join the organisation (or choose a password anew), and be signed in.

        Somebody who has a password proves it; everybody else chooses one. A password opens every organisation that its
        owner belongs to, so none of them may let others choose it: that is for the installation.
        """
        with self._database.as_entry().read() as connection:
            found = _invitation(connection, token, database_now(connection))
            user = connection.execute(select(users).where(users.c.email == found.email)).one_or_none()
        new = None
        if user is None or user.password is None or found.resets:
            check_password(password, found.email)
            new = self._passwords.hash(password)
        else:
            self._count(found.email, address)
            if not self._matches(password, user.password, found.email, address):
                raise _refused()
            self._forgive(found.email, address)
        called = checked_name(name or (user.name if user else found.email.partition("@")[0]), "name")
        with self._database.as_entry(found.org_id).write() as connection:
            now = database_now(connection)
            # Conditional: of two that use it at once, the second is too late.
            unused = (invitations.c.id == found.id, invitations.c.used_at.is_(None), invitations.c.expires_at > now)
            if connection.execute(update(invitations).where(*unused).values(used_at=now)).rowcount != 1:
                raise _used_up()
            person = ensure_user(connection, found.email, called, now)
            if not found.resets and person.password != (None if user is None else user.password):
                # Chosen since we looked: it was not the one that was proven.
                raise _refused()
            if new is not None:
                _check_only_here(connection, person.id, found)
                connection.execute(update(users).where(users.c.id == person.id).values(password=new))
                connection.execute(delete(sessions).where(sessions.c.user_id == person.id))
            joined = False
            if not found.resets:
                role = Role(found.role)
                joined = add_member(connection, found.org_id, person.id, role, now=now, by=found.created_by)
            place = _membership(connection, person.id, found.org_id)
            if place is None:
                # To choose a password anew brings nobody back who was let go.
                raise _used_up()
            principal = _principal(found.org_id, person.id, person.name, Role(place.role))
            action = "member.join" if joined else "member.password"
            record(connection, principal, action, (MEMBER, person.id), None, {"email": found.email}, now=now)
        return self._begin(person, place)

    def _over(self, session: Row[Any], now: datetime) -> bool:
        """Whether its time is up, or nobody used it for too long."""
        over: bool = session.expires_at <= now or session.seen_at <= now - self._idle
        return over

    def _begin(self, user: Row[Any], place: Row[Any]) -> SignedIn:
        token = new_secret(SESSION)
        principal = _principal(place.org_id, user.id, user.name, Role(place.role))
        with self._database.as_entry(place.org_id).write() as connection:
            now = database_now(connection)
            expires_at = now + self._absolute
            values = {"org_id": place.org_id, "user_id": user.id, "created_at": now, "seen_at": now}
            connection.execute(insert(sessions).values(token_hash=hashed(token), expires_at=expires_at, **values))
            record(connection, principal, "session.sign_in", (MEMBER, user.id), now=now)
        return SignedIn(token=token, principal=principal, expires_at=expires_at)

    def _matches(self, password: str, stored: str | None, email: str, address: str | None) -> bool:
        try:
            return self._passwords.matches(password, stored)
        except limits.SignInLimited:
            # Nobody looked at it, so it was no guess: a flood must not lock out those who know their password.
            with self._database.as_entry().write() as connection:
                limits.uncount(connection, email, address)
            raise

    def _forgive(self, email: str, address: str | None) -> None:
        with self._database.as_entry().write() as connection:
            limits.forgive(connection, email, address)

    def _count(self, email: str, address: str | None) -> None:
        """Count the attempt, and commit that whatever comes of it."""
        refused: limits.SignInLimited | None = None
        with self._database.as_entry().write() as connection:
            try:
                limits.count(connection, email, address, database_now(connection))
            except limits.SignInLimited as error:
                refused = error
        if refused is not None:
            raise refused


def _membership(connection: Connection, user_id: str, organisation: str | None) -> Row[Any] | None:
    query: Select[Any] = (
        select(memberships.c.org_id, memberships.c.role)
        .join(organisations, organisations.c.id == memberships.c.org_id)
        .where(memberships.c.user_id == user_id)
        .order_by(memberships.c.created_at, memberships.c.org_id)
        .limit(1)
    )
    if organisation is not None:
        stored = canonical_id(organisation)
        query = query.where(
            organisations.c.id == stored if stored is not None else organisations.c.name == organisation
        )
    row: Row[Any] | None = connection.execute(query).one_or_none()
    return row


def _invitation(connection: Connection, token: str, now: datetime) -> Row[Any]:
    row = connection.execute(select(invitations).where(invitations.c.token_hash == hashed(token))).one_or_none()
    if row is None or row.used_at is not None or row.expires_at <= now:
        raise _used_up()
    return row


def _check_only_here(connection: Connection, user_id: str, found: Row[Any]) -> None:
    """Refuse a way in by which one organisation would choose the password that opens another."""
    elsewhere = select(memberships.c.org_id).where(
        memberships.c.user_id == user_id, memberships.c.org_id != found.org_id
    )
    if not by_installation(found) and connection.execute(elsewhere.limit(1)).first() is not None:
        raise Forbidden(
            "This password would open another organisation too. Sign in there first; if you do not know your password, "
            "ask whoever runs this installation: `docmill members reset`."
        )


def _principal(org_id: str, user_id: str, name: str, role: Role) -> Principal:
    return Principal(org_id=org_id, kind="user", id=user_id, name=name, role=role, scopes=PERMISSIONS[role])


def _refused() -> SignInFailed:
    return SignInFailed("The address or the password is wrong.")


def _used_up() -> InvitationInvalid:
    return InvitationInvalid("This invitation is not valid, or not any more. Ask whoever invited you for another.")
