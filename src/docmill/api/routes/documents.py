"""Documents: upload, list, look, pages, words, download, reprocess, remove."""

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Body, Query, Request
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from docmill.api.access import Acting, Call, Guarded, allowed, streamed
from docmill.api.addresses import absolute
from docmill.api.creating import Creating
from docmill.api.multipart import read_form
from docmill.api.places import uploading
from docmill.api.shapes import Cursor, Id, Limit, Page, Text, Wire, page_of
from docmill.documents.faults import NoSuchPage
from docmill.documents.pictures import page_png
from docmill.documents.records import DocumentRecord
from docmill.model.documents import DocumentStatus
from docmill.model.errors import NotFound
from docmill.model.ids import derived_id
from docmill.model.people import Permission
from docmill.services.documents import original_gone
from docmill.services.jobs import Retry
from docmill.services.reprocessing import another

routes = APIRouter(prefix="/documents", tags=["documents"], route_class=Guarded)

_MEDIA = {
    "pdf": "application/pdf",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "tiff": "image/tiff",
    "bmp": "image/bmp",
    "epub": "application/epub+zip",
    "xml": "application/xml",
}
_UNKNOWN = "application/octet-stream"
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_RENDER_SECONDS = 60.0
_UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "additionalProperties": False,
                    "properties": {
                        "file": {"type": "string", "contentMediaType": "application/octet-stream"},
                        "schema": {"type": "string", "description": "Which fields to look for, by name."},
                        "model": {"type": "string", "description": "Ask this model too."},
                    },
                }
            }
        },
    }
}


Named = Annotated[Text, Field(min_length=1, max_length=200)]
"""A schema or a model, by its name."""


class Fault(BaseModel):
    """Why a document failed."""

    code: str
    message: str | None


class Document(BaseModel):
    """A document."""

    id: str
    file_name: str
    status: DocumentStatus
    format: str | None
    size: int | None
    sha256: str | None
    schema_name: str | None
    document_type: str | None
    confidence: float | None
    model: str | None
    duplicate_of: str | None
    job_id: str | None
    error: Fault | None
    original_kept: bool
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, record: DocumentRecord) -> "Document":
        """As it is shown: without places and keys of this machine."""
        error = None if record.error_code is None else Fault(code=record.error_code, message=record.error_message)
        return cls(
            id=record.id,
            file_name=record.file_name,
            status=record.status,
            format=record.format,
            size=record.size,
            sha256=record.sha256,
            schema_name=record.schema_name,
            document_type=record.document_type,
            confidence=record.confidence,
            model=None if record.variant == "local" else record.variant,
            duplicate_of=record.duplicate_of,
            job_id=record.job_id,
            error=error,
            original_kept=record.original_key is not None,
            created_at=record.created_at,
            finished_at=record.finished_at,
        )


class DocumentWithResult(Document):
    """A document with what was extracted from it."""

    extraction: dict[str, Any] | None


class PageInfo(BaseModel):
    """A page as it was read."""

    number: int
    width: float
    height: float
    source: str
    words: int


class WordBox(BaseModel):
    """A word and where it stands: 0 to 1, from the top left."""

    text: str
    box: tuple[float, float, float, float]
    score: float | None


class PageWords(BaseModel):
    """The words of a page, line by line."""

    number: int
    width: float
    height: float
    lines: list[list[WordBox]]


class SectionText(BaseModel):
    """A piece of a document that flows, such as a chapter of a book."""

    number: Annotated[int, Field(description="From 1, in the order of the book.")]
    title: str | None
    text: str


class Link(BaseModel):
    """A link that opens one file for a while."""

    url: Annotated[str, Field(description="With scheme and host.")]
    expires_in: int


class Reprocess(Wire):
    """How to process a document again."""

    keep_checkpoints: bool = True
    # `schema` itself is a method of every model.
    form_schema: Annotated[
        Named | None, Field(alias="schema", description="Read it by this schema, by name: another document answers.")
    ] = None
    model: Annotated[Named | None, Field(description="Ask this model too: another document answers.")] = None


class Reprocessed(BaseModel):
    """The job that runs, and its document: another one if something else was asked for."""

    document_id: str
    job_id: str


