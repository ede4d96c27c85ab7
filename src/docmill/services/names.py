"""What the people and keys of an organisation are called, for those who may not list them."""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, select, union_all

from docmill.db.tables import api_keys, audit_log, memberships, users
from docmill.model.ids import is_id
from docmill.model.people import Principal


def names_of(
    connection: Connection, org_id: str, ids: Iterable[str | None], by: Principal | None = None
) -> Mapping[str, str]:
    """Id -> name, of members and keys, revoked ones too; of members who have left as the audit log last knew them.

    Whoever has no id but a name, on the command line or Docmill itself, is called so. Whoever asks is known.
    """
    wanted = {each for each in ids if each}
    known: dict[str, str] = {each: each for each in wanted if not is_id(each)}
    known |= {} if by is None else {by.id: by.name}
    unknown = wanted - known.keys()
    if not unknown:
        return known
    joined = users.join(memberships, memberships.c.user_id == users.c.id)
    members = select(users.c.id, users.c.name).select_from(joined)
    members = members.where(memberships.c.org_id == org_id, users.c.id.in_(unknown))
    keys = select(api_keys.c.id, api_keys.c.name).where(api_keys.c.org_id == org_id, api_keys.c.id.in_(unknown))
    known |= {row.id: row.name for row in connection.execute(union_all(members, keys))}
    return known | _left(connection, org_id, unknown - known.keys())


def _left(connection: Connection, org_id: str, ids: Iterable[str]) -> dict[str, str]:
    """Who has left is no longer anybody's to list, but what they did here was done under a name."""
    deeds = select(audit_log.c.actor_name).where(audit_log.c.org_id == org_id).order_by(audit_log.c.number.desc())
    found = {each: connection.execute(deeds.where(audit_log.c.actor_id == each).limit(1)).scalar() for each in ids}
    return {each: name for each, name in found.items() if name is not None}
