"""What the demo's template names: steps, a processor and an entity loader, written as anybody's plug-in would be."""

import asyncio
import hashlib
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from docmill.demo.invoices import CENTS_PER_EURO, UNKNOWN_VENDOR
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

TABLES = (
    "create table demo_invoices (id text primary key, path text not null)",
    # No key on purpose: an effect applied twice would be two rows, and the demo counts them.
    "create table demo_bookings (job_id text not null, invoice text not null, vendor text not null, cents integer)",
)
CALLS = "model-calls.log"
"""Beside the inbox: a line for every call of the model, written by whichever worker made it."""

Entity = Mapping[str, str]
Results = Mapping[str, Mapping[str, Any]]


@entity_loader("demo_invoice")
def load_invoice(db: Database, entity_id: str) -> dict[str, object] | None:
    """The invoice as its row tells it."""
    row = db.execute("select id, path from demo_invoices where id = :id", {"id": entity_id}).first()
    return None if row is None else {"id": row.id, "path": row.path}


@step("demo.read", kind="rule")
async def read(ctx: StepContext, entity: Entity) -> dict[str, object]:
    """The text of the invoice, page by page."""
    await asyncio.sleep(0.5)
    return {"pages": Path(entity["path"]).read_text().split("\f")}


@step("demo.fingerprint", kind="rule")
async def fingerprint(ctx: StepContext, entity: Entity) -> dict[str, object]:
    """What identifies the file, whatever its name."""
    await asyncio.sleep(0.7)
    return {"sha256": hashlib.sha256(Path(entity["path"]).read_bytes()).hexdigest()}


@step("demo.extract", kind="ai")
async def extract(ctx: StepContext, entity: Entity, results: Results) -> dict[str, object]:
    """The figures of the invoice. A page is a paid model call: `once` stores its answer, and nobody asks again."""
    found: dict[str, Any] = {"cents": 0}
    for number, page in enumerate(results["read"]["pages"], start=1):
        answer = await ctx.once(f"page {number}", partial(_ask, ctx, entity, number, page))
        found["cents"] += answer.pop("cents", 0)
        found.update(answer)
    return {**found, "model": ctx.model["model"]}


async def _ask(ctx: StepContext, entity: Entity, number: int, page: str) -> dict[str, Any]:
    """The stand-in for a model: slow like one, and the fast one cannot read handwriting."""
    await asyncio.sleep(1.2)
    _count_call(Path(entity["path"]).parent.parent / CALLS, f"{ctx.job_id} {number} {ctx.model['model']}\n")
    if "written by hand" in page and ctx.model["model"] == "swift-1":
        raise RetryableError("swift-1 reads no handwriting")
    answer: dict[str, Any] = {name: match[1] for name in ("vendor", "currency") if (match := _line(name, page))}
    if amount := _line("amount", page):
        answer["cents"] = int(amount[1].replace(".", ""))
    return answer


def _line(name: str, page: str) -> re.Match[str] | None:
    return re.search(rf"^{name} (.+)$", page, re.MULTILINE)


def _count_call(log: Path, line: str) -> None:
    # One write to a file opened for appending is never torn by the other workers' writes.
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@step("demo.look_up_vendor", kind="rule")
async def look_up_vendor(ctx: StepContext, results: Results) -> dict[str, object]:
    """Ask the register of vendors, which does not know them all."""
    await asyncio.sleep(0.9)
    match = _line("vendor", results["read"]["pages"][0])
    vendor = match[1] if match else ""
    if vendor == UNKNOWN_VENDOR:
        raise PermanentError("not in the vendor register")
    return {"vendor": vendor, "registered": True}


@step("demo.convert", kind="rule")
async def convert(ctx: StepContext, results: Results) -> dict[str, object]:
    """Foreign money into euro cents."""
    await asyncio.sleep(0.6)
    found = results["extract"]
    return {"cents": found["cents"] * CENTS_PER_EURO[found["currency"]] // 100}


@step("demo.total", kind="rule")
async def total(ctx: StepContext, results: Results) -> dict[str, object]:
    """What to book: the converted amount if there is one."""
    await asyncio.sleep(0.3)
    converted = results.get("convert", results["extract"])
    return {"vendor": results["extract"]["vendor"], "cents": converted["cents"]}


@processor("demo", "book")
def book(ctx: ApplyContext, result: Mapping[str, Any]) -> None:
    """Book the total, in the transaction that completes the step."""
    ctx.db.execute(
        "insert into demo_bookings (job_id, invoice, vendor, cents) values (:job, :invoice, :vendor, :cents)",
        {"job": ctx.job_id, "invoice": ctx.entity_id, "vendor": result["vendor"], "cents": result["cents"]},
    )
