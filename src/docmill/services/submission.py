"""What a person gives to submit a job, checked before it becomes one. Pure; every edge submits through here."""

import re
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from docmill.engine.batch import MOST_NAMED, NewJob
from docmill.engine.context import to_json
from docmill.model.errors import InvalidInput, NotFound, PermanentError
from docmill.model.ids import DEFAULT_ORG, derived_id, is_id, new_id
from docmill.services.templates import TemplateVersion

MAX_TEXT = 1_000
MAX_KEY = 255
MAX_METADATA = 256 * 1024
PRIORITIES = range(-100, 101)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}", re.ASCII)


def new_job(
    template: TemplateVersion,
    entity: str,
    *,
    job_id: str | None = None,
    idempotency_key: str | None = None,
    title: str = "",
    priority: int = 0,
    metadata: Mapping[str, object] | None = None,
    file_type: str | None = None,
    created_by: str | None = None,
    org_id: str = DEFAULT_ORG,
) -> NewJob:
    """The job to submit for `entity` (`type:id`); InvalidInput says what is wrong and how to write it.

    With an idempotency key the job's id follows from the organisation and the key, so that submitting the same again
    is submitting it once.
    """
    if job_id is not None and idempotency_key is not None:
        raise InvalidInput("A job is known by an id of yours or by an idempotency key, not by both.")
    entity_type, entity_id = _entity(entity, template)
    if priority not in PRIORITIES:
        raise InvalidInput(
            f"The priority {priority} is not between {PRIORITIES[0]} and {PRIORITIES[-1]}.", field="priority"
        )
    return NewJob(
        template_id=template.id,
        org_id=org_id,
        entity_type=entity_type,
        entity_id=entity_id,
        id=_id(org_id, job_id, idempotency_key),
        priority=priority,
        title=checked_text("title", title),
        metadata=checked_metadata(metadata or {}),
        file_type=None if file_type is None else checked_text("file type", file_type),
        created_by=created_by,
    )


def keyed_id(org_id: str, key: str) -> str:
    """The id of the job that this organisation submits under this idempotency key."""
    if not key.strip() or len(key) > MAX_KEY or not _storable(key):
        raise InvalidInput(f"An idempotency key is 1 to {MAX_KEY} characters of text.")
    return derived_id("job", org_id, key)


def _id(org_id: str, job_id: str | None, key: str | None) -> str:
    if key is not None:
        return keyed_id(org_id, key)
    return new_id() if job_id is None else checked_id(job_id)


def checked_id(text: str, what: str = "job") -> str:
    """The id in its canonical form."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise InvalidInput(f"{text!r} is not a {what} id; write a UUID, or leave it out to get one.") from None


def entity_of(text: str, *, example: str = "document:42") -> tuple[str, str]:
    """Type and id of the entity that a person names as `type:id`."""
    entity_type, colon, entity_id = text.partition(":")
    if not colon or not entity_id or not _TYPE.fullmatch(entity_type):
        raise InvalidInput(f"{text!r} does not name an entity; write TYPE:ID, such as {example}.", field="entity")
    return entity_type, checked_text("entity id", entity_id)


def _entity(entity: str, template: TemplateVersion) -> tuple[str, str]:
    entity_type, entity_id = entity_of(entity, example=f"{template.processable_type}:42")
    if entity_type != template.processable_type:
        raise InvalidInput(
            f"The template {template.name!r} processes {template.processable_type}, not {entity_type}; "
            f"write {template.processable_type}:{entity_id} or choose another template.",
            field="entity",
        )
    return entity_type, entity_id


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
        raise InvalidInput(f"The metadata cannot be stored: {error}.", field="metadata") from error
    if _NUL.search(text):
        raise InvalidInput("The metadata holds a NUL character, which cannot be stored.", field="metadata")
    if len(text) > MAX_METADATA:
        raise InvalidInput(f"The metadata has {len(text):,} bytes; {MAX_METADATA:,} are allowed.", field="metadata")
    return dict(value)


def check_job(job: NewJob) -> None:
    """Refuse what no database would take, however the job was made."""
    if not is_id(job.template_id):
        raise NotFound(f"There is no process template version with id {job.template_id}.", template_id=job.template_id)
    for name, value in (("id", job.id), ("org_id", job.org_id), ("parent_job_id", job.parent_job_id)):
        if value is not None and not is_id(value):
            raise InvalidInput(
                f"The {name} of a job is a UUID in lower case, not {value!r}; `derived_id` makes one of any text.",
                field=name,
            )
    for name in ("entity_type", "entity_id", "title", "file_type", "created_by"):
        if "\0" in (getattr(job, name) or ""):
            raise InvalidInput(f"The {name} of a job contains a NUL character, which databases refuse.", field=name)
    try:
        to_json(job.metadata, "the metadata of a job")
    except PermanentError as error:
        raise InvalidInput(error.message, field="metadata") from error


def check_entities(new_jobs: Sequence[NewJob]) -> None:
    """Each entity once per template: it could have only one active job anyway."""
    entities = {job.id: (job.template_id, job.entity_type, job.entity_id) for job in new_jobs}
    twice = [f"{kind}:{name}" for (_, kind, name), number in Counter(entities.values()).items() if number > 1]
    if twice:
        more = f" and {len(twice) - MOST_NAMED:,} more" if len(twice) > MOST_NAMED else ""
        raise InvalidInput(
            f"Entities are given more than once: {', '.join(twice[:MOST_NAMED])}{more}. Give each once.",
            field="entities",
            entities=twice,
        )
