"""A plug-in that turns books into chunks and finds connections between them: the long job whose rows another uses.

Every call of the stand-in model is told to the witness under the words it was given. `metadata["hold"]` lists step keys
that wait at the gate of their name; a held step has done half of its work by then.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from docmill.model.ids import new_id
from docmill.plugin import ApplyContext, Database, FollowUp, StepContext, derived_id, entity_loader, processor, step
from docmill.testing.fault_steps import witness
from docmill.testing.waiting import until_true

PLUGIN = "docmill.testing.book"
BATCH = 10
"""Pages in one call of the model."""
FAR = 15
"""How far apart, besides neighbours, connected chunks are."""

TABLES = (
    "create table books (id text primary key, pages integer not null, edition integer not null, markdown text)",
    "create table book_chunks (id text primary key, book_id text not null references books (id), "
    "position integer not null, content text not null, embedding text, superseded_at text)",
    "create index ix_book_chunks_book on book_chunks (book_id, position)",
    "create table book_connections (id text primary key, book_id text not null references books (id), "
    "source_chunk_id text not null references book_chunks (id), "
    "target_chunk_id text not null references book_chunks (id))",
    "create index ix_book_connections_source on book_connections (source_chunk_id)",
    "create index ix_book_connections_target on book_connections (target_chunk_id)",
)


def template(chunker: str = "saveChunks") -> str:
    """The workflow of a book; `chunker` is the processor that saves its chunks."""
    return f"""
name: book
processable_type: book
service_name: book
steps:
  - {{step_key: extract, type: book.extract, group: 1}}
  - {{step_key: save, type: book.markdown, group: 2, processor_method: saveMarkdown}}
  - {{step_key: chunk, type: book.chunk, group: 3, processor_method: {chunker}}}
  - {{step_key: embed, type: book.embed, group: 4, processor_method: saveEmbeddings}}
  - {{step_key: finish, type: FinishProcessing}}
"""


CONNECT = """
name: detect connections
processable_type: book
service_name: book
steps:
  - {step_key: connect, type: book.connect, processor_method: saveConnections, max_attempts: 1}
  - {step_key: finish, type: FinishProcessing}
"""


async def _hold(ctx: StepContext) -> None:
    """Wait at the step's gate, if its job says so."""
    if ctx.step_key in _held(ctx.metadata):
        witness().note("holding", ctx.step_key, ctx.effect_key)
        try:
            await until_true(lambda: witness().is_open(ctx.step_key))
        except asyncio.CancelledError:
            witness().note("dropped", ctx.step_key, ctx.effect_key)
            raise


def _held(metadata: Mapping[str, object]) -> list[str]:
    held = metadata.get("hold", [])
    return [str(name) for name in held] if isinstance(held, list) else []


def _batches(count: int) -> list[range]:
    return [range(start, min(start + BATCH, count)) for start in range(0, count, BATCH)]


async def _ask(what: str, ctx: StepContext, batch: range, answers: Sequence[str]) -> list[str]:
    """One paid call of the stand-in model."""
    witness().note("called", f"{what} of {ctx.entity_id} from {batch.start}", ctx.effect_key)
    return list(answers)


@entity_loader("book")
def load_book(db: Database, entity_id: str) -> dict[str, Any] | None:
    """The book with its chunks, but for those that are no longer part of it."""
    book = db.execute("select id, pages, edition, markdown from books where id = :id", {"id": entity_id}).first()
    if book is None:
        return None
    chunks = db.execute(
        "select id, position, content from book_chunks where book_id = :id and superseded_at is null order by position",
        {"id": entity_id},
    )
    return {**book._mapping, "chunks": [dict(row._mapping) for row in chunks]}


@step("book.extract", kind="ai")
async def extract(ctx: StepContext, entity: dict[str, Any]) -> dict[str, object]:
    """The text of all pages, a few at a time; each batch is paid once."""
    texts: list[str] = []
    batches = _batches(entity["pages"])
    for number, batch in enumerate(batches):
        if number == len(batches) // 2:
            await _hold(ctx)
        # From the second edition on, every second page was rewritten.
        pages = [f"Page {page}, edition {entity['edition'] if page % 2 else 1}." for page in batch]
        texts += await ctx.once(f"pages-{batch.start}", partial(_ask, "pages", ctx, batch, pages))
    return {"texts": texts}


