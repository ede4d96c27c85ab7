"""The transaction import that the architecture describes, with steps that tell what they saw of the transaction."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping
from types import ModuleType

import pytest
from sqlalchemy import text

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
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.faults import TemplateInvalid
from docmill.templates.plan import Plan
from docmill.testing.world import World
from tests.contract.stories import Ended, run_job

HEAD = "name: import\nprocessable_type: transaction\nservice_name: transaction\nsteps:\n"
FINISH = "  - {step_key: finish_processing, type: FinishProcessing, processor_method: finishTransactionProcessing}\n"

IMPORT = (
    HEAD
    + """\
  - {step_key: ocr, type: look, processor_method: note}
  - {step_key: classification, type: look, depends_on: [ocr], processor_method: note}
  - {step_key: extraction, type: look, depends_on: [classification], processor_method: note}
  - {step_key: budget, type: meet, depends_on: [extraction], optional: true, processor_method: note}
  - {step_key: vendor, type: meet, depends_on: [extraction], optional: true, processor_method: note}
"""
    + FINISH
)
"""The transaction import of "Template Structure"."""

TWO = HEAD + "  - {step_key: ocr, type: look}\n  - {step_key: extra, type: look, optional: true, group: 1}\n" + FINISH
"""A step that must succeed beside one that need not."""

_arrived: dict[str, asyncio.Event] = {}
finishing: Counter[str] = Counter()


@step("look")
async def look(ctx: StepContext, entity: Mapping[str, object]) -> dict[str, object]:
    """Tells what it saw of the entity."""
    return {"saw": entity["notes"], "kind": ctx.metadata.get("kind"), "value": 7}


@step("meet")
async def meet(ctx: StepContext, entity: Mapping[str, object]) -> dict[str, object]:
    """Ends only when a second step of its job runs at the same time."""
    other = _arrived.pop(ctx.job_id, None)
    if other is None:
        other = _arrived[ctx.job_id] = asyncio.Event()
        await other.wait()
    other.set()
    return {"saw": entity["notes"]}


@step("tell")
async def tell(ctx: StepContext, input: Mapping[str, object]) -> dict[str, object]:
    """Gives back what it was given."""
    return dict(input)


@step("say")
async def say(ctx: StepContext) -> dict[str, object] | None:
    """Answers as a model does: with text, or with nothing at all."""
    said = ctx.metadata.get("said")
    return None if said is None else {"message": said}


@step("break")
async def fail(ctx: StepContext) -> None:
    """Never works."""
    raise PermanentError("The page is blank.")


def _note(ctx: ApplyContext, what: str) -> None:
    known = ctx.db.execute("select count(*) from notes where entity_id = :id", {"id": ctx.entity_id}).scalar()
    row = {"id": ctx.entity_id, "place": known, "note": what}
    ctx.db.execute("insert into notes (entity_id, place, note) values (:id, :place, :note)", row)


@processor("transaction", "note")
def note(ctx: ApplyContext, result: object) -> None:
    """Writes to the entity that this step was here."""
    _note(ctx, ctx.step_key)


@processor("transaction", "noteLarge")
def note_large(ctx: ApplyContext, result: object) -> None:
    """The same for large ones."""
    _note(ctx, f"large {ctx.step_key}")


@processor("budget", "note")
def note_budget(ctx: ApplyContext, result: object) -> None:
    """Of the same name in another service."""
    _note(ctx, f"budget {ctx.step_key}")


@processor("transaction", "noteTotal")
def note_total(ctx: ApplyContext, result: Mapping[str, str] | None) -> None:
    """Takes the answer of a model out of its message; without an answer there is nothing to do."""
    if result is not None:
        _note(ctx, f"total {json.loads(result['message'])['total']}")


@processor("transaction", "finishTransactionProcessing")
def finish_transaction(ctx: ApplyContext, result: object) -> None:
    """The task-specific end of a transaction."""
    _note(ctx, "Ready")


@processor("transaction", "finishReluctantly")
def finish_reluctantly(ctx: ApplyContext, result: object) -> None:
    """Writes, and fails at the first attempt: asked the fast way and then the full way."""
    _note(ctx, "Ready")
    finishing[ctx.job_id] += 1
    if finishing[ctx.job_id] <= 2:
        raise RetryableError("Not yet.", retry_after=0.0)


@processor("transaction", "finishNever")
def finish_never(ctx: ApplyContext, result: object) -> None:
    """Writes, and fails."""
    _note(ctx, "Ready")
    raise PermanentError("The books are closed.")


@entity_loader("transaction")
def load_transaction(db: Database, entity_id: str) -> Mapping[str, object]:
    """The transaction with everything noted about it."""
    found = db.execute("select note from notes where entity_id = :id order by place", {"id": entity_id})
    return {"notes": list(found.scalars())}


@entity_loader("budget")
def load_budget(db: Database, entity_id: str) -> Mapping[str, object]:
    """A budget knows nothing of notes."""
    return {"notes": "of a budget"}


def run(world: World, template: str | Plan, *modules: ModuleType, **fields: object) -> Ended:
    """Let a real worker run one job about a transaction of which nothing is noted yet."""
    with world.database.write() as connection:
        connection.execute(text("create table if not exists notes (entity_id text, place int, note text)"))
    return run_job(world, template, sys.modules[__name__], *modules, **fields)


def notes(world: World, ended: Ended) -> list[str]:
    """What was written about the transaction, in order."""
    with world.looking() as connection:
        query = text("select note from notes where entity_id = :id order by place")
        return list(connection.execute(query, {"id": ended.entity_id}).scalars())


def faults(template: str) -> set[str]:
    """The codes of all that is wrong with a template."""
    with pytest.raises(TemplateInvalid) as refused:
        compile_template(template, catalogue=Catalogue.permissive())
    return {fault.code for fault in refused.value.faults}
