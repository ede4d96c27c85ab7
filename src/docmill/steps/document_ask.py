"""`document.ask`: the fields of a document as a model reads them, cross-checked with what was found without one."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from docmill.model.ai_errors import ModelTimeout, OutputInvalid, OutputRefused, OutputTruncated
from docmill.model.errors import DocmillError
from docmill.plugin import PermanentError, StepContext, StepType, declared, step
from docmill.steps import document_children as children
from docmill.steps.document_extract import options_of, schema_of
from docmill.steps.document_work import DocumentWork

MODEL = "model"
"""Key of the job's metadata: the model to ask."""


_ROOM = 2
"""How many times longer the second answer may be, if the first was cut off."""


class AnswerTooLong(PermanentError):
    """What a model says of this document is cut off, however often it is asked."""

    code = "output_truncated"


_OTHERWISE = "Process it with another model, or with none."


def for_operators(error: DocmillError, model: str) -> str:
    """What went wrong, and what who processes documents can do: prompt and template are not theirs to change."""
    match error:
        case OutputTruncated():
            return f"{model} has more to say about this document than it may in one answer. {_OTHERWISE}"
        case OutputRefused():
            return f"{model} would not answer about this document. {_OTHERWISE}"
        case ModelTimeout():
            return f"{model} did not answer in time. Raise ai.timeout if it often needs longer."
        case _:
            return f"{error.message.rstrip('.')}. {_OTHERWISE}"


def ask_step(work: DocumentWork) -> StepType:
    """The step type, for this application."""

    @step("document.ask", kind="ai")
    async def ask(ctx: StepContext, results: Mapping[str, Any]) -> dict[str, object]:
        """As `document.extract`, with the model that answered and what it cost."""
        schema = await schema_of(ctx, work) or str(results["extract"]["schema"])
        reading = await work.path_of(results["read"]["reading"])
        local = await work.path_of(results["extract"]["extraction"])
        options, workshop = await options_of(ctx, work), work.workshop
        takes = work.takes.get(str(ctx.metadata[MODEL]).partition(":")[0], "files")

        async def answered() -> dict[str, Any]:
            original = await work.path_of(results["check"]["original"])
            question = await ctx.cpu(children.question, reading, original, schema, options, work.limits, takes)
            settings: dict[str, Any] = {"max_tokens": question.max_tokens, **ctx.model}
            settings |= {"model": str(ctx.metadata[MODEL]), "cache": question.cache}
            asked = partial(
                ctx.generate,
                question.prompt,
                schema=question.output_schema,
                instructions=question.instructions,
                attachments=question.attachments,
            )
            try:
                reply = await asked(**settings)
            except OutputTruncated:
                # The same question is cut off at the same place: once more with room, and then no more.
                try:
                    reply = await asked(**settings | {"max_tokens": _ROOM * int(settings["max_tokens"])})
                except OutputTruncated as error:
                    raise AnswerTooLong(for_operators(error, settings["model"])) from error
            except (ModelTimeout, OutputInvalid, OutputRefused) as error:
                raise type(error)(for_operators(error, settings["model"])) from error
            return {
                # In a blob: an invoice of many pages has a long answer.
                "key": await work.adopt(children.keep(reply.data, workshop)),
                "model": f"{reply.provider}:{reply.model}",
                "tokens": {"input": reply.input_tokens, "output": reply.output_tokens},
                "cost": float(reply.cost),
            }

        # Stored the moment it is there: whatever goes wrong afterwards, the model is not asked again.
        answer = await ctx.once("answer", answered)
        said = await work.path_of(answer["key"])
        found = await ctx.cpu(children.understand, said, reading, local, schema, options, workshop, takes)
        spent = {name: answer[name] for name in ("model", "tokens", "cost")}
        return {"extraction": await work.adopt(found), **found["summary"], **spent}

    return declared(ask, StepType)
