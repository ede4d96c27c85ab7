"""Who had an invoice first: rows beside those of the bytes in `processed_documents`, by a hash of seller and number."""

from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from docmill.db.tables import documents, processed_documents
from docmill.db.types import IdType

VARIANT = "same_invoice"
"""What stands where rows of bytes name their reader: no reader is called so, so neither kind is taken for the other."""


class Executes(Protocol):
    """A transaction: that of a look, or the one that completes a step."""

    def execute(self, statement: Any, parameters: Any = None) -> Any: ...


_FIRST = processed_documents.c
_ME = documents.alias("me")
# Another schema or model for the same bytes is not another invoice.
_EARLIER = (
    select(documents.c.id, documents.c.file_name)
    .select_from(processed_documents.join(documents, documents.c.id == _FIRST.document_id))
    .where(_FIRST.org_id == bindparam("org", type_=IdType()), _FIRST.sha256 == bindparam("identity"))
    .where(_FIRST.schema_name == VARIANT, _FIRST.schema_version == "", _FIRST.variant == VARIANT)
    .where(
        documents.c.sha256 != select(_ME.c.sha256).where(_ME.c.id == bindparam("me", type_=IdType())).scalar_subquery()
    )
)
_LEFT = (
    delete(processed_documents)
    .where(_FIRST.org_id == bindparam("org", type_=IdType()), _FIRST.document_id == bindparam("me", type_=IdType()))
    .where(_FIRST.schema_name == VARIANT, _FIRST.variant == VARIANT, _FIRST.sha256 != bindparam("identity"))
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


def earlier(db: Executes, *, org_id: str, identity: str, document_id: str) -> tuple[str, str] | None:
    """Id and file name of the document that has this invoice in other bytes; None if there is none."""
    row = db.execute(_EARLIER, {"org": org_id, "identity": identity, "me": document_id}).first()
    return None if row is None else (str(row.id), str(row.file_name))


def claim(
    db: Executes, kind: str, *, org_id: str, identity: str, document_id: str, job_id: str, key: str, now: datetime
) -> bool:
    """Make this document the one that has the invoice; False if there is one. `key` is that of its extraction."""
    values = {
        "org_id": org_id,
        "sha256": identity,
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
    return bool(db.execute(_CLAIMS[kind], values).rowcount)


def leave(db: Executes, *, org_id: str, document_id: str, but: str | None) -> None:
    """Let go of every invoice that this document had, but the one that it has now."""
    db.execute(_LEFT, {"org": org_id, "me": document_id, "identity": but or ""})
