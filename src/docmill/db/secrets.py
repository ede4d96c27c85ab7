"""Secrets of the installation: made at their first use, the same for every process from then on. Never logged."""

import secrets as random
from datetime import datetime

from sqlalchemy import Connection, select

from docmill.db.conflicts import insert_into
from docmill.db.database import Database
from docmill.db.tables import secrets

CALLBACK_TOKENS = "callback_tokens"
"""Proves that a token was given out by this installation."""
BLOB_LINKS = "blob_links"
"""Proves that a link to a blob was given out by this installation."""
UPLOAD_SLOTS = "upload_slots"
"""Proves that the right to upload a document was given out by this installation."""
_BYTES = 32


def installation_secret(database: Database, name: str, *, now: datetime) -> bytes:
    """The secret of this name. Of two that make it at the same moment, the second finds the first one's."""
    with database.as_engine().read() as connection:
        value = _stored(connection, name)
    if value is None:
        with database.as_engine().write() as connection:
            new = insert_into(connection, secrets).values(name=name, value=random.token_bytes(_BYTES), created_at=now)
            connection.execute(new.on_conflict_do_nothing())
            value = _stored(connection, name)
            assert value is not None
    return value


def _stored(connection: Connection, name: str) -> bytes | None:
    value = connection.execute(select(secrets.c.value).where(secrets.c.name == name)).scalar_one_or_none()
    return None if value is None else bytes(value)
