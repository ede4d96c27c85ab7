"""`document.check`: was this processed before, or is it being processed this moment?

A document is processed if its claim on the key (organisation, bytes, schema, reader) is granted; if somebody else holds
the claim and is at work, the document waits, so twins that arrive together cost one extraction. If that one fails, the
next takes the claim over. Of twins in one run the first in order is the original: the others let it go first.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from docmill.plugin import Deferred, PermanentError, StepContext, StepType, declared, step
from docmill.steps.document_work import DocumentWork

SOONEST, LATEST = 0.2, 5.0
"""Seconds between two looks at a twin that is being processed: the longer it takes, the rarer."""


class DocumentMissing(PermanentError):
    """The job speaks of a document that is not stored."""

    code = "document_missing"


def check_step(work: DocumentWork) -> StepType:
    """The step type, for this application."""

    @step("document.check", kind="system")
    async def check(ctx: StepContext, entity: Mapping[str, Any] | None) -> dict[str, object]:
        """`{"hit": id of the original or None, ...}`; the processor `document.claim` makes the claim hold."""
        entity = known(ctx, entity)
        before = entity["processed"]
        unprocessed = {
            "hit": None,
            "original": entity["original_key"],
            "file_name": entity["file_name"],
            "read_before": entity["read_before"],
        }
        # Whoever has the claim goes on, so that of two that wait for each other there is always one that does not.
        if before is not None and before["document_id"] == ctx.entity_id:
            return unprocessed
        now = work.clock()
        if before is not None and before["extraction_key"] is not None:
            fresh = before["expires_at"] is None or before["expires_at"] > now
            if fresh and await work.answers(before["extraction_key"]):
                return {"hit": before["document_id"], "extraction": before["extraction_key"]}
            return {**unprocessed, "stale": before["extraction_key"]}
        if entity["earlier_twin"] or (before is not None and before["worked_on"]):
            raise Deferred("The same bytes are being processed for another document.", delay=_pause(entity, now))
        return unprocessed

    return declared(check, StepType)


def known(ctx: StepContext, entity: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The document; DocumentMissing if there is none."""
    if entity is None or "processed" not in entity:
        raise DocumentMissing(
            f"There is no document {ctx.entity_id}; documents come in by `docmill process`, which submits the job too."
        )
    return entity


def _pause(entity: Mapping[str, Any], now: datetime) -> float:
    waited: timedelta = now - entity["created_at"]
    return min(LATEST, max(SOONEST, waited.total_seconds() / 4))
