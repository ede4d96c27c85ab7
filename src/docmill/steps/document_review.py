"""`document.review_outputs`: the outputs of a document anew, with what people decided."""

from collections.abc import Mapping
from typing import Any

from docmill.extraction.same_paper import identity
from docmill.plugin import StepContext, StepType, declared, step
from docmill.steps import document_children as children
from docmill.steps.document_check import known
from docmill.steps.document_extract import options_of, schema_of
from docmill.steps.document_save import OUT, facts_of
from docmill.steps.document_work import DocumentWork


def review_outputs_step(work: DocumentWork) -> StepType:
    """The step type, for this application."""

    @step("document.review_outputs", kind="system")
    async def review_outputs(ctx: StepContext, entity: Mapping[str, Any] | None) -> dict[str, object]:
        """What the processor `document.review_outputs` writes; the files are those that processing had written."""
        document = known(ctx, entity)
        path = await work.path_of(document["extraction_key"])
        facts = facts_of(document, duplicate_of=document["duplicate_of"], locked=document["locked"])
        schema, workshop = await schema_of(ctx, work), work.workshop
        out, options = ctx.metadata.get(OUT), await options_of(ctx, work)
        mine = identity(await ctx.cpu(children.named, path), document["locked"])
        earlier = await work.same_paper(ctx.org_id, mine, ctx.entity_id)
        saved = await ctx.cpu(children.rewrite, path, facts, work.outputs, out, workshop, schema, options, earlier)
        key = await work.adopt(saved) if "key" in saved else document["extraction_key"]
        return {
            "extraction_key": key,
            "outputs": saved["outputs"],
            "locked_seen": document["locked"],
            "paper": None if mine is None else mine._asdict(),
            "earlier": None if earlier is None else earlier[0],
        }

    return declared(review_outputs, StepType)
