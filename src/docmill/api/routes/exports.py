"""Exports: what was read from documents, reviewed values included, as one file."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse
from pydantic import AwareDatetime
from starlette.background import BackgroundTask

from docmill.api.access import Acting, Guarded, allowed
from docmill.model.people import Permission
from docmill.outputs.exporting import Choice, ExportFormat

routes = APIRouter(prefix="/exports", tags=["exports"], route_class=Guarded)

_MEDIA = {
    ExportFormat.CSV: "text/csv; charset=utf-8",
    ExportFormat.JSON: "application/json",
    ExportFormat.JSONL: "application/x-ndjson",
    ExportFormat.PARQUET: "application/vnd.apache.parquet",
}
_FILES = {media.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}} for media in _MEDIA.values()}


@routes.get("", response_class=FileResponse, responses={200: {"content": _FILES}})
@allowed(Permission.EXPORTS_READ)
def export(
    call: Acting,
    format: ExportFormat = ExportFormat.CSV,
    schema: Annotated[str | None, Query(max_length=200)] = None,
    since: AwareDatetime | None = None,
    items: Annotated[bool, Query(description="A row for each line item instead of each document.")] = False,
    everything: Annotated[bool, Query(description="Also copies, replaced results, and what has no result.")] = False,
) -> FileResponse:
    """Each document once for each schema, by its newest result."""
    choice = Choice(schema=schema, since=since, items=items, duplicates=everything, org_id=call.org.id)
    file = call.org.exports.write(choice, format)
    return FileResponse(
        file,
        media_type=_MEDIA[format],
        headers={"Content-Disposition": f'attachment; filename="docmill.{format.value}"'},
        background=BackgroundTask(file.unlink, missing_ok=True),
    )
