"""Whether the process lives, and whether it can do its work."""

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from docmill import __version__
from docmill.api.access import Acting, Guarded, Installation, known, public

routes = APIRouter(tags=["health"], route_class=Guarded)


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"


class Readiness(BaseModel):
    """The database answers, and has the schema of this release."""

    status: str
    database: bool
    schema_current: bool


class Version(BaseModel):
    """What runs here, and who asks."""

    version: str
    organisation: str
    principal: str = Field(description="The id: as `claimed_by`, `assigned_to` and the audit log name them.")
    name: str
    kind: str = Field(description="`user`, `key`, or `system` for the token of the installation.")
    role: str
    permissions: list[str]


@routes.get("/health")
@public
async def health() -> Health:
    """Whether the process lives."""
    return Health()


@routes.get("/ready")
@public
def ready(app: Installation, response: Response) -> Readiness:
    """Whether requests can be served; 503 if the database is away, or has not the schema of this release."""
    from docmill.db import schema

    current = app.revision() == schema.HEAD
    if not current:
        response.status_code = 503
    return Readiness(status="ready" if current else "schema_outdated", database=True, schema_current=current)


@routes.get("/me")
@known
async def me(call: Acting) -> Version:
    """Who the token stands for, and what it allows."""
    return Version(
        version=__version__,
        organisation=call.principal.org_id,
        principal=call.principal.id,
        name=call.principal.name,
        kind=call.principal.kind,
        role=call.principal.role.value,
        permissions=sorted(each.value for each in call.principal.scopes),
    )
