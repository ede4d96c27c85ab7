"""Who had a paper first: rows beside those of the bytes in `processed_documents`, by hashes of what it is known by.

Of an invoice seller and number, of a receipt company, date, time and total (`docmill.extraction.same_paper`).
Whoever has it has a row without `schema_version`; whoever comes behind has one with its id there, and is the one that
is named once those before it were corrected to something else.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from docmill.db.tables import documents, processed_documents
from docmill.db.types import IdType

VARIANT = "same_invoice"
"""What stands where rows of bytes name their reader: no reader is called so, so neither kind is taken for the other.
Receipts have it too: it was named when only invoices were compared, and their hashes are others."""


class Executes(Protocol):
    """A transaction: that of a look, or the one that completes a step."""

    def execute(self, statement: Any, parameters: Any = None) -> Any: ...


_FIRST = processed_documents.c
_ME = documents.alias("me")
_PAPER = (
    (_FIRST.org_id == bindparam("org", type_=IdType())) & (_FIRST.sha256 == bindparam("identity")),
    (_FIRST.schema_name == VARIANT) & (_FIRST.variant == VARIANT),
)
# Another schema or model for the same bytes is not another paper.
_OTHER = documents.c.sha256 != select(_ME.c.sha256).where(_ME.c.id == bindparam("me", type_=IdType())).scalar_subquery()
# The first alone: if it has the bytes of this document, those behind it were told of them.
_EARLIEST = (
    select(documents.c.id, documents.c.file_name, _OTHER.label("other"))
    .select_from(processed_documents.join(documents, documents.c.id == _FIRST.document_id))
    .where(*_PAPER)
    .order_by(_FIRST.created_at, _FIRST.schema_version)
    .limit(1)
)
_HOLDER = select(_FIRST.document_id).where(*_PAPER, _FIRST.schema_version == "")
_LEFT = (
    delete(processed_documents)
    .where(_FIRST.org_id == bindparam("org", type_=IdType()), _FIRST.document_id == bindparam("me", type_=IdType()))
    .where(_FIRST.schema_name == VARIANT, _FIRST.variant == VARIANT)
    .where(_FIRST.sha256 != bindparam("kept"), _FIRST.sha256 != bindparam("kept_too"))
)
_COLUMNS = [column.name for column in processed_documents.columns]
# Whoever comes second waits for the first to commit, finds its row, and leaves it as it is.
_CLAIMS = {
    kind: insert(processed_documents)
    .values({name: bindparam(name) for name in _COLUMNS})
    .on_conflict_do_nothing()
    # SQLAlchemy forgets the number of rows of an INSERT unless told to keep it.
    .execution_options(preserve_rowcount=True)
    for kind, insert in (("postgresql", postgresql.insert), ("sqlite", sqlite.insert))
}


def earlier(db: Executes, *, org_id: str, against: Sequence[str], document_id: str) -> tuple[str, str] | None:
    """Id and file name of the document that has this paper in other bytes; None if there is none."""
    for identity in against:
        row = db.execute(_EARLIEST, {"org": org_id, "identity": identity, "me": document_id}).first()
        if row is not None and row.other:
            return str(row.id), str(row.file_name)
    return None


def claim(
    db: Executes,
    kind: str,
    *,
    org_id: str,
    claims: Sequence[str],
    document_id: str,
    job_id: str,
    key: str,
    now: datetime,
) -> bool:
    """Make this document the one that has the paper; False if any has a part of what it is known by.

    `key` is that of its extraction.
    """
    values = {
        "org_id": org_id,
        "schema_name": VARIANT,
        "schema_version": "",
        "variant": VARIANT,
        "document_id": document_id,
        "job_id": job_id,
        "extraction_key": key,
        "created_at": now,
        "completed_at": now,
        "expires_at": None,
    }
    # All of them, also behind one that is taken: of receipts without a time the next is told by any.
    free = [bool(db.execute(_CLAIMS[kind], {**values, "sha256": each}).rowcount) for each in claims]
    for each in (each for each, mine in zip(claims, free, strict=True) if not mine):
        holder = db.execute(_HOLDER, {"org": org_id, "identity": each}).scalar()
        if holder is None or str(holder) != document_id:
            db.execute(_CLAIMS[kind], {**values, "sha256": each, "schema_version": document_id})
    return all(free)


def leave(db: Executes, *, org_id: str, document_id: str, but: Sequence[str]) -> None:
    """Let go of all that this document was known by, but what it is known by now: one hash, or two."""
    kept, kept_too = [*but, "", ""][:2]
    db.execute(_LEFT, {"org": org_id, "me": document_id, "kept": kept, "kept_too": kept_too})
