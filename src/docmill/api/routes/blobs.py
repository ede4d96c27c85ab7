"""Bytes by signed, expiring links: whoever holds one needs nothing else."""

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse

from docmill.api.access import Guarded, Installation, public
from docmill.bootstrap.clock import this_moment
from docmill.documents.links import PREFIX

routes = APIRouter(tags=["blobs"], route_class=Guarded)


@routes.api_route(PREFIX + "{key}", methods=["GET", "HEAD", "PUT", "POST", "DELETE"], include_in_schema=False)
@public
def blob(key: str, request: Request, app: Installation) -> FileResponse:
    """The bytes of a link that is neither altered nor expired, for the method that it was made for."""
    now = this_moment()
    method = "GET" if request.method == "HEAD" else request.method
    found = app.links.check(f"{PREFIX}{key}?{request.url.query}", method=method, now=now)
    path = app.blobs.path_of(found)
    return FileResponse(path, media_type="application/octet-stream", headers={"Content-Disposition": "attachment"})
