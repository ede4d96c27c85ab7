"""The plug-in that the command line's tests run: steps that succeed, fail or wait to be released, and a processor."""

import os
from collections.abc import Mapping
from pathlib import Path

from docmill.plugin import (
    ApplyContext,
    Database,
    Issue,
    PermanentError,
    RetryableError,
    StepContext,
    entity_loader,
    processor,
    step,
)
from docmill.testing.waiting import until_true


@entity_loader("document")
def load_document(db: Database, entity_id: str) -> Mapping[str, object]:
    """A document that needs no table."""
    return {"code": f"DOC-{entity_id}"}


@step("mill.echo", kind="rule")
async def echo(ctx: StepContext) -> dict[str, object]:
    """Gives back what the job is about."""
    return {"entity": ctx.entity_id, "metadata": dict(ctx.metadata)}


@step("mill.ask", kind="ai")
async def ask(ctx: StepContext) -> dict[str, object]:
    """Gives back what a model would have been asked."""
    return {"prompt": ctx.prompt, "prompt_id": ctx.prompt_id}


@step("mill.price", kind="ai")
async def price(ctx: StepContext) -> dict[str, object]:
    """Something that costs: every computation leaves a line in the file MILL_COUNTER."""
    if counter := os.environ.get("MILL_COUNTER"):
        with Path(counter).open("a") as file:
            file.write(f"{ctx.step_key}\n")
    return {"price": 12}


@step("mill.check", kind="ai")
async def check(ctx: StepContext) -> dict[str, object]:
    """Finds a total that a person must look at, unless told that all is well, and a remark beside it."""
    ctx.issue(Issue(code="blurred", title="Page 2 is blurred", severity="warning"))
    if not ctx.metadata.get("clean"):
        ctx.issue(Issue(code="total_mismatch", title="The total is not the sum", blocking=True, details={"sum": 110.0}))
    return {"total": 100, "currency": "EUR"}


@step("mill.broken")
async def broken(ctx: StepContext) -> dict[str, object]:
    """Never works."""
    raise PermanentError("The page is blank; scan it again.")


@step("mill.shaky")
async def shaky(ctx: StepContext) -> dict[str, object]:
    """Works at the second attempt."""
    if ctx.attempt == 1:
        raise RetryableError("Not yet.", retry_after=0.01)
    return {"attempt": ctx.attempt}


@step("mill.page", kind="rule")
async def page(ctx: StepContext, item: str) -> dict[str, object]:
    """Reads one document of many; blank ones cannot be read."""
    if item.endswith(":blank"):
        raise PermanentError("The page is blank; scan it again.")
    return {"text": item}


@step("mill.gate", kind="rule")
async def gate(ctx: StepContext) -> dict[str, object]:
    """Runs until the file MILL_GATE exists, whoever asks it to stop."""
    opened = Path(os.environ["MILL_GATE"])
    await until_true(opened.exists)
    return {"opened": True}


@processor("mill", "keep")
def keep(ctx: ApplyContext, result: object) -> None:
    """Nothing to keep."""
