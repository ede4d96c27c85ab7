"""Organisations: founding one with its first owner, and finding them. For whoever runs the installation."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select
from sqlalchemy.exc import IntegrityError

from docmill.db.clock import database_now
from docmill.db.conflicts import insert_into
from docmill.db.database import Database
from docmill.db.tables import memberships, organisations, users
from docmill.model.errors import Conflict, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG, canonical_id, new_id
from docmill.model.people import Role, system_principal
from docmill.people.audit import ORGANISATION, record
from docmill.services.invitations import Invitation, checked_email, checked_name, invite


@dataclass(frozen=True, slots=True, kw_only=True)
class Organisation:
    """One of those who share the installation."""

    id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Founded:
    """An organisation that was just founded, and the way in for its owner: shown once."""

    organisation: Organisation
    owner_id: str
    invitation: Invitation
    token: str


class Organisations:
    """All organisations of the installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> Sequence[Organisation]:
        """All there are, the oldest first."""
        query = select(organisations).order_by(organisations.c.created_at, organisations.c.id)
        with self._database.as_entry().read() as connection:
            return [
                Organisation(id=row.id, name=row.name, created_at=row.created_at) for row in connection.execute(query)
            ]

    def find(self, text: str) -> Organisation:
        """By its id or its name."""
        for found in self.list():
            if text.casefold() == found.name.casefold() or canonical_id(text) == found.id:
                return found
        raise NotFound(f"There is no organisation {text!r}. `docmill init` founds one.", name=text)

    def found(self, name: str, email: str, owner: str, *, another: bool = False, by: str = "system") -> Founded:
        """Found the organisation of this installation: the one whose documents were processed so far. Or another."""
        name, email, owner = checked_name(name, "organisation"), checked_email(email), checked_name(owner, "name")
        org_id = new_id() if another else DEFAULT_ORG
        principal = system_principal(org_id, by)
        try:
            with self._database.as_entry(org_id).write() as connection:
                now = database_now(connection)
                _check_new(connection, org_id, name)
                connection.execute(insert(organisations).values(id=org_id, name=name, created_at=now))
                user = ensure_user(connection, email, owner, now)
                connection.execute(
                    insert(memberships).values(
                        org_id=org_id, user_id=user.id, role=Role.OWNER.value, created_at=now, created_by=by
                    )
                )
                invitation, token = invite(
                    connection, org_id, email, Role.OWNER, now=now, by=by, resets=user.password is None
                )
                after = {"name": name, "owner": email}
                record(connection, principal, "organisation.found", (ORGANISATION, org_id), None, after, now=now)
        except IntegrityError as error:
            raise _taken(name) from error
        organisation = Organisation(id=org_id, name=name, created_at=now)
        return Founded(organisation=organisation, owner_id=user.id, invitation=invitation, token=token)


def ensure_user(connection: Connection, email: str, name: str, now: datetime) -> Row[Any]:
    """The person with this address, made if there is none yet; held until the commit.

    Held, because where somebody belongs decides who may choose their password. Of two that make them at once, both
    get the same person.
    """
    made = insert_into(connection, users).values(id=new_id(), email=email, name=name, created_at=now)
    connection.execute(made.on_conflict_do_nothing(index_elements=["email"]))
    return connection.execute(select(users).where(users.c.email == email).with_for_update()).one()


def _check_new(connection: Connection, org_id: str, name: str) -> None:
    found = {row.id: row.name for row in connection.execute(select(organisations.c.id, organisations.c.name))}
    if org_id in found:
        raise Conflict(
            f"This installation belongs to {found[org_id]!r} already. `docmill members invite` brings people in; "
            "`docmill init --another` founds another organisation beside it.",
            organisation=found[org_id],
        )
    if name.casefold() in {each.casefold() for each in found.values()}:
        raise _taken(name)


def _taken(name: str) -> InvalidInput:
    return InvalidInput(f"There is an organisation {name!r} already; choose another name.", field="organisation")
