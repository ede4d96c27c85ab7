"""API keys of one organisation: made, shown once, listed by their first letters, revoked. And who comes with one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from sqlalchemy import Connection, Row, insert, select, update

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import api_keys
from docmill.model.errors import Forbidden, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG, canonical_id, new_id
from docmill.model.people import PERMISSIONS, Permission, Principal, Role, may_grant
from docmill.people.audit import Deed, record
from docmill.people.secrets import HINT, KEY, hashed, new_secret
from docmill.review.discharging import discharge
from docmill.services.acting import OrgService
from docmill.services.invitations import check_founded, checked_name

_SUBJECT = "api_key"
_SEEN = timedelta(minutes=1)
"""How often it is written down that a key was used: not at every request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key, without the key itself."""

    id: str
    name: str
    hint: str
    role: Role
    scopes: tuple[Permission, ...]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None


class Authenticator(Protocol):
    """Whoever can tell who comes with a secret."""

    def authenticate(self, token: str) -> Principal | None:
        """Who this is; None if it proves nothing."""

    def ended(self, token: str) -> "Ended | None":
        """How a right secret came to open nothing any more; None for all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What used to open something. Only whoever has the secret hears of it."""

    name: str
    how: Literal["expired", "revoked"]
    at: datetime


class Door:
    """All ways to come in, as one: each knows its own secrets by how they begin."""

    def __init__(self, *ways: Authenticator) -> None:
        self._ways = ways

    def authenticate(self, token: str) -> Principal | None:
        """Who this is; None if it proves nothing."""
        return next((found for way in self._ways if (found := way.authenticate(token)) is not None), None)

    def ended(self, token: str) -> Ended | None:
        """How a right secret came to open nothing any more; None for all others."""
        return next((found for way in self._ways if (found := way.ended(token)) is not None), None)


class KeyService:
    """Who comes with an API key, of whatever organisation."""

    def __init__(self, database: Database) -> None:
        self._database = database.as_entry()

    def authenticate(self, token: str) -> Principal | None:
        """Who this is; None if there is no such key, or it has expired or been revoked."""
        if not token.startswith(KEY):
            return None
        row, now = self._row(token)
        if row is None or _ended(row, now) is not None:
            return None
        if row.used_at is None or row.used_at <= now - _SEEN:
            with self._database.write() as connection:
                connection.execute(update(api_keys).where(api_keys.c.id == row.id).values(used_at=now))
        role = Role(row.role)
        scopes = scopes_of(row, now)
        return Principal(org_id=row.org_id, kind="key", id=row.id, name=row.name, role=role, scopes=scopes)

    def ended(self, token: str) -> Ended | None:
        """How the key of this secret came to its end; None if it has not, or there is none."""
        if not token.startswith(KEY):
            return None
        row, now = self._row(token)
        return None if row is None else _ended(row, now)

    def _row(self, token: str) -> tuple[Row[Any] | None, datetime]:
        with self._database.read() as connection:
            now = database_now(connection)
            row = connection.execute(select(api_keys).where(api_keys.c.token_hash == hashed(token))).one_or_none()
        return row, now


def _ended(row: Row[Any], now: datetime) -> Ended | None:
    if row.revoked_at is not None:
        return Ended(name=row.name, how="revoked", at=row.revoked_at)
    if row.expires_at is not None and row.expires_at <= now:
        return Ended(name=row.name, how="expired", at=row.expires_at)
    return None


def scopes_of(row: Row[Any], now: datetime) -> frozenset[Permission]:
    """What whoever comes with this key may do at this moment; nothing once it has ended."""
    if _ended(row, now) is not None:
        return frozenset()
    # What the role no longer has, a key made under it no longer has either.
    return PERMISSIONS[Role(row.role)] & _permissions(row.scopes)


class Keys(OrgService):
    """The keys of one organisation. Each method takes whoever acts; time is the database's."""

    def __init__(self, database: Database, org_id: str = DEFAULT_ORG) -> None:
        self._database = database.scoped(org_id)
        self._org_id = org_id

    def create(
        self,
        principal: Principal,
        name: str,
        *,
        role: Role = Role.SERVICE,
        scopes: Iterable[Permission | str] | None = None,
        expires_in: timedelta | None = None,
    ) -> tuple[ApiKey, str]:
        """A key that may do what the role may, or the part of it in `scopes`; and the key itself, shown once.

        Nobody makes a key that may do more than they may themselves.
        """
        self._allow(principal, Permission.KEYS_MANAGE)
        name = checked_name(name, "name")
        if not may_grant(principal.role, role):
            raise Forbidden(
                f"{principal.name}, as {principal.role}, may not make keys for the role {role}. Ask an owner."
            )
        wanted = _checked(scopes, role)
        beyond = sorted(wanted - principal.scopes)
        if beyond:
            raise Forbidden(f"{principal.name} may not give what it does not have: {', '.join(beyond)}.")
        if expires_in is not None and expires_in <= timedelta(0):
            raise InvalidInput("A key expires in the future.", field="expires_in")
        token = new_secret(KEY)
        with self._database.write() as connection:
            check_founded(connection, self._org_id)
            now = database_now(connection)
            made = ApiKey(
                id=new_id(),
                name=name,
                hint=token[:HINT],
                role=role,
                scopes=tuple(sorted(wanted)),
                created_at=now,
                created_by=principal.id,
                expires_at=None if expires_in is None else now + expires_in,
                used_at=None,
                revoked_at=None,
            )
            names = ("id", "name", "hint", "created_at", "created_by", "expires_at")
            values = {each: getattr(made, each) for each in names} | {"scopes": [each.value for each in made.scopes]}
            connection.execute(
                insert(api_keys).values(org_id=self._org_id, role=role.value, token_hash=hashed(token), **values)
            )
            after = {"name": name, "role": role.value, "scopes": values["scopes"]}
            record(connection, principal, "key.create", (_SUBJECT, made.id), None, after, now=now)
        return made, token

    def list(self, principal: Principal) -> Sequence[ApiKey]:
        """All keys, also those that no longer open anything; the newest first."""
        self._allow(principal, Permission.KEYS_MANAGE)
        query = select(api_keys).where(api_keys.c.org_id == self._org_id)
        with self._database.read() as connection:
            return [
                _key(row) for row in connection.execute(query.order_by(api_keys.c.created_at.desc(), api_keys.c.id))
            ]

    def revoke(self, principal: Principal, key: str) -> ApiKey:
        """Make a key worthless, by its id, its first letters or its name; a second time changes nothing.

        What it had to review, assigned or claimed, is for anybody.
        """
        self._allow(principal, Permission.KEYS_MANAGE)
        stored = canonical_id(key)
        mine = select(api_keys).where(api_keys.c.org_id == self._org_id)
        which = (api_keys.c.hint == key) | (api_keys.c.name == key)
        with self._database.write() as connection:
            rows = connection.execute(mine.where(api_keys.c.id == stored if stored is not None else which)).all()
            if len(rows) > 1:
                raise InvalidInput(f"There are {len(rows)} keys {key!r}; say which by its id.", field="key")
            if not rows:
                raise NotFound(f"There is no key {key}. `docmill keys list` shows those there are.", key=key)
            if not may_grant(principal.role, Role(rows[0].role)):
                raise Forbidden(
                    f"{principal.name}, as {principal.role}, may not revoke keys of the role {rows[0].role}. "
                    "Ask an owner."
                )
            now = database_now(connection)
            deed = _revoked(connection, rows[0], now)
            if deed is not None:
                discharge(connection, self._org_id, [rows[0].id], now)
                record(connection, principal, *deed, now=now)
            return _key(connection.execute(mine.where(api_keys.c.id == rows[0].id)).one())


