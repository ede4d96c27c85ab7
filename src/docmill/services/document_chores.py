"""What a worker does about documents in the background, for all organisations."""

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from docmill.db.database import Database
from docmill.db.tables import document_runs, processed_documents
from docmill.documents.blobs import Blobs
from docmill.services.documents import settle
from docmill.services.expiring import expire
from docmill.services.intervals import Every
from docmill.services.replies import forget_replies

_SETTLE, _EXPIRE = timedelta(seconds=10), timedelta(minutes=1)
"""Between two looks in the background."""
_RUNS_KEPT = timedelta(days=30)


def document_chores(database: Database, blobs: Callable[[], Blobs]) -> tuple[Every, ...]:
    """Documents that failed with their jobs, cached results and originals whose time is up, files left behind.

    Each on its own: a bucket that cannot be reached keeps nobody from the rest.
    """
    database = database.as_keeper()
    return (
        Every(_SETTLE, lambda now: settle(database)),
        Every(_EXPIRE, lambda now: forget(database, now)),
        Every(_EXPIRE, lambda now: forget_replies(database, now)),
        Every(_EXPIRE, lambda now: expire(database, blobs())),
        Every(_EXPIRE, lambda now: blobs().tidy(now)),
    )


def forget(database: Database, now: datetime) -> None:
    """Delete cached results whose time is up, and runs that came to their end long ago."""
    expired = processed_documents.c.expires_at <= now
    ended = document_runs.c.finished_at < now - _RUNS_KEPT
    with database.read() as connection:
        found = connection.execute(select(processed_documents.c.sha256).where(expired).limit(1)).first()
        found = found or connection.execute(select(document_runs.c.id).where(ended).limit(1)).first()
    if found is not None:
        with database.write() as connection:
            connection.execute(delete(processed_documents).where(expired))
            connection.execute(delete(document_runs).where(ended))