@step("book.markdown")
async def markdown(ctx: StepContext, results: dict[str, Any]) -> dict[str, object]:
    """The whole text in one piece."""
    await _hold(ctx)
    return {"markdown": "\n\n".join(results["extract"]["texts"])}


@processor("book", "saveMarkdown")
def save_markdown(ctx: ApplyContext, result: dict[str, Any]) -> None:
    ctx.db.execute(
        "update books set markdown = :text where id = :id", {"text": result["markdown"], "id": ctx.entity_id}
    )


@step("book.chunk")
async def chunk(ctx: StepContext, entity: dict[str, Any]) -> dict[str, object]:
    """A chunk for each page."""
    await _hold(ctx)
    return {"chunks": entity["markdown"].split("\n\n")}


@processor("book", "saveChunks")
def save_chunks(ctx: ApplyContext, result: dict[str, Any]) -> None:
    """Known by book, position and content: a rerun writes the same rows."""
    rows = [
        {"id": derived_id(ctx.entity_id, position, content), "position": position, "content": content}
        for position, content in enumerate(result["chunks"])
    ]
    done = ctx.reconcile("book_chunks", scope={"book_id": ctx.entity_id}, rows=rows, superseded="superseded_at")
    witness().note("chunked", ctx.effect_key, f"{done.removed} removed, {len(done.kept)} kept")


@processor("book", "replaceChunks")
def replace_chunks(ctx: ApplyContext, result: dict[str, Any]) -> None:
    """What lost rows and broke foreign keys: delete everything, and insert it under new ids."""
    ctx.db.execute("delete from book_chunks where book_id = :id", {"id": ctx.entity_id})
    for position, content in enumerate(result["chunks"]):
        ctx.db.execute(
            "insert into book_chunks (id, book_id, position, content) values (:id, :book, :position, :content)",
            {"id": new_id(), "book": ctx.entity_id, "position": position, "content": content},
        )


@step("book.embed", kind="ai")
async def embed(ctx: StepContext, entity: dict[str, Any]) -> dict[str, object]:
    """A vector for each chunk, by its id."""
    vectors: dict[str, str] = {}
    batches = _batches(len(entity["chunks"]))
    for number, batch in enumerate(batches):
        if number == len(batches) // 2:
            await _hold(ctx)
        chunks = [entity["chunks"][place] for place in batch]
        answers = [str(len(chunk["content"])) for chunk in chunks]
        found = await ctx.once(f"vectors-{batch.start}", partial(_ask, "vectors", ctx, batch, answers))
        vectors |= dict(zip([chunk["id"] for chunk in chunks], found, strict=True))
    return {"vectors": vectors}


@processor("book", "saveEmbeddings")
def save_embeddings(ctx: ApplyContext, result: dict[str, Any]) -> None:
    """The book is ready; its connections are looked for in a job of their own."""
    for chunk_id, vector in result["vectors"].items():
        ctx.db.execute("update book_chunks set embedding = :vector where id = :id", {"id": chunk_id, "vector": vector})
    ctx.follow_up(
        FollowUp(
            template="detect connections",
            entity_type="book",
            entity_id=ctx.entity_id,
            metadata={"hold": _held(ctx.metadata)},
        )
    )


@step("book.connect")
async def connect(ctx: StepContext, entity: dict[str, Any]) -> dict[str, object]:
    """Pairs of chunk ids, as they were when the job began."""
    ids = [chunk["id"] for chunk in entity["chunks"]]
    pairs = [*pairwise(ids), *zip(ids, ids[FAR:], strict=False)]
    await _hold(ctx)
    return {"pairs": pairs}


@processor("book", "saveConnections")
def save_connections(ctx: ApplyContext, result: dict[str, Any]) -> None:
    rows = [
        {"id": derived_id(source, target), "source_chunk_id": source, "target_chunk_id": target}
        for source, target in result["pairs"]
    ]
    ctx.reconcile("book_connections", scope={"book_id": ctx.entity_id}, rows=rows)
