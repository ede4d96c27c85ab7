"""Where every review of an organisation stands, for tables of many documents."""

from collections.abc import Iterator, Mapping

from sqlalchemy import and_, or_, select

from docmill.db.database import Database
from docmill.db.tables import review_items

_C = review_items.c
BATCH = 10_000
"""Items of one look: no transaction is open while somebody makes a table of them."""


def review_statuses(database: Database, org_id: str) -> Iterator[Mapping[str, object]]:
    """Of every item its document, its round and its status, the oldest first."""
    query = select(_C.document_id, _C.round, _C.status, _C.superseded_by, _C.created_at, _C.id).where(
        _C.org_id == org_id
    )
    query = query.order_by(_C.created_at, _C.id).limit(BATCH)
    page = query
    while True:
        with database.scoped(org_id).read() as connection:
            rows = connection.execute(page).all()
        for row in rows:
            # What was superseded waits for nobody, and nobody has decided it.
            status = None if row.superseded_by is not None else row.status
            yield {"document_id": row.document_id, "round": row.round, "review": status}
        if len(rows) < BATCH:
            return
        last = rows[-1]
        page = query.where(
            or_(_C.created_at > last.created_at, and_(_C.created_at == last.created_at, _C.id > last.id))
        )
