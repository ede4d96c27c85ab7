"""Originals whose time is up: their documents are marked in short transactions, and the bytes go outside of any.

Deleting from a bucket may take long, and whoever waits for one must not hold a lock of the database. So the bytes that
nobody needs any more are written down as leaving, together with the mark; then somebody claims them, looks once more
who needs them, deletes them, and strikes them off. Whoever brings the same bytes in stores its row first and looks for
them here afterwards: of the two, at least one sees the other, so bytes that a document needs are never lost. After a
crash the bytes are still written down, and are collected when the claim has run out.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from time import monotonic

from sqlalchemy import Connection, delete, select, update

from docmill.db.clock import database_now
from docmill.db.conflicts import insert_into
from docmill.db.database import Database
from docmill.db.tables import documents, leaving_blobs
from docmill.documents.blobs import Blobs
from docmill.model.documents import FINISHED_DOCUMENTS

BATCH = 500
"""Documents that are marked in one transaction."""
_AT_A_TIME = 50
"""Blobs that are claimed at a time."""
CLAIM = timedelta(minutes=10)
"""How long a claim holds: well over what deleting one blob takes at worst, with all its repetitions."""
_LAST_BEGIN = timedelta(minutes=5)
"""After how much of its claim nobody begins to delete any more."""
_LOOK = 0.05
"""Seconds between two looks at bytes that are being deleted."""

_KEY = leaving_blobs.c.key


def expire(
    database: Database,
    blobs: Blobs,
    *,
    before: datetime | None = None,
    org_id: str | None = None,
    also: Callable[[Connection], None] | None = None,
) -> int:
    """Delete originals whose time is up; with `before`, also of documents that were done before then; how many.

    With `org_id`, those of one organisation, which marks them itself. Whether bytes are needed is asked of all before
    they go: organisations may share them. `also` is done together with the first that are marked.

    Bytes that another document still needs stay: each is marked, and the last one takes them along.
    """
    keeper = database.as_keeper()
    marker = keeper if org_id is None else database.scoped(org_id)
    marked = 0
    while some := _mark(marker, before, org_id, None if marked else also):
        marked += some
    collect(keeper, blobs)
    return marked


def let_go(connection: Connection, keys: Collection[str]) -> None:
    """Write down as leaving what of these bytes no document needs any more; `collect` them after the commit."""
    leaving = sorted(set(keys) - _needed(connection, sorted(keys)))
    if leaving:
        gone = insert_into(connection, leaving_blobs).on_conflict_do_nothing()
        connection.execute(gone, [{"key": key} for key in leaving])


def collect(keeper: Database, blobs: Blobs) -> None:
    """Delete what is leaving, unless somebody needs it after all."""
    while _collect(keeper, blobs):
        pass


def _mark(
    database: Database, before: datetime | None, org_id: str | None, also: Callable[[Connection], None] | None
) -> int:
    """Some documents, as expired, and their bytes as leaving unless another document has them; how many."""
    with database.write() as connection:
        now = database_now(connection)
        due = documents.c.original_expires_at <= now
        if before is not None:
            due |= documents.c.finished_at < before
        query = select(documents.c.id, documents.c.original_key).where(
            due,
            documents.c.original_expired_at.is_(None),
            documents.c.original_key.is_not(None),
            documents.c.status.in_([status.value for status in FINISHED_DOCUMENTS]),
        )
        if org_id is not None:
            query = query.where(documents.c.org_id == org_id)
        rows = connection.execute(query.order_by(documents.c.id).limit(BATCH)).all()
        if not rows:
            return 0
        write = update(documents).where(documents.c.id.in_([row.id for row in rows]))
        connection.execute(write.values(original_expired_at=now, original_key=None))
        let_go(connection, {row.original_key for row in rows})
        if also is not None:
            also(connection)
    return len(rows)


def _needed(connection: Connection, keys: Sequence[str]) -> set[str]:
    query = select(documents.c.original_key).where(documents.c.original_key.in_(keys)).distinct()
    return set(connection.execute(query).scalars())


def _collect(database: Database, blobs: Blobs) -> int:
    """Claim some of what is leaving, and delete what nobody needs; how many were claimed."""
    with database.read() as connection:
        if connection.execute(select(_KEY).where(_free(database_now(connection))).limit(1)).first() is None:
            return 0
    with database.write() as connection:
        now = database_now(connection)
        free = select(_KEY).where(_free(now)).order_by(_KEY).limit(_AT_A_TIME)
        found = list(connection.execute(free).scalars())
        # Conditional once more: of two that found the same, the second finds them taken.
        claim = update(leaving_blobs).where(_KEY.in_(found), _free(now)).values(claimed_at=now)
        keys = sorted(connection.execute(claim.returning(_KEY)).scalars())
    last_begin = monotonic() + _LAST_BEGIN.total_seconds()
    # Only now, with the claim there for all to see: whoever stores a row after this look sees the claim.
    with database.read() as connection:
        needed = _needed(connection, keys)
    struck: list[str] = []
    try:
        for key in keys:
            if key not in needed:
                if monotonic() > last_begin:
                    break
                blobs.delete(key)
            struck.append(key)
    finally:
        if struck:
            with database.write() as connection:
                connection.execute(delete(leaving_blobs).where(_KEY.in_(struck), leaving_blobs.c.claimed_at == now))
    return len(keys)


def _free(now: datetime):  # type: ignore[no-untyped-def]
    return leaving_blobs.c.claimed_at.is_(None) | (leaving_blobs.c.claimed_at <= now - CLAIM)


def stay(database: Database, keys: Sequence[str], pause: Callable[[float], object]) -> None:
    """See to it that these bytes are not leaving: called once the row that needs them is stored.

    What nobody has claimed stays by striking it off. Somebody who has is at it this moment, and is waited for: then the
    bytes are there or are not, and nobody takes them away any more.
    """
    while True:
        with database.read() as connection:
            if connection.execute(select(_KEY).where(_KEY.in_(keys)).limit(1)).first() is None:
                return
        with database.write() as connection:
            connection.execute(delete(leaving_blobs).where(_KEY.in_(keys), _free(database_now(connection))))
            if connection.execute(select(_KEY).where(_KEY.in_(keys)).limit(1)).first() is None:
                return
        pause(_LOOK)
