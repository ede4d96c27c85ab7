"""Process templates: store versions, look, check, compare."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from docmill.api.access import Acting, Call, Guarded, allowed
from docmill.api.etags import Onto, etag
from docmill.api.shapes import Name, Text, Version, Wire
from docmill.model.errors import InvalidInput
from docmill.model.people import Permission
from docmill.services.templates import TemplateSummary, TemplateVersion, VersionSummary
from docmill.templates.compare import Change, compare
from docmill.templates.compile import CompiledTemplate, compile_template
from docmill.templates.faults import Fault, TemplateInvalid

routes = APIRouter(prefix="/templates", tags=["templates"], route_class=Guarded)

Yaml = Annotated[Text, Field(min_length=1, max_length=1 << 20, description="The template as YAML.")]
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


class TemplateText(Wire):
    """A template as people write it."""

    text: Yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateOut:
    """A version with all that it says, every default written out."""

    template: TemplateVersion
    definition: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Whether a template can be used, and everything to mend if not."""

    valid: bool
    faults: Sequence[Fault]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStored:
    """What became of a template that was put."""

    template: TemplateVersion
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateDifference:
    """What changed from one version to another."""

    old: TemplateVersion
    new: TemplateVersion
    changes: Sequence[dict[str, Any]]
    text: Sequence[str]


def _compiled(call: Call, text: str) -> CompiledTemplate:
    return compile_template(text, catalogue=call.org.catalogue, source="body.text")


@routes.get("")
@allowed(Permission.TEMPLATES_READ)
def list_templates(call: Acting) -> Sequence[TemplateSummary]:
    """Every template, by name."""
    return call.org.templates.list()


@routes.post("/validate")
@allowed(Permission.TEMPLATES_READ)
def validate(body: TemplateText, call: Acting) -> Checked:
    """Check a template without storing it; every fault with its line."""
    try:
        _compiled(call, body.text)
    except TemplateInvalid as error:
        return Checked(valid=False, faults=error.faults)
    return Checked(valid=True, faults=())


@routes.get("/{name}")
@allowed(Permission.TEMPLATES_READ)
def get_template(name: Name, call: Acting, response: Response) -> TemplateOut:
    """The newest version."""
    return _shown(call, call.org.templates.find(name), response)


@routes.put("/{name}")
@allowed(Permission.TEMPLATES_WRITE)
def put_template(name: Name, body: TemplateText, call: Acting, response: Response, onto: Onto) -> TemplateStored:
    """Store it as the newest version, unless the newest says the same already. A new template needs no `If-Match`."""
    compiled = _compiled(call, body.text)
    if compiled.plan.name != name:
        raise InvalidInput(
            f"The template calls itself {compiled.plan.name!r}, not {name!r}; make both the same.", field="body.text"
        )
    stored = call.org.templates.by(call.principal).add(compiled, onto=onto)
    etag(response, stored.template.version)
    return TemplateStored(template=stored.template, new=stored.new)


@routes.get("/{name}/versions")
@allowed(Permission.TEMPLATES_READ)
def versions(name: Name, call: Acting) -> Sequence[VersionSummary]:
    """All versions, the newest first."""
    return call.org.templates.versions(name)


@routes.get("/{name}/versions/{version}")
@allowed(Permission.TEMPLATES_READ)
def get_version(name: Name, version: Number, call: Acting, response: Response) -> TemplateOut:
    """One version."""
    return _shown(call, call.org.templates.find(name, version), response)


@routes.get("/{name}/diff")
@allowed(Permission.TEMPLATES_READ)
def diff(
    name: Name,
    call: Acting,
    old: Annotated[Version | None, Query()] = None,
    new: Annotated[Version | None, Query()] = None,
) -> TemplateDifference:
    """What changed between two versions; by default between the newest and the one before it."""
    after = call.org.templates.find(name, new)
    if old is None and after.version == 1:
        raise InvalidInput(
            f"The template {name!r} has no version before 1; say which two to compare.", field="query.old"
        )
    before = call.org.templates.find(name, after.version - 1 if old is None else old)
    changes: Sequence[Change] = compare(call.org.templates.plan(before.id), call.org.templates.plan(after.id))
    return TemplateDifference(
        old=before,
        new=after,
        changes=[asdict(change) for change in changes],
        text=[str(change) for change in changes],
    )


def _shown(call: Call, template: TemplateVersion, response: Response) -> TemplateOut:
    etag(response, template.version)
    return TemplateOut(template=template, definition=dict(call.org.templates.document(template.id)))
