"""Prompts: store versions, look, check, compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.etags import Onto, etag
from docmill.api.shapes import Name, Text, Version, Wire
from docmill.model.people import Permission
from docmill.prompts.store import Prompt, PromptVersion
from docmill.prompts.syntax import PromptFault, check

routes = APIRouter(prefix="/prompts", tags=["prompts"], route_class=Guarded)

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
Wording = Annotated[Text, Field(min_length=1, max_length=1 << 20)]


class PromptText(Wire):
    """What a model is asked, with `{!entity.field}` where values come in."""

    text: Wording
    description: Annotated[Text, Field(max_length=500)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChecked:
    """Whether a text can be used, and everything to mend if not."""

    valid: bool
    faults: Sequence[PromptFault]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptStored:
    """What became of a prompt that was put."""

    prompt: PromptVersion
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDifference:
    """Two versions, and a unified diff between them."""

    old: PromptVersion
    new: PromptVersion
    text: str


@routes.get("")
@allowed(Permission.PROMPTS_READ)
def list_prompts(call: Acting) -> Sequence[PromptVersion]:
    """The newest version of every prompt, by name."""
    return call.org.prompts.list()


@routes.post("/validate")
@allowed(Permission.PROMPTS_READ)
def validate(body: PromptText, call: Acting) -> PromptChecked:
    """Check a text without storing it."""
    faults = check(body.text)
    return PromptChecked(valid=not faults, faults=faults)


@routes.get("/{name}")
@allowed(Permission.PROMPTS_READ)
def get_prompt(name: Name, call: Acting, response: Response) -> Prompt:
    """The newest version; also by the id of a version."""
    found = call.org.prompts.get(name)
    etag(response, found.version)
    return found


@routes.put("/{name}")
@allowed(Permission.PROMPTS_WRITE)
def put_prompt(name: Name, body: PromptText, call: Acting, response: Response, onto: Onto) -> PromptStored:
    """Store it as the newest version of one's own, unless that says the same. A new one needs no `If-Match`."""
    stored = call.org.prompts.by(call.principal).put(
        name,
        body.text,
        description=body.description,
        created_by=call.principal.id,
        onto=onto,
    )
    etag(response, stored.prompt.version)
    return PromptStored(prompt=stored.prompt, new=stored.new)


@routes.get("/{name}/versions")
@allowed(Permission.PROMPTS_READ)
def versions(name: Name, call: Acting) -> Sequence[PromptVersion]:
    """All versions, the newest first."""
    return call.org.prompts.versions(name)


@routes.get("/{name}/versions/{version}")
@allowed(Permission.PROMPTS_READ)
def get_version(name: Name, version: Number, call: Acting, response: Response) -> Prompt:
    """One version."""
    found = call.org.prompts.get(name, version)
    etag(response, found.version)
    return found


@routes.get("/{name}/diff")
@allowed(Permission.PROMPTS_READ)
def diff(
    name: Name,
    call: Acting,
    old: Annotated[Version | None, Query()] = None,
    new: Annotated[Version | None, Query()] = None,
) -> PromptDifference:
    """What changed between two versions; by default between the newest and the one before it."""
    found = call.org.prompts.diff(name, old, new)
    return PromptDifference(old=found.old, new=found.new, text=found.text)
