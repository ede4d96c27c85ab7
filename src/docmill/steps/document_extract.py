"""`document.extract` and `document.validate`: the fields of what was read, and what the rules of the schema say."""

from collections.abc import Mapping
from typing import Any

from docmill.plugin import StepContext, StepType, declared, step
from docmill.steps import document_children as children
from docmill.steps.document_work import DocumentWork

SCHEMA, SCHEMA_FILE, SCHEMA_SET = "schema", "schema_file", "schema_set"
"""Keys of the job's metadata: a schema by name, the blob that holds its YAML, or the one that holds all there were."""


def extract_step(work: DocumentWork) -> StepType:
    """The step type, for this application."""

    @step("document.extract", kind="rule")
    async def extract(ctx: StepContext, results: Mapping[str, Any]) -> dict[str, object]:
        """`{"extraction": key of the blob, "schema", "document_type", "confidence", ...}`, without a model."""
        reading = await work.path_of(results["read"]["reading"])
        schema, workshop = await schema_of(ctx, work), work.workshop
        found = await ctx.cpu(children.extract, reading, schema, await options_of(ctx, work), workshop)
        return {"extraction": await work.adopt(found), **found["summary"]}

    return declared(extract, StepType)


async def schema_of(ctx: StepContext, work: DocumentWork) -> str | children.SchemaText | None:
    """The schema that the job asks for; None if it leaves it to the document."""
    name, key = ctx.metadata.get(SCHEMA), ctx.metadata.get(SCHEMA_FILE)
    if name is None or key is None:
        return None if name is None else str(name)
    return children.SchemaText(str(name), await work.path_of(str(key)))


async def options_of(ctx: StepContext, work: DocumentWork) -> dict[str, Any]:
    """The settings of the extraction, with the schemas as they were when the job was submitted."""
    key = ctx.metadata.get(SCHEMA_SET)
    return {**work.options} if key is None else {**work.options, SCHEMA_SET: await work.path_of(str(key))}


def extracted(results: Mapping[str, Any]) -> Mapping[str, Any]:
    """The result that counts: the model's, if one was asked."""
    found: Mapping[str, Any] = results.get("ask") or results["extract"]
    return found


@step("document.validate", kind="rule", at_once=True)
def validate(ctx: StepContext, results: Mapping[str, Any]) -> dict[str, object]:
    """`{"passed": bool, "failed_checks": [...], "confidence"}`: broken rules lower the confidence, they fail nothing.

    The rules themselves were evaluated where the fields were found; here the workflow sees what came of them.
    """
    found = extracted(results)
    failed = list(found["failed_checks"])
    return {"passed": not failed, "failed_checks": failed, "confidence": found["confidence"]}
