"""What a document was taken in for holds for every job about it, whoever submits one.

The cache knows a result by what its document asked for. A job that asked for less, as one that is submitted by hand or
in a batch does, would read the document by another schema and leave that as the answer to the first question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import select

from docmill.db.database import Database
from docmill.db.tables import documents, jobs
from docmill.documents.records import AUTOMATIC, LOCAL
from docmill.engine.batch import NewJob
from docmill.model.ids import is_id
from docmill.services.documents import DOCUMENT

_SCHEMAS = frozenset({"schema", "schema_file", "schema_set"})
_ORDER = _SCHEMAS | {"model", "out"}
"""As `processing.Order` writes them; written out, since the steps that read them take long to import."""
_AT_ONCE = 500
_ASKED = select(
    documents.c.id, documents.c.schema_asked, documents.c.variant, jobs.c.metadata.label("told")
).select_from(documents.outerjoin(jobs, jobs.c.id == documents.c.job_id))


def as_ordered(database: Database, org_id: str, new_jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """The same jobs; those about documents that name no schema say what their documents were taken in for."""
    silent = sorted({job.entity_id for job in new_jobs if _is_silent(job)})
    asked: dict[str, dict[str, Any]] = {}
    for start in range(0, len(silent), _AT_ONCE):
        some = documents.c.id.in_(silent[start : start + _AT_ONCE])
        with database.read() as connection:
            for row in connection.execute(_ASKED.where(documents.c.org_id == org_id, some)):
                asked[row.id] = _order(row.schema_asked, row.variant, row.told)
    if not asked:
        return new_jobs
    return [
        replace(job, metadata={**asked[job.entity_id], **job.metadata})
        if _is_silent(job) and job.entity_id in asked
        else job
        for job in new_jobs
    ]


def _is_silent(job: NewJob) -> bool:
    return job.entity_type == DOCUMENT and is_id(job.entity_id) and _SCHEMAS.isdisjoint(job.metadata)


def _order(schema: str, variant: str, told: Mapping[str, Any] | None) -> dict[str, Any]:
    if told is not None:
        return {name: told[name] for name in sorted(_ORDER & told.keys())}
    # Its own job is gone: what the document itself says is left.
    found = {"schema": None if schema == AUTOMATIC else schema, "model": None if variant == LOCAL else variant}
    return {name: value for name, value in found.items() if value is not None}
