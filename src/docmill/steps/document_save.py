"""`document.save`: outputs on disk, once per document; the processor then marks it as done."""

from collections.abc import Mapping
from typing import Any

from docmill.extraction.same_paper import identity
from docmill.model.documents import DocumentStatus
from docmill.plugin import StepContext, StepType, declared, step
from docmill.steps import document_children as children
from docmill.steps.document_check import known
from docmill.steps.document_extract import extracted, options_of, schema_of
from docmill.steps.document_work import DocumentWork, ReviewPolicy

OUT = "out"
"""Key of the job's metadata: the folder that outputs of this document go to."""


def save_step(work: DocumentWork) -> StepType:
    """The step type, for this application."""

    @step("document.save", kind="system")
    async def save(ctx: StepContext, entity: Mapping[str, Any] | None, results: Mapping[str, Any]) -> dict[str, object]:
        """What `document.complete` writes. Repeating it writes the same files again: their names are the document's."""
        document = known(ctx, entity)
        hit = results["check"].get("hit")
        key = results["check"]["extraction"] if hit else extracted(results)["extraction"]
        path = await work.path_of(key)
        schema_found = document["original_schema"] if hit else extracted(results)["schema"]
        locked = {
            # What people decided of the same bytes, under the same schema: however it comes again, that stands.
            **(document["decided"].get(schema_found, {}) if work.preserve_locked else {}),
            **document["locked"],
        }
        facts = facts_of(document, duplicate_of=hit, locked=locked)
        schema, policy = await schema_of(ctx, work), work.review
        # What stands for a duplicate is the item of its original, unless the settings want one for each.
        options = None if hit and not policy.of_duplicates else await options_of(ctx, work)
        out, workshop = ctx.metadata.get(OUT), work.workshop
        mine = None if hit else identity(_known_by(extracted(results)), locked)
        earlier = await work.same_paper(ctx.org_id, mine, ctx.entity_id)
        saved = await ctx.cpu(children.save, path, facts, work.outputs, out, workshop, schema, options, earlier)
        if "key" in saved:
            key = await work.adopt(saved)
        expiry, ttl = work.originals_expire_after, work.cache_ttl
        return {
            "hit": hit,
            "extraction": key,
            "reading": document["reading_of_hit"] if hit else results["read"]["reading"],
            "outputs": saved["outputs"],
            "locked": locked,
            "locked_seen": document["locked"],
            "inherits": work.preserve_locked,
            "paper": None if mine is None else mine._asdict(),
            "earlier": None if earlier is None else earlier[0],
            "review": None if saved["review"] is None else saved["review"] | asked_of(policy),
            **{name: value for name, value in saved["summary"].items() if name != "known_by"},
            "original_expires_after": None if expiry is None else expiry.total_seconds(),
            "cache_ttl": None if ttl is None else ttl.total_seconds(),
        }

    return declared(save, StepType)


def _known_by(said: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the extraction says its paper is known by.

    The release before called it otherwise, and a job that was begun by a still earlier one does not say it.
    """
    found: Mapping[str, Any] | None = said["known_by"] if "known_by" in said else said.get("invoice", {})
    return found


def asked_of(policy: ReviewPolicy) -> dict[str, object]:
    """The policy as the processor finds it."""
    sla = 0 if policy.sla is None else max(1, round(policy.sla.total_seconds()))
    return {"auto_approve": policy.auto_approve, "assign": policy.assign, "sla": sla}


def facts_of(document: Mapping[str, Any], *, duplicate_of: str | None, locked: Mapping[str, Any]) -> children.Facts:
    """What its outputs say of a document."""
    status = DocumentStatus.DUPLICATE if duplicate_of else DocumentStatus.COMPLETED
    told = {name: document[name] for name in ("id", "org_id", "file_name", "sha256", "format", "created_at")}
    return children.Facts(**told, status=status, duplicate_of=duplicate_of, locked=locked)
