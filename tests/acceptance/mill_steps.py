"""The plug-in that the command line's tests run: steps that succeed, fail or wait to be released, and a processor."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from docmill.plugin import (
    ApplyContext,
    Database,
    PermanentError,
    RetryableError,
    StepContext,
    entity_loader,
    processor,
    step,
)


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


@step("mill.gate", kind="rule")
async def gate(ctx: StepContext) -> dict[str, object]:
    """Runs until the file MILL_GATE exists, whoever asks it to stop."""
    opened = Path(os.environ["MILL_GATE"])
    while not opened.exists():
        await asyncio.sleep(0.02)
    return {"opened": True}


@processor("mill", "keep")
def keep(ctx: ApplyContext, result: object) -> None:
    """Nothing to keep."""
