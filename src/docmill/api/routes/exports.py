"""Exports: what was read from documents, reviewed values included, as one file."""

from functools import partial
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse
from pydantic import AwareDatetime, BeforeValidator
from starlette.background import BackgroundTask

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.shapes import written_out
from docmill.model.people import Permission
from docmill.outputs.exporting import Choice, ExportFormat, asked_reviews, asked_table, style_for

routes = APIRouter(prefix="/exports", tags=["exports"], route_class=Guarded)

_MEDIA = {
    ExportFormat.CSV: "text/csv; charset=utf-8",
    ExportFormat.JSON: "application/json",
    ExportFormat.JSONL: "application/x-ndjson",
    ExportFormat.PARQUET: "application/vnd.apache.parquet",
}
_FILES: dict[str, Any] = {
    media.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}} for media in _MEDIA.values()
}
_FILES[_MEDIA[ExportFormat.JSON]] = {"schema": {"type": "array", "items": {"type": "object"}}}


@routes.get("", response_class=FileResponse, responses={200: {"content": _FILES}})
@allowed(Permission.EXPORTS_READ)
async def export(
    request: Request,
    call: Acting,
    format: ExportFormat = ExportFormat.CSV,
    schema: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[AwareDatetime | None, BeforeValidator(written_out)] = None,
    items: Annotated[bool, Query(description="Short for table=line_items.")] = False,
    table: Annotated[
        str | None,
        Query(max_length=200, description="A row for each row of this table instead of each document: tax_lines, say."),
    ] = None,
    review: Annotated[
        list[str] | None,
        Query(
            max_length=10,
            description="Only documents whose review stands so now: pending, in_review, approved, corrected, rejected, "
            "or none for those without an item; several with commas between.",
        ),
    ] = None,
    everything: Annotated[bool, Query(description="Also copies, replaced results, and what has no result.")] = False,
    excel: Annotated[
        bool, Query(description="CSV that begins with a byte order mark, by which Excel knows UTF-8.")
    ] = False,
    delimiter: Annotated[
        str | None, Query(max_length=3, description="What stands between cells of CSV: , ; | or tab.")
    ] = None,
    decimal: Annotated[
        str | None,
        Query(max_length=1, description="What stands before decimals in CSV: . or , (then ; between cells)."),
    ] = None,
) -> FileResponse:
    """Each document once for each schema, by its newest result, with where its review stands."""
    style = style_for(format, excel=excel, delimiter=delimiter, decimal=decimal)
    reviews = asked_reviews(review or ())
    rows_of = asked_table(items=items, table=table)
    choice = Choice(schema=schema, since=since, table=rows_of, reviews=reviews, duplicates=everything)
    write = partial(call.org.exports.write, choice, format, by=call.principal, style=style)
    # Each may take a gigabyte, and its time: a few at once, on threads that no other request needs.
    file = await run_sync(write, limiter=request.app.state.exporting)
    return FileResponse(
        file,
        media_type=_MEDIA[format],
        headers={"Content-Disposition": f'attachment; filename="docmill.{format.value}"'},
        background=BackgroundTask(file.unlink, missing_ok=True),
    )