@routes.post("", status_code=201, response_model=Document, openapi_extra=_UPLOAD)
@allowed(Permission.DOCUMENTS_WRITE)
@streamed
async def upload(request: Request, call: Acting, creating: Creating) -> Response:
    """Upload a document; it is processed at once."""
    async with uploading(request, call.org.uploads) as (body, incoming):
        kind, known = request.headers.get("content-type", ""), frozenset({"schema", "model"})
        form = await read_form(kind, body, file="file", known=known, write=incoming.write)
        schema, model = form.fields.get("schema") or None, form.fields.get("model") or None
        name, key = form.file_name or "document", creating.derived_key
        named = None if key is None else derived_id("upload", call.org.id, key)

        def accept() -> Document:
            order = call.org.order(schema, model)
            accepted = call.org.uploads.accept(incoming, name=name, order=order, by=call.principal, document_id=named)
            return Document.of(accepted.document)

        said = {"sha256": incoming.key, "name": name, "schema": schema, "model": model}
        return await run_in_threadpool(creating.once, said, accept)


@routes.get("")
@allowed(Permission.DOCUMENTS_READ)
def list_documents(
    call: Acting,
    status: DocumentStatus | None = None,
    duplicates: Annotated[bool, Query(description="Also copies of others.")] = True,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[Document]:
    """The newest first; with `duplicates=false` without those that are copies of others."""
    # Who asks for that status wants them.
    copies = duplicates or status is DocumentStatus.DUPLICATE
    shown, following = page_of(
        "document",
        cursor,
        limit,
        lambda before, most: call.org.documents.list(status=status, duplicates=copies, before=before, limit=most),
        lambda record: record.id,
    )
    return Page(items=[Document.of(record) for record in shown], next_cursor=following)


@routes.get("/{document_id}")
@allowed(Permission.DOCUMENTS_READ)
def get_document(document_id: Id, call: Acting) -> DocumentWithResult:
    """One document, with what was extracted from it."""
    record = call.org.documents.get(document_id)
    extraction = call.org.documents.extraction_json(record)
    return DocumentWithResult(**Document.of(record).model_dump(), extraction=extraction)


@routes.get("/{document_id}/pages")
@allowed(Permission.DOCUMENTS_READ)
def list_pages(document_id: Id, call: Acting) -> list[PageInfo]:
    """The pages, as far as they were read."""
    reading = call.org.documents.reading(call.org.documents.get(document_id))
    return [
        PageInfo(
            number=page.number, width=page.width, height=page.height, source=page.source.value, words=len(page.words)
        )
        for page in (() if reading is None else reading.pages)
    ]


@routes.get(
    "/{document_id}/pages/{number}/image",
    response_class=Response,
    responses={200: {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}}},
)
@allowed(Permission.DOCUMENTS_READ)
async def page_image(
    document_id: Id, number: int, call: Acting, max_side: Annotated[int, Query(ge=16, le=4000)] = 1600
) -> Response:
    """A page as a PNG, upright: boxes of words and evidence fit on it."""
    if not 1 <= number <= 100_000:
        raise NotFound(f"Document {document_id} has no page {number}.", document_id=document_id)
    path, turned = await run_in_threadpool(_page, call, document_id, number)
    limits = call.app.document_work.limits
    try:
        data = await call.app.children.run(page_png, (path, number, limits, max_side, turned), _RENDER_SECONDS)
    except NoSuchPage as error:
        raise NotFound(error.message, document_id=document_id) from error
    return Response(data, media_type="image/png")


def _page(call: Call, document_id: str, number: int) -> tuple[str, int]:
    """The file, and by how much the page is turned."""
    record = call.org.documents.get(document_id)
    if record.original_key is None:
        raise original_gone(record.id)
    turned = call.org.documents.turned(record)
    if turned is not None and number not in turned:
        raise NotFound(f"Document {record.id} has no page {number}.", document_id=record.id)
    path = str(call.app.blobs.path_of(record.original_key))
    return path, 0 if turned is None else turned[number]


