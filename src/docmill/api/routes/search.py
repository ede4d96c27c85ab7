"""Search: documents by the words in them."""

from typing import Annotated

from fastapi import APIRouter, Query

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.routes.documents import Document
from docmill.api.shapes import Cursor, Limit, Page, page_of
from docmill.model.people import Permission

routes = APIRouter(prefix="/search", tags=["search"], route_class=Guarded)


@routes.get("")
@allowed(Permission.DOCUMENTS_READ)
def search(
    call: Acting,
    q: Annotated[str, Query(min_length=1, max_length=500, description="Words; the last may be a beginning.")],
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[Document]:
    """Documents with all of these words in their text, values or name; the newest first."""
    shown, following = page_of(
        "search",
        cursor,
        limit,
        lambda before, most: call.org.search.find(q, before=before, limit=most),
        lambda record: record.id,
    )
    return Page(items=[Document.of(record) for record in shown], next_cursor=following)
