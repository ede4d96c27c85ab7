"""`document.read`: what stands on the pages, in limited children, page by page where it takes long.

Embedded text is read in one go. Pages that need OCR are read one by one and each is stored when it is done, so a book
goes on at the page where its worker died. Bytes that were read before, for whatever schema, are not read again,
unless a limit cut them short that is higher now.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docmill.documents.blobs import BlobMissing
from docmill.documents.faults import DocumentFault, ReaderDied, ReaderTimedOut
from docmill.plugin import PermanentError, StepContext, StepType, declared, step
from docmill.steps import document_children as children
from docmill.steps.document_work import DocumentWork

_DEATHS = 2
"""A child that dies may be the victim of another's hunger; the second one in a row is the fault of the file."""


class OriginalExpired(PermanentError):
    """The bytes of the document are gone, so it cannot be read again."""

    code = "original_expired"


def read_step(work: DocumentWork) -> StepType:
    """The step type, for this application."""

    @step("document.read", kind="rule")
    async def read(ctx: StepContext, results: Mapping[str, Any]) -> dict[str, object]:
        """`{"reading": key of the blob, "format", "pages", "sections", ...}`."""
        checked = results["check"]
        before = checked["read_before"]
        if before is not None and await work.answers(before):
            return {"reading": before, "reused": True}
        try:
            if checked["original"] is None:
                raise BlobMissing("expired")
            original = await work.path_of(checked["original"])
        except BlobMissing as error:
            raise OriginalExpired(
                f"The original of {checked['file_name']!r} is gone, so it cannot be read again; bring it in once more."
            ) from error
        limits, workshop = work.limits, work.workshop
        begun = await _in_child(ctx, children.begin, original, limits, workshop, timeout=limits.outline_seconds)
        if begun["to_read"]:
            begun = await _pages(ctx, work, original, begun)
        return {"reading": await work.adopt(begun), **begun["summary"]}

    return declared(read, StepType)


async def _pages(ctx: StepContext, work: DocumentWork, original: str, begun: dict[str, Any]) -> dict[str, Any]:
    """Read the pages that need it, some at a time, and put the whole together."""
    limits, workshop = work.limits, work.workshop
    room = asyncio.Semaphore(work.abreast)
    # The outline is this attempt's alone, and so are the pages that bear its name.
    reader = Path(begun["outline"]).name

    async def page(number: int) -> str:
        async def read() -> str:
            arguments = (original, number, limits, workshop, reader)
            found = await _in_child(ctx, children.page, *arguments, timeout=limits.page_seconds)
            return await work.adopt(found)

        async with room:
            key = await ctx.once(f"page-{number}", read)
            return key if await work.has(key) else await read()

    tasks = [asyncio.ensure_future(page(number)) for number in begun["to_read"]]
    try:
        keys = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    files = [await work.path_of(key) for key in keys]
    whole = await _in_child(ctx, children.finish, begun["outline"], files, workshop, timeout=limits.outline_seconds)
    # They are in the reading now. An attempt that was given up and still runs finds them gone, and reads them again.
    for key in set(keys):
        await asyncio.to_thread(work.blobs().delete, key)
    return whole


async def _in_child(ctx: StepContext, function: Any, *arguments: object, timeout: float) -> dict[str, Any]:
    """Run it in a child; one that dies of the file again, or takes too long, is the end of it."""
    for death in range(1, _DEATHS + 1):
        try:
            answer: dict[str, Any] = await ctx.cpu(function, *arguments, timeout=timeout)
            return answer
        except DocumentFault:
            raise
        except Exception as error:
            code = getattr(error, "code", None)
            if code == "child_timed_out":
                raise ReaderTimedOut(
                    f"Reading was stopped: {error} The file may be damaged, or made to keep its reader busy."
                ) from error
            if code != "child_died":
                raise
            if death == _DEATHS:
                raise ReaderDied(
                    "The process that read the file died twice: it needs more memory than is allowed, or is made to "
                    "harm its reader."
                ) from error
    raise AssertionError("unreachable")
