"""The public way in: write step types, processors and entity loaders for Docmill. Follows semantic versioning.

A step *computes* (calls models, reads files, asks services) with no transaction open; a processor *applies* the result
to your tables in the transaction that completes the step. So a database effect happens exactly once, whatever dies.

    from docmill.plugin import ApplyContext, StepContext, processor, step

    @step("invoice.total", kind="rule")
    async def total(ctx: StepContext, entity: dict) -> dict:
        return {"total": sum(line["amount"] for line in entity["lines"])}

    @processor("invoice", "saveTotal")
    def save_total(ctx: ApplyContext, result: dict) -> None:
        ctx.db.execute("update invoices set total = :t where id = :id", {"t": result["total"], "id": ctx.entity_id})

Docmill finds them through the `docmill.plugins` entry point of your package (its value names a module), or through the
setting `plugins` (DOCMILL_PLUGINS=your.module). A step function may ask for `entity`, `results`, `input` and `item` by
naming parameters so: what it does not ask for is not loaded. Plain `def` steps run in a thread, `async def` steps on
the loop.
"""

from docmill.model.ai import Answer, Attachment, FinishReason, ModelCall, Reply
from docmill.model.ai_errors import ModelAuthentication, ModelRateLimited, ModelTimeout, ModelUnavailable, ModelUnknown
from docmill.model.errors import Deferred, PermanentError, RetryableError
from docmill.model.ids import derived_id
from docmill.model.issues import Issue, Resolution
from docmill.plugin.answers import Fallback, FollowUp, GiveUp, Reconciled, Retry, Wait
from docmill.plugin.contexts import ApplyContext, Database, StepContext
from docmill.plugin.declarations import (
    FINISH_TYPE,
    Declaration,
    EntityLoader,
    PluginInvalid,
    Processor,
    Provider,
    Recovery,
    StepType,
    declared,
    entity_loader,
    processor,
    provider,
    step,
)
from docmill.plugin.registry import Registry

__all__ = [
    "FINISH_TYPE",
    "Answer",
    "ApplyContext",
    "Attachment",
    "Database",
    "Declaration",
    "Deferred",
    "EntityLoader",
    "Fallback",
    "FinishReason",
    "FollowUp",
    "GiveUp",
    "Issue",
    "ModelAuthentication",
    "ModelCall",
    "ModelRateLimited",
    "ModelTimeout",
    "ModelUnavailable",
    "ModelUnknown",
    "PermanentError",
    "PluginInvalid",
    "Processor",
    "Provider",
    "Reconciled",
    "Recovery",
    "Registry",
    "Reply",
    "Resolution",
    "Retry",
    "RetryableError",
    "StepContext",
    "StepType",
    "Wait",
    "declared",
    "derived_id",
    "entity_loader",
    "processor",
    "provider",
    "step",
]
