"""Uploads by signed link: one request asks for the right, another, from anywhere, sends the bytes."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from docmill.api.access import Acting, Guarded, Installation, allowed, public, streamed
from docmill.api.addresses import absolute
from docmill.api.creating import Creating
from docmill.api.places import uploading
from docmill.api.routes.documents import Document, Named
from docmill.api.shapes import Text, Wire
from docmill.bootstrap.clock import this_moment
from docmill.documents.links import LinkRefused
from docmill.documents.records import DocumentRecord
from docmill.model.errors import InvalidInput
from docmill.model.people import Permission
from docmill.services.upload_slots import holder

routes = APIRouter(tags=["uploads"], route_class=Guarded)

_BYTES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class NewUpload(Wire):
    """A document that is to come."""

    file_name: Annotated[Text, Field(min_length=1, max_length=500)]
    # As the form of an upload says it; `schema` itself is a method of every model.
    form_schema: Annotated[Named | None, Field(alias="schema")] = None
    schema_name: Annotated[Named | None, Field(description="The same as `schema`.")] = None
    model: Named | None = None

    def chosen(self) -> tuple[str | None, str]:
        """The schema that is asked for, and where the body says so; InvalidInput if it names two."""
        if self.form_schema is None:
            return self.schema_name, "body.schema_name"
        if self.schema_name not in (None, self.form_schema):
            told = "`schema` and `schema_name` are the same, and name two schemas here. Send one of them."
            raise InvalidInput(told, field="body.schema")
        return self.form_schema, "body.schema"


class Upload(BaseModel):
    """Where its bytes are to be sent."""

    document_id: str
    method: str
    url: Annotated[str, Field(description="With scheme and host.")]
    expires_at: datetime


@routes.post("/uploads", status_code=201, response_model=Upload)
@allowed(Permission.DOCUMENTS_WRITE)
def begin(body: NewUpload, request: Request, call: Acting, creating: Creating) -> Response:
    """A link to which the bytes of one document may be sent, without a token, for a quarter of an hour."""

    def work() -> Upload:
        schema, place = body.chosen()
        try:
            call.org.order(schema, body.model)
        except InvalidInput as error:
            named = {"body.schema": place}.get(str(error.details["field"]), error.details["field"])
            raise InvalidInput(error.message, field=named) from error
        slot, token = call.app.slots.make(
            call.principal,
            file_name=body.file_name,
            schema=schema,
            model=body.model,
            now=this_moment(),
        )
        return Upload(
            document_id=slot.document_id,
            method="PUT",
            url=absolute(f"/api/v1/uploads/{token}", request, call.app.settings),
            expires_at=datetime.fromtimestamp(slot.expires, UTC),
        )

    return creating.once(body, work)


@routes.put("/uploads/{token}", status_code=201, openapi_extra=_BYTES)
@public
@streamed
async def send(token: Annotated[str, Path(max_length=4096)], request: Request, app: Installation) -> Document:
    """The bytes themselves. Sent again, they are the same document."""
    slot = await run_in_threadpool(app.slots.read, token, now=this_moment())
    org = app.for_org(slot.org_id)
    async with uploading(request, org.uploads) as (body, incoming):
        async for piece in body:
            incoming.write(piece)

        def accept() -> DocumentRecord:
            order = org.order(slot.schema, slot.model)
            by = holder(app.database, slot)
            accepted = org.uploads.accept(
                incoming, name=slot.file_name, order=order, by=by, document_id=slot.document_id
            )
            return accepted.document

        return Document.of(await run_in_threadpool(accept))


@routes.api_route("/uploads/{token}", methods=["GET", "HEAD", "POST", "PATCH", "DELETE"], include_in_schema=False)
@public
async def wrong_method(token: str) -> None:
    """A link is good for what it was made for."""
    raise LinkRefused("The link is good for PUT only.")
