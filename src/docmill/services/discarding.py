"""Documents that failed, and never had a result, leave: the row, its claim on a key, and bytes that nobody else needs.

What was once read stays: results, reviews and copies speak of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, exists, select

from docmill.db.database import Database
from docmill.db.tables import documents, jobs, processed_documents, review_items
from docmill.documents.blobs import Blobs
from docmill.documents.records import STATUS
from docmill.model.documents import DocumentStatus
from docmill.model.errors import Conflict, NotFound
from docmill.model.ids import canonical_id
from docmill.services.expiring import collect, let_go


class NotDiscardable(Conflict):
    """The document has a result, or somebody is at work on it."""

    code = "not_discardable"


def discard(
    database: Database,
    blobs: Blobs,
    ids: Sequence[str],
    *,
    org_id: str,
    note: Callable[[Connection, Row[Any]], None],
) -> int:
    """Remove these documents of an organisation, all or none; how many. `note` hears of each, in the transaction.

    NotDiscardable names one that stays, NotFound one that there is not.
    """
    with database.scoped(org_id).write() as connection:
        rows = _held(connection, org_id, ids)
        gone = [row.id for row in rows]
        claims = processed_documents.c.document_id.in_(gone), processed_documents.c.extraction_key.is_(None)
        connection.execute(delete(processed_documents).where(processed_documents.c.org_id == org_id, *claims))
        connection.execute(delete(documents).where(documents.c.id.in_(gone), documents.c.org_id == org_id))
        let_go(connection, {row.original_key for row in rows if row.original_key is not None})
        for row in rows:
            note(connection, row)
    collect(database.as_keeper(), blobs)
    return len(rows)


def _held(connection: Connection, org_id: str, ids: Sequence[str]) -> Sequence[Row[Any]]:
    """The documents, their jobs locked before them, as the engine does: nobody begins one again meanwhile."""
    wanted = {each: canonical_id(each) for each in ids}
    known = [each for each in wanted.values() if each is not None]
    mine = and_(documents.c.id.in_(known), documents.c.org_id == org_id)
    held = select(jobs.c.id).where(jobs.c.id.in_(select(documents.c.job_id).where(mine)))
    connection.execute(held.order_by(jobs.c.id).with_for_update()).all()
    connection.execute(select(documents.c.id).where(mine).order_by(documents.c.id).with_for_update()).all()
    reviewed = exists(select(1).where(review_items.c.document_id == documents.c.id))
    query = select(documents, STATUS.label("stands"), reviewed.label("reviewed"))
    query = query.select_from(documents.outerjoin(jobs, jobs.c.id == documents.c.job_id)).where(mine)
    rows = connection.execute(query.order_by(documents.c.id)).all()
    there = {row.id for row in rows}
    for given, stored in wanted.items():
        if stored not in there:
            raise NotFound(f"There is no document {given}.", document_id=given)
    for row in rows:
        _check(row)
    return rows


def _check(row: Row[Any]) -> None:
    failed = row.stands == DocumentStatus.FAILED.value
    if failed and row.extraction_key is None and not row.reviewed:
        return
    why = "it was read before" if failed else f"it is {row.stands}"
    raise NotDiscardable(
        f"Document {row.id} ({row.file_name}) stays: {why}. Only what failed and never had a result is removed.",
        document_id=row.id,
    )
