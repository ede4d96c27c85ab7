"""What a person gives to submit a job, checked before it becomes one. Pure; every edge submits through here."""

import re
import uuid
from collections.abc import Mapping
from typing import Any

import orjson

from docmill.engine.batch import NewJob
from docmill.model.errors import InvalidInput
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.services.templates import TemplateVersion

MAX_TEXT = 1_000
MAX_METADATA = 256 * 1024
PRIORITIES = range(-100, 101)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}", re.ASCII)


def new_job(
    template: TemplateVersion,
    entity: str,
    *,
    job_id: str | None = None,
    title: str = "",
    priority: int = 0,
    metadata: Mapping[str, object] | None = None,
    file_type: str | None = None,
    created_by: str | None = None,
    org_id: str = DEFAULT_ORG,
) -> NewJob:
    """The job to submit for `entity` (`type:id`); InvalidInput says what is wrong and how to write it."""
    entity_type, entity_id = _entity(entity, template)
    if priority not in PRIORITIES:
        raise InvalidInput(f"The priority {priority} is not between {PRIORITIES[0]} and {PRIORITIES[-1]}.")
    return NewJob(
        template_id=template.id,
        org_id=org_id,
        entity_type=entity_type,
        entity_id=entity_id,
        id=new_id() if job_id is None else checked_id(job_id),
        priority=priority,
        title=checked_text("title", title),
        metadata=checked_metadata(metadata or {}),
        file_type=None if file_type is None else checked_text("file type", file_type),
        created_by=created_by,
    )


def checked_id(text: str, what: str = "job") -> str:
    """The id in its canonical form."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise InvalidInput(f"{text!r} is not a {what} id; write a UUID, or leave it out to get one.") from None


def _entity(entity: str, template: TemplateVersion) -> tuple[str, str]:
    entity_type, colon, entity_id = entity.partition(":")
    if not colon or not entity_id or not _TYPE.fullmatch(entity_type):
        example = f"{template.processable_type}:42"
        raise InvalidInput(f"{entity!r} does not name an entity; write TYPE:ID, such as {example}.")
    if entity_type != template.processable_type:
        raise InvalidInput(
            f"The template {template.name!r} processes {template.processable_type}, not {entity_type}; "
            f"write {template.processable_type}:{entity_id} or choose another template."
        )
    return entity_type, checked_text("entity id", entity_id)


def checked_text(what: str, value: str) -> str:
    """The text, if every database can store it."""
    if len(value) > MAX_TEXT:
        raise InvalidInput(f"The {what} has {len(value):,} characters; {MAX_TEXT:,} are allowed.")
    if not _storable(value):
        raise InvalidInput(f"The {what} is not valid text: it holds a NUL or bytes that are not UTF-8.")
    return value


def _storable(value: str) -> bool:
    """PostgreSQL refuses NUL, everybody refuses half a character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def checked_metadata(value: Mapping[str, object]) -> dict[str, Any]:
    """The metadata, if every database can store it."""
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        raise InvalidInput(f"The metadata cannot be stored: {error}.") from error
    if _NUL.search(text):
        raise InvalidInput("The metadata holds a NUL character, which cannot be stored.")
    if len(text) > MAX_METADATA:
        raise InvalidInput(f"The metadata has {len(text):,} bytes; {MAX_METADATA:,} are allowed.")
    return dict(value)
