"""Greets guests: the smallest plug-in that uses all three decorators.

The guests are rows of our own table; the greeting is written to another, exactly once, whatever dies on the way.
"""

from collections.abc import Mapping
from typing import TypedDict

from docmill.plugin import ApplyContext, Database, PermanentError, StepContext, entity_loader, processor, step


class Guest(TypedDict):
    """The entity that a greeting is about."""

    id: str
    name: str


class Greeting(TypedDict):
    """What the step computes and the processor applies."""

    text: str
    attempt: int


@entity_loader("guest")
def load_guest(db: Database, entity_id: str) -> Mapping[str, object] | None:
    """A guest by id; None when there is none. Asked anew before every step that wants the entity."""
    row = db.execute("select id, name from hello_guests where id = :id", {"id": entity_id}).first()
    return None if row is None else {"id": row.id, "name": row.name}


@step("hello.greet", kind="rule")
async def greet(ctx: StepContext, entity: Guest | None) -> Greeting:
    """Compute: no transaction is open, so this may take its time and call anybody."""
    if entity is None:
        raise PermanentError(f"There is no guest {ctx.entity_id}.")
    name = await ctx.once("name", lambda: entity["name"].strip().title())
    return {"text": f"Hello, {name}!", "attempt": ctx.attempt}


@processor("hello", "save")
def save(ctx: ApplyContext, result: Greeting) -> None:
    """Apply: runs in the transaction that completes the step. It only writes."""
    ctx.db.execute(
        "insert into hello_greetings (job_id, guest_id, text) values (:job, :guest, :text)",
        {"job": ctx.job_id, "guest": ctx.entity_id, "text": result["text"]},
    )
