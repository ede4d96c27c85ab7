"""Documents as people call them: by the file that they were."""

import os

from sqlalchemy import Connection, select

from docmill.db.tables import documents
from docmill.documents.intake import storable
from docmill.model.documents import DocumentStatus
from docmill.model.errors import InvalidInput

NAMED = 5
"""Documents that are listed when a name is that of several."""
_LOOKED_AT = 500


def document_called(connection: Connection, org_id: str, text: str) -> str | None:
    """The document that a file became, by its path or the end of it: the newest result, or at least the newest try.

    Lists leave out the folder that all of theirs have in common, so what they show is an end.
    """
    whole, end = storable(os.path.abspath(text)), storable(os.path.normpath(text))
    names = (documents.c.source == whole) | (documents.c.file_name == os.path.basename(end))
    query = (
        select(documents.c.id, documents.c.sha256, documents.c.status, documents.c.source)
        .where(documents.c.org_id == org_id, names)
        .order_by((documents.c.status == DocumentStatus.COMPLETED.value).desc())
        .order_by(documents.c.created_at.desc(), documents.c.id.desc())
        .limit(_LOOKED_AT)
    )
    found = connection.execute(query).all()
    rows = [row for row in found if row.source == whole] or [
        row for row in found if "/" not in end or f"/{row.source}".endswith(f"/{end}")
    ]
    apart = {row.sha256: row for row in reversed(rows)}
    if len(apart) > 1:
        listed = ", ".join(f"{row.id} ({row.source})" for row in list(apart.values())[:NAMED])
        more = ", …" if len(apart) > NAMED else ""
        raise InvalidInput(
            f"Several documents are called {text}: {listed}{more}. Write the id.",
            ids=[row.id for row in apart.values()],
        )
    return str(rows[0].id) if rows else None
