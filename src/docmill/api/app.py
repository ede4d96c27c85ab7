"""The API put together: one FastAPI application over one installation."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from docmill import __version__
from docmill.api import problems
from docmill.api.access import Authenticator, Guarded, needs
from docmill.api.limiting import Limiter
from docmill.api.places import Places
from docmill.api.routes import (
    analytics,
    audit,
    batches,
    blobs,
    callbacks,
    configuration,
    documents,
    events,
    exports,
    health,
    issues,
    jobs,
    keys,
    members,
    prompts,
    review,
    search,
    session,
    templates,
    uploads,
    webhooks,
)
from docmill.api.safety import Safety
from docmill.api.streams import Streams
from docmill.bootstrap import App
from docmill.model.people import Permission

PREFIX = "/api/v1"
_THREADS = {"sqlite": 10, "postgresql": 20}
"""Requests that are worked on at once: each needs a connection, and its pool has so many besides those of exports and
streams."""
_EXPORTS = 2
"""Exports that are written at once; the others wait, and hold no thread."""
_UPLOADS = 32
"""Uploads that are read at once; the others wait for a place."""
_NOUNS = (
    *(uploads, documents, search, jobs, callbacks, batches, templates, prompts),
    *(review, issues, exports, configuration, events),
    *(webhooks, analytics, session, members, keys, audit, health),
)
"""Modules of routes, in the order in which the document lists them."""


def create_app(app: App, authenticator: Authenticator) -> FastAPI:
    """The application that serves this installation; whoever knows people is given."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS[app.database.kind]
        yield

    settings = app.settings.api
    api = FastAPI(
        title="Docmill",
        version=__version__,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        routes=list(_routes()),
    )
    api.state.docmill = app
    api.state.authenticator = authenticator
    api.state.limiter = Limiter(rate=settings.rate, burst=settings.burst, clock=time.monotonic)
    api.state.max_body = settings.max_body
    api.state.places = Places(_UPLOADS)
    api.state.exporting = anyio.CapacityLimiter(_EXPORTS)
    api.state.streams = Streams(settings.max_streams)
    problems.install(api)
    api.add_middleware(Safety, hosts=settings.hosts, origins=settings.origins, public_url=settings.public_url)
    api.openapi = lambda: _described(api)  # type: ignore[method-assign]
    return api


@cache
def _routes() -> Sequence[BaseRoute]:
    """The routes of every application: what they take and give is worked out at the first request of a process."""
    whole = APIRouter()
    for noun in _NOUNS:
        whole.include_router(noun.routes, prefix=PREFIX, responses=_PROBLEMS)
    whole.include_router(blobs.routes)
    return whole.routes


_PROBLEM: dict[str, Any] = {
    "description": "What went wrong.",
    "content": {problems.MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}


def _described(api: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: every operation with the permission that it needs, every error as a problem."""
    if api.openapi_schema is not None:
        return api.openapi_schema
    found = get_openapi(
        title=api.title,
        version=api.version,
        routes=api.routes,
        description="Documents in, reviewed data out. Errors are problem documents (RFC 9457).",
    )
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    problem = problems.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs", {})
    schemas["Problem"] = problem
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for noun in _NOUNS:
        for route in noun.routes.routes:
            if isinstance(route, Guarded):
                _secure(found["paths"].get(PREFIX + route.path_format, {}), route)
    api.openapi_schema = found
    return found


def nouns() -> Sequence[APIRouter]:
    """The routers, for whoever looks through all routes."""
    return [noun.routes for noun in _NOUNS]


def _secure(operations: dict[str, Any], route: APIRoute) -> None:
    permission = needs(route.endpoint)
    for method in route.methods or ():
        operation = operations.get(method.lower())
        if operation is None:
            continue
        # Ours are problem documents, as 4XX says.
        operation["responses"].pop("422", None)
        if permission is not None:
            operation["security"] = [{"token": []}]
        if isinstance(permission, Permission):
            operation["x-permission"] = permission.value
