"""The step that asks a model: everything it needs is in the template."""

from docmill.plugin import StepContext, step


@step("ai.generate", kind="ai", output="data")
async def generate(ctx: StepContext) -> dict[str, object]:
    """Ask with the prompt, model settings and schema of the step; text comes in `message`, checked data in `data`."""
    reply = await ctx.generate()
    return {
        "message": reply.text,
        "data": reply.data,
        "model": f"{reply.provider}:{reply.model}",
        "tokens": {"input": reply.input_tokens, "output": reply.output_tokens},
        "cost": float(reply.cost),
    }
