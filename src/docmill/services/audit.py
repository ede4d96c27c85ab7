"""The audit log of one organisation: read, exported, held against its hashes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from docmill.db.database import Database
from docmill.db.tables import audit_log
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import Permission, Principal
from docmill.people.audit import AuditEntry, AuditFault, entry, faults
from docmill.services.acting import OrgService

_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a look at the whole chain found."""

    entries: int
    faults: tuple[AuditFault, ...]


class Audit(OrgService):
    """What was done in one organisation. Each method takes whoever asks."""

    def __init__(self, database: Database, org_id: str = DEFAULT_ORG) -> None:
        self._database = database.scoped(org_id)
        self._org_id = org_id

    def list(
        self,
        principal: Principal,
        *,
        limit: int = 50,
        before: int | None = None,
        subject: tuple[str, str] | None = None,
        actor: str | None = None,
        action: str | None = None,
    ) -> Sequence[AuditEntry]:
        """Entries, the newest first; `before` goes on after the last of a page."""
        self._allow(principal, Permission.AUDIT_READ)
        query = select(audit_log).where(audit_log.c.org_id == self._org_id)
        if before is not None:
            query = query.where(audit_log.c.number < before)
        if subject is not None:
            query = query.where(audit_log.c.subject_type == subject[0], audit_log.c.subject_id == subject[1])
        if actor is not None:
            query = query.where((audit_log.c.actor_id == actor) | (audit_log.c.actor_name == actor))
        if action is not None:
            query = query.where(audit_log.c.action == action)
        with self._database.read() as connection:
            return [entry(row) for row in connection.execute(query.order_by(audit_log.c.number.desc()).limit(limit))]

    def export(self, principal: Principal) -> Iterator[AuditEntry]:
        """All of it, the oldest first, a page at a time: what is added meanwhile comes too."""
        self._allow(principal, Permission.AUDIT_READ)
        return self._pages()

    def _pages(self) -> Iterator[AuditEntry]:
        last = 0
        while True:
            query = select(audit_log).where(audit_log.c.org_id == self._org_id, audit_log.c.number > last)
            with self._database.read() as connection:
                page = [entry(row) for row in connection.execute(query.order_by(audit_log.c.number).limit(_PAGE))]
            if not page:
                return
            yield from page
            last = page[-1].number

    def verify(self, principal: Principal) -> Verified:
        """Hold every entry against its hash, in one look."""
        self._allow(principal, Permission.AUDIT_READ)
        count = select(func.count()).select_from(audit_log).where(audit_log.c.org_id == self._org_id)
        with self._database.read() as connection:
            found = tuple(faults(connection, self._org_id))
            return Verified(entries=connection.execute(count).scalar_one(), faults=found)
