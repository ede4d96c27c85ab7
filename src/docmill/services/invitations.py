"""Ways in: single-use, expiring, stored as a hash. To join an organisation, or to choose a password anew."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from docmill.db.tables import invitations, organisations
from docmill.model.errors import Conflict, InvalidInput
from docmill.model.ids import canonical_id, new_id
from docmill.model.people import Role
from docmill.people.secrets import INVITATION, hashed, new_secret

INVITED_FOR = timedelta(days=7)
_EMAIL = re.compile(r"[^@\s,;<>\"]{1,64}@[^@\s,;<>\"]{1,255}")
_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """One way in, without the secret that opens it."""

    id: str
    email: str
    role: Role
    resets: bool
    created_at: datetime
    created_by: str
    expires_at: datetime
    used_at: datetime | None


def checked_email(email: str) -> str:
    """The address as it is stored; InvalidInput if it is none."""
    email = email.strip().casefold()
    if not email.isprintable() or _EMAIL.fullmatch(email) is None:
        raise InvalidInput(f"{email!r} is no email address; write one such as ann@mill.example.", field="email")
    return email


def checked_name(name: str, field: str) -> str:
    """A name as it is stored; InvalidInput if it is empty, too long, or not for showing."""
    name = " ".join(name.split())
    if not 0 < len(name) <= _NAME or not name.isprintable():
        raise InvalidInput(f"A name has 1 to {_NAME} characters, and none that cannot be shown.", field=field)
    return name


def check_founded(connection: Connection, org_id: str) -> None:
    """Refuse to let people or keys into an organisation that nobody has founded; it works without them."""
    if connection.execute(select(organisations.c.id).where(organisations.c.id == org_id)).first() is None:
        raise Conflict("Nobody has founded this organisation yet. Run `docmill init`, then let others in.")


def invite(
    connection: Connection,
    org_id: str,
    email: str,
    role: Role,
    *,
    now: datetime,
    by: str,
    within: timedelta = INVITED_FOR,
    resets: bool = False,
) -> tuple[Invitation, str]:
    """Store a way in, and its secret for whoever is invited: it is never seen again. Earlier ones for them end."""
    mine = (invitations.c.org_id == org_id, invitations.c.email == email, invitations.c.used_at.is_(None))
    connection.execute(update(invitations).where(*mine, invitations.c.expires_at > now).values(expires_at=now))
    token = new_secret(INVITATION)
    made = Invitation(
        id=new_id(),
        email=email,
        role=role,
        resets=resets,
        created_at=now,
        created_by=by,
        expires_at=now + within,
        used_at=None,
    )
    values = {name: getattr(made, name) for name in ("id", "email", "resets", "created_at", "created_by", "expires_at")}
    connection.execute(insert(invitations).values(**values, org_id=org_id, role=role.value, token_hash=hashed(token)))
    return made, token


def close_ways(connection: Connection, org_id: str, email: str) -> None:
    """No way in that is still open for somebody leads anywhere. Deleted: one that only ended now might be in use."""
    mine = (invitations.c.org_id == org_id, invitations.c.email == email, invitations.c.used_at.is_(None))
    connection.execute(delete(invitations).where(*mine))


def by_installation(row: Row[Any]) -> bool:
    """Whether whoever runs the installation made it: members and keys act under ids, the installation under a name."""
    return canonical_id(row.created_by) is None


def invitation(row: Row[Any]) -> Invitation:
    """A row as people see it."""
    names = ("id", "email", "created_at", "created_by", "expires_at", "used_at")
    return Invitation(**{name: getattr(row, name) for name in names}, role=Role(row.role), resets=bool(row.resets))
