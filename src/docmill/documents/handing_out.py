"""Originals for somebody outside: a link that works as it stands and expires, made anew whenever it is asked for.

A link is never stored or logged: whoever has it needs nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import bindparam, select

from docmill.db.database import Database
from docmill.db.tables import documents
from docmill.documents.blobs import Blobs
from docmill.model.ids import canonical_id

ENTITY = "document"
LONGEST = timedelta(days=7)
"""No bucket signs for longer."""
# An entity is named by any text; on SQLite nothing else keeps it from naming another organisation's document.
_ORIGINAL = select(documents.c.original_key).where(
    documents.c.id == bindparam("the_id"), documents.c.org_id == bindparam("the_org")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLink:
    """Where an original can be fetched, and until when."""

    url: str = field(repr=False)
    """Whoever has it needs nothing else: not for logs."""
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Originals:
    """The originals of an installation, as they are handed out."""

    database: Database
    blobs: Callable[[], Blobs]
    public_url: str | None = None
    """Where the API is reached. Without it bytes in a folder have no address; a bucket has its own."""

    def link(
        self, org_id: str, entity_type: str, entity_id: str, *, within: timedelta, now: datetime
    ) -> FileLink | None:
        """A link to the original of this entity, good for so long but no longer than LONGEST.

        None: it is no document of this organisation, its original is gone, or there is no address to give.
        """
        stored = canonical_id(entity_id) if entity_type == ENTITY else None
        if stored is None:
            return None
        with self.database.scoped(org_id).read() as connection:
            key = connection.execute(_ORIGINAL, {"the_id": stored, "the_org": org_id}).scalar()
        if key is None or not self.blobs().has(key):
            return None
        within = min(within, LONGEST)
        signed = self.blobs().sign(key, within=within, now=now)
        if signed.startswith("/"):
            if self.public_url is None:
                return None
            signed = self.public_url + signed
        return FileLink(url=signed, expires_at=now + within)
