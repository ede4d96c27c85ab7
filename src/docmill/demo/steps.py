"""What the demo's template names: steps, processors and an entity loader, written as anybody's plug-in would be."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from docmill.demo.papers import BUDGETS, PAPERS
from docmill.plugin import (
    ApplyContext,
    Attachment,
    Database,
    Issue,
    PermanentError,
    StepContext,
    entity_loader,
    processor,
    step,
)

TABLES = (
    """create table demo_transactions (
        id text primary key, path text not null, text text, kind text, vendor text, purpose text,
        net real, tax real, total real, budget text, vendor_id text, reference text, called_by integer)""",
    # No keys on purpose: an effect applied twice would be two rows, and the demo counts them.
    "create table demo_effects (job_id text not null, step_key text not null)",
    "create table demo_bookings (job_id text not null, paper text not null, reference text, cents integer not null)",
)

Entity = Mapping[str, Any]
Result = Mapping[str, Any]


@entity_loader("demo_transaction")
def load_transaction(db: Database, entity_id: str) -> dict[str, object] | None:
    """The transaction as far as the processors have written it, and what it can be matched with."""
    row = db.execute("select * from demo_transactions where id = :id", {"id": entity_id}).first()
    if row is None:
        return None
    return {
        **row._mapping,
        "budgets": [{"id": f"budget-{title}", "title": title} for title in BUDGETS],
        "vendors": [{"id": f"vendor-{paper.number}", "name": paper.vendor} for paper in PAPERS],
    }


@step("demo.read_pages", kind="ai")
async def read_pages(ctx: StepContext, entity: Entity) -> dict[str, object]:
    """The text of the paper. A page is a paid model call: `once` stores its answer, and nobody asks again."""
    pages = Path(entity["path"]).read_text().split("\f")
    texts = [
        await ctx.once(f"page {number}", partial(_read_page, ctx, number, page))
        for number, page in enumerate(pages, start=1)
    ]
    return {"text": "\n".join(texts)}


async def _read_page(ctx: StepContext, number: int, page: str) -> str:
    attached = Attachment(data=page.encode(), media_type="text/plain")
    reply = await ctx.generate(attachments=[attached], page=f"page {number}")
    return reply.text


@step("demo.check_total", kind="rule")
async def check_total(ctx: StepContext, entity: Entity) -> dict[str, object]:
    """Net and tax must make the total. If they do not, a person says what it is, and the step completes with that."""
    await asyncio.sleep(1.3)
    net, tax, total = entity["net"], entity["tax"], entity["total"]
    if round(net + tax, 2) != total:
        ctx.issue(
            Issue(
                code="total_mismatch",
                title=f"net {net:g} and tax {tax:g} make {net + tax:g}, but the total says {total:g}",
                blocking=True,
                details={"net": net, "tax": tax, "total": total},
                answer_schema={"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]},
            )
        )
    return {"total": total}


@processor("demo", "processOcrText")
def save_text(ctx: ApplyContext, result: Result) -> None:
    """What the pages say."""
    _save(ctx, text=result["text"])


@processor("demo", "processDocumentParsing")
def save_kind(ctx: ApplyContext, result: Result) -> None:
    """What kind of document it is."""
    _save(ctx, kind=result["data"]["document_type"])


@processor("demo", "processOcrExtraction")
def save_data(ctx: ApplyContext, result: Result) -> None:
    """What the document says."""
    _save(ctx, **{name: result["data"][name] for name in ("vendor", "purpose", "net", "tax", "total")})


@processor("demo", "processTotalCheck")
def save_total(ctx: ApplyContext, result: Result) -> None:
    """The total that holds: the extracted one, or the one a person gave."""
    _save(ctx, total=result["total"])


@processor("demo", "processBudgetItemMatching")
def link_budget(ctx: ApplyContext, result: Result) -> None:
    """The budget that pays for it."""
    if result["data"]["budget"] is None:
        raise PermanentError("no budget pays for this")
    _save(ctx, budget=result["data"]["budget"])


@processor("demo", "processProjectRelationshipMatching")
def link_vendor(ctx: ApplyContext, result: Result) -> None:
    """The vendor it comes from."""
    _save(ctx, vendor_id=result["data"]["vendor_id"])


@processor("demo", "processPosting")
def save_reference(ctx: ApplyContext, result: Result) -> None:
    """What the office outside calls it, and which process said so."""
    _save(ctx, reference=result["reference"], called_by=result["process"])


@processor("demo", "finishTransactionProcessing")
def book(ctx: ApplyContext, result: object) -> None:
    """Book the transaction, in the transaction that completes the job."""
    ctx.db.execute(
        "insert into demo_bookings (job_id, paper, reference, cents)"
        " select :job, id, reference, round(total * 100) from demo_transactions where id = :id",
        {"job": ctx.job_id, "id": ctx.entity_id},
    )
    _count(ctx)


def _save(ctx: ApplyContext, **values: object) -> None:
    columns = ", ".join(f"{name} = :{name}" for name in values)
    ctx.db.execute(f"update demo_transactions set {columns} where id = :id", {"id": ctx.entity_id, **values})
    _count(ctx)


def _count(ctx: ApplyContext) -> None:
    """A row for every time that a processor took effect."""
    ctx.db.execute(
        "insert into demo_effects (job_id, step_key) values (:job, :step)", {"job": ctx.job_id, "step": ctx.step_key}
    )
