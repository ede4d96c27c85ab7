"""What reviewers decided, as labels: for `docmill learn` and `docmill eval`."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from docmill.db.database import Database
from docmill.db.tables import documents, extracted_fields, review_items
from docmill.documents.blobs import BlobMissing, Blobs
from docmill.extraction.ground_truth import Labelled
from docmill.extraction.schema import shipped
from docmill.model.errors import NotFound
from docmill.model.ids import DEFAULT_ORG
from docmill.model.review import DECIDED, ReviewStatus
from docmill.services.evaluation import LabelledFolder

_AT_ONCE = 500
"""Items whose fields one statement asks for."""
_VOUCHED = (ReviewStatus.APPROVED.value, ReviewStatus.CORRECTED.value)


class NothingReviewed(NotFound):
    """No person has approved a document whose original is still kept."""

    code = "nothing_reviewed"


def reviewed_folder(
    database: Database, blobs: Blobs, target: Path, *, org_id: str = DEFAULT_ORG, schemas: frozenset[str] | None = None
) -> LabelledFolder:
    """The documents that people approved, their originals copied into the folder, with what was decided as labels.

    The last decision of each counts, and what a setting approved does not. A value that was approved is a label; a
    field that was cleared is one too: it is not there. Originals that have expired are left out.
    """
    target.mkdir(parents=True, exist_ok=True)
    # What came as a file is no schema that others could be told to read by.
    names = frozenset(shipped()) if schemas is None else schemas
    # Copied when the look is over: a bucket may take long, and nobody is to be held up by it.
    with database.scoped(org_id).read() as connection:
        decided = _decided(connection, org_id)
        labels = _labels(connection, [item.id for item in decided])
    rows: list[Labelled] = []
    for item in decided:
        name = f"{item.document_id}{Path(item.file_name).suffix.lower()[:8]}"
        try:
            shutil.copyfile(blobs.path_of(item.original_key), target / name)
        except (BlobMissing, FileNotFoundError):
            continue
        schema = item.schema_name if item.schema_name in names else None
        rows.append(Labelled(file=name, fields=labels[item.id], schema=schema, line=len(rows) + 1))
    if not rows:
        raise NothingReviewed(
            "Nobody has approved a document whose original is still kept. Review some: docmill review next."
        )
    return LabelledFolder(path=target, rows=tuple(rows))


def _decided(connection: Connection, org_id: str) -> Sequence[Row[Any]]:
    """The last decision about each document, oldest first."""
    later = review_items.alias("later")
    superseded = select(later.c.id).where(
        later.c.document_id == review_items.c.document_id,
        later.c.round > review_items.c.round,
        later.c.status.in_([status.value for status in DECIDED]),
    )
    query: Select[Any] = (
        select(
            review_items.c.id,
            review_items.c.document_id,
            review_items.c.schema_name,
            review_items.c.created_at,
            documents.c.file_name,
            documents.c.original_key,
        )
        .join(documents, documents.c.id == review_items.c.document_id)
        .where(
            review_items.c.org_id == org_id,
            review_items.c.status.in_(_VOUCHED),
            review_items.c.automatic.is_(False),
            documents.c.original_key.is_not(None),
            ~superseded.exists(),
        )
        .order_by(review_items.c.created_at, review_items.c.id)
    )
    return connection.execute(query).all()


def _labels(connection: Connection, ids: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """By item, its fields outside of tables."""
    table = extracted_fields.c
    query = select(table.item_id, table.name, table.value).where(table.row_index.is_(None))
    found: dict[str, dict[str, str | None]] = {item_id: {} for item_id in ids}
    for start in range(0, len(ids), _AT_ONCE):
        for row in connection.execute(query.where(table.item_id.in_(ids[start : start + _AT_ONCE]))):
            found[row.item_id][row.name] = row.value
    return found
