"""Statuses of documents and the only legal ways between them, written down once."""

from collections.abc import Mapping
from enum import StrEnum


class DocumentStatus(StrEnum):
    """Where a document stands."""

    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    DUPLICATE = "duplicate"
    """The same bytes were processed before for the same schema: the result is that of the original."""

    @property
    def finished(self) -> bool:
        """Whether nothing more happens to the document by itself."""
        return self in FINISHED_DOCUMENTS


class NothingRead(StrEnum):
    """Why nothing was extracted from a document that is whole, as the note on it says."""

    EMPTY = "Nothing is written on it, so nothing was extracted."
    HARDLY = "Hardly anything can be read on it, so nothing was extracted. Photograph or scan it again."
    UNKNOWN = "It is none of the types that are known, so nothing was extracted. Name a schema to read it all the same."
    NO_SCHEMA = "No schema that is known suits it, so nothing was extracted. Name a schema to read it all the same."


FINISHED_DOCUMENTS = frozenset({DocumentStatus.COMPLETED, DocumentStatus.FAILED, DocumentStatus.DUPLICATE})

WITH_OUTPUTS = frozenset({DocumentStatus.COMPLETED, DocumentStatus.DUPLICATE})

# Back from the end only by a retry of the job: of one that failed, or of one that is to be done anew.
DOCUMENT_TRANSITIONS: Mapping[DocumentStatus, frozenset[DocumentStatus]] = {
    # Straight to failed: what cannot be read at all has no job.
    DocumentStatus.QUEUED: frozenset({DocumentStatus.PROCESSING, DocumentStatus.FAILED}),
    DocumentStatus.PROCESSING: frozenset(
        {DocumentStatus.PROCESSING, DocumentStatus.COMPLETED, DocumentStatus.DUPLICATE, DocumentStatus.FAILED}
    ),
    DocumentStatus.FAILED: frozenset(
        {DocumentStatus.PROCESSING, DocumentStatus.COMPLETED, DocumentStatus.DUPLICATE, DocumentStatus.FAILED}
    ),
    DocumentStatus.COMPLETED: frozenset({DocumentStatus.PROCESSING, DocumentStatus.COMPLETED}),
    DocumentStatus.DUPLICATE: frozenset(
        {DocumentStatus.PROCESSING, DocumentStatus.COMPLETED, DocumentStatus.DUPLICATE}
    ),
}


def leading_to(status: DocumentStatus) -> tuple[DocumentStatus, ...]:
    """The statuses from which this one may be reached, for the condition of a write."""
    return tuple(before for before, after in DOCUMENT_TRANSITIONS.items() if status in after)