@routes.get("/{document_id}/words")
@allowed(Permission.DOCUMENTS_READ)
def words(
    document_id: Id, call: Acting, page: Annotated[int | None, Query(ge=1, le=100_000)] = None
) -> list[PageWords]:
    """The words of the document, or of one page, each with its place."""
    reading = call.org.documents.reading(call.org.documents.get(document_id))
    found = [each for each in (() if reading is None else reading.pages) if page in (None, each.number)]
    if page is not None and not found:
        raise NotFound(f"Document {document_id} has no page {page}.", document_id=document_id)
    return [
        PageWords(
            number=each.number,
            width=each.width,
            height=each.height,
            lines=[
                [
                    WordBox(
                        text=word.text,
                        box=(word.box.left, word.box.top, word.box.right, word.box.bottom),
                        score=word.score,
                    )
                    for word in line.words
                ]
                for line in each.lines
            ],
        )
        for each in found
    ]


@routes.get("/{document_id}/sections")
@allowed(Permission.DOCUMENTS_READ)
def sections(
    document_id: Id, call: Acting, section: Annotated[int | None, Query(ge=1, le=100_000)] = None
) -> list[SectionText]:
    """The sections of a document without pages (an EPUB), or one of them, with their text."""
    reading = call.org.documents.reading(call.org.documents.get(document_id))
    found = [
        SectionText(number=number, title=each.title, text=each.text)
        for number, each in enumerate(() if reading is None else reading.sections, 1)
        if section in (None, number)
    ]
    if section is not None and not found:
        raise NotFound(f"Document {document_id} has no section {section}.", document_id=document_id)
    return found


@routes.get(
    "/{document_id}/download",
    response_class=FileResponse,
    responses={200: {"content": dict.fromkeys((*_MEDIA.values(), _UNKNOWN), _BINARY)}},
)
@allowed(Permission.DOCUMENTS_READ)
def download(document_id: Id, call: Acting) -> FileResponse:
    """The original, under the name that it came with."""
    record = call.org.documents.get(document_id)
    if record.original_key is None:
        raise original_gone(record.id)
    media = _MEDIA.get(record.format or "", _UNKNOWN)
    path = call.app.blobs.path_of(record.original_key)
    return FileResponse(path, media_type=media, headers={"Content-Disposition": disposition(record.file_name)})


def disposition(name: str) -> str:
    """A name as RFC 6266 writes it: plain for the old, exact for the others, and nothing that could end the header."""
    plain = "".join(char if char.isascii() and char.isprintable() and char not in '"\\%' else "_" for char in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


@routes.post("/{document_id}/link")
@allowed(Permission.DOCUMENTS_READ)
def link(document_id: Id, request: Request, call: Acting) -> Link:
    """A link to the original, for a while, that needs no token."""
    within = call.app.settings.storage.links_expire_after
    record = call.org.documents.get(document_id)
    signed = call.org.documents.link(record, by=call.principal, within=within)
    return Link(url=absolute(signed, request, call.app.settings), expires_in=int(within.total_seconds()))


@routes.post("/{document_id}/reprocess", status_code=202, response_model=Reprocessed)
@allowed(Permission.DOCUMENTS_WRITE)
def reprocess(
    document_id: Id, body: Annotated[Reprocess, Body(default_factory=Reprocess)], call: Acting, creating: Creating
) -> Response:
    """Process it again from the start; what a person decided stays.

    By another schema or model it is another document of the same bytes, and what was read before stays as well.
    """
    key = creating.derived_key

    def work() -> Reprocessed:
        record, again = call.org.documents.get(document_id), call.org.reprocessing.by(call.principal)
        schema = None if body.form_schema is None else call.org.order(body.form_schema, None)
        model = None if body.model is None else call.org.model(body.model)
        order = another(again.order_of(record), named=schema, model=model)
        named = None if key is None else derived_id("reprocess", call.org.id, key)
        wish = Retry(everything=True, keep_checkpoints=body.keep_checkpoints)
        asked = again.start(record, order, call.jobs, wish, document_id=named)
        return Reprocessed(document_id=asked.document_id, job_id=asked.job_id)

    return creating.once(body, work, status=202)


@routes.delete("/{document_id}", status_code=204)
@allowed(Permission.DOCUMENTS_WRITE)
def remove(document_id: Id, call: Acting) -> None:
    """Remove it, if it failed and never had a result; whatever was read stays."""
    call.org.documents.by(call.principal).discard([call.org.documents.get(document_id).id])
