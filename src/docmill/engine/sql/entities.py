"""Entities as locks: who makes a job active shares its entity, who removes an entity's rows has it alone.

SQLite needs none of it: its one writer is alone with everything. On PostgreSQL these are advisory locks that end with
the transaction. Entities are mapped to a few numbers, so that ten thousand jobs submitted at once do not fill the
server's lock table; two entities that meet on one number wait for each other for the length of a transaction at most.
"""

from zlib import crc32

SPACE = 0x646D
"""The first of the two numbers of our advisory locks; keeps them apart from those of other programs."""
SLOTS = 128

SHARE_ENTITIES = f"select pg_advisory_xact_lock_shared({SPACE}, slot) from unnest(%s::int[]) as slot"
"""Waits for whoever has one of them alone. In order of the numbers, as everybody takes them."""

TRY_ALONE = f"select pg_try_advisory_xact_lock({SPACE}, :slot)"
"""Never waits: if somebody shares the entity, its rows are in use or about to be."""


def entity_slot(org_id: str, entity_type: str, entity_id: str) -> int:
    """The number that stands for an entity; the same in every process."""
    return crc32("\x1f".join((org_id, entity_type, entity_id)).encode()) % SLOTS
