"""What is set, and which field schemas there are. Secrets are masked."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.shapes import Name
from docmill.model.errors import Forbidden, NotFound
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import Permission

routes = APIRouter(prefix="/configuration", tags=["configuration"], route_class=Guarded)


class SettingOut(BaseModel):
    """One setting, and where its value comes from."""

    name: str
    value: Any
    origin: str
    variable: str


class SchemaOut(BaseModel):
    """A field schema."""

    name: str
    version: str
    fields: list[str]
    tables: dict[str, list[str]]
    required: list[str]


@routes.get("")
@allowed(Permission.CONFIG_READ)
def configuration(call: Acting) -> list[SettingOut]:
    """Every setting that holds. Shown to administrators of the installation's own organisation."""
    from docmill.settings.origins import settings_now

    if call.org.id != DEFAULT_ORG:
        # Folders, hosts and buckets are the installation's, and other organisations are its guests.
        raise Forbidden("Settings are shown to administrators of the installation's own organisation.")

    return [
        SettingOut(name=one.name, value=one.value, origin=one.origin.value, variable=one.variable)
        for one in settings_now(call.app.settings)
    ]


@routes.get("/schemas")
@allowed(Permission.DOCUMENTS_READ)
def schemas(call: Acting) -> Sequence[str]:
    """Names of the field schemas that an upload may ask for."""
    from docmill.extraction.schema import available

    return available(call.app.settings.schema_folders)


@routes.get("/schemas/{name}")
@allowed(Permission.DOCUMENTS_READ)
def schema(name: Name, call: Acting) -> SchemaOut:
    """One schema: its fields and tables."""
    from docmill.extraction.schema import available, load_schema

    folders = call.app.settings.schema_folders
    if name not in available(folders):
        raise NotFound(f"There is no schema {name!r}.", name=name)
    found = load_schema(name, folders)
    return SchemaOut(
        name=found.name,
        version=found.version,
        fields=list(found.fields),
        tables={table: list(shape.columns) for table, shape in found.tables.items()},
        required=[each for each, shape in found.fields.items() if shape.required],
    )
