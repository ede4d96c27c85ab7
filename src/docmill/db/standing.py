"""As whom a connection speaks: on PostgreSQL a role and an organisation, which row-level security goes by.

Pooled connections take a standing for one transaction, so none can leak into the next; sessions of the engine take one
for good. On SQLite there are no roles: there the services ask for their own organisation in every query.
"""

from dataclasses import dataclass
from typing import Any

APP = "docmill_app"
"""Acts for one organisation: services, processors and entity loaders."""
ENGINE = "docmill_engine"
"""Moves the jobs of all organisations, and sees nothing but the engine's tables."""
ENTRY = "docmill_entry"
"""Finds out who is at the door, before it is known which organisation they belong to."""
KEEPER = "docmill_keeper"
"""Does the chores that concern all organisations."""
ROLES = (APP, ENGINE, ENTRY, KEEPER)

ORG_SETTING = "docmill.org"

_FOR_ONE_TRANSACTION = "select set_config('role', %s, true), set_config('docmill.org', %s, true)"
_FOR_GOOD = "select set_config('role', %s, false), set_config('docmill.org', %s, false)"


@dataclass(frozen=True, slots=True)
class Standing:
    """A role, and the organisation it acts for; none: it sees no rows of any."""

    role: str
    org_id: str = ""

    def take(self, raw: Any) -> None:
        """For the transaction under way; on a driver's connection that has none, one that begins with it.

        In a pipeline, so that BEGIN and this are one round trip: as many as BEGIN takes alone.
        """
        with raw.pipeline():
            raw.execute(_FOR_ONE_TRANSACTION, (self.role, self.org_id))

    def send(self, raw: Any) -> None:
        """For the transaction under way, in the pipeline that the caller has open or will open."""
        raw.execute(_FOR_ONE_TRANSACTION, (self.role, self.org_id))

    def keep(self, raw: Any) -> None:
        """For as long as the connection lives: it must be nobody else's."""
        raw.execute(_FOR_GOOD, (self.role, self.org_id))
        raw.commit()