def revoke_made_by(
    connection: Connection, org_id: str, maker: str, role: Role | None, *, now: datetime
) -> Sequence[Deed]:
    """Revoke what somebody made and could not make as `role` (None: as nobody); also what those keys made.

    Whoever makes a key has seen it. What was done is for the caller to record, and what the keys had to review to give
    back: keys are locked before items, by everybody.
    """
    living = (api_keys.c.org_id == org_id, api_keys.c.revoked_at.is_(None))
    # A key is younger than the key that made it.
    rows = connection.execute(select(api_keys).where(*living).order_by(api_keys.c.created_at, api_keys.c.id)).all()
    makers: set[str] = set()
    deeds = []
    for row in rows:
        beyond = role is None or not may_grant(role, Role(row.role))
        if row.created_by in makers or (row.created_by == maker and beyond):
            makers.add(row.id)
            deeds.append(_revoked(connection, row, now))
    return [deed for deed in deeds if deed is not None]


def _revoked(connection: Connection, row: Row[Any], now: datetime) -> Deed | None:
    """None for a key that was revoked before: of two that revoke it at once, one does."""
    living = (api_keys.c.id == row.id, api_keys.c.revoked_at.is_(None))
    if not connection.execute(update(api_keys).where(*living).values(revoked_at=now)).rowcount:
        return None
    return Deed("key.revoke", (_SUBJECT, row.id), {"name": row.name, "role": row.role})


def _checked(scopes: Iterable[Permission | str] | None, role: Role) -> frozenset[Permission]:
    if scopes is None:
        return PERMISSIONS[role]
    given = {str(each) for each in scopes}
    unknown = sorted(given - {each.value for each in PERMISSIONS[role]})
    if unknown or not given:
        known = ", ".join(sorted(PERMISSIONS[role]))
        wrong = ", ".join(unknown) or "nothing"
        raise InvalidInput(f"A key of the role {role} may not have {wrong}; it may have {known}.", field="scopes")
    return frozenset(Permission(each) for each in given)


def _permissions(scopes: Iterable[str]) -> frozenset[Permission]:
    """Those that this release knows: a key that a newer one made may name others."""
    known = {each.value: each for each in Permission}
    return frozenset(known[each] for each in scopes if each in known)


def _key(row: Row[Any]) -> ApiKey:
    names = ("id", "name", "hint", "created_at", "created_by", "expires_at", "used_at", "revoked_at")
    scopes = tuple(sorted(_permissions(row.scopes)))
    return ApiKey(**{name: getattr(row, name) for name in names}, role=Role(row.role), scopes=scopes)
