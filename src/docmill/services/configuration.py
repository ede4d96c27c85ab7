"""Looking over what is set: the settings themselves, the field schemas they lead to, and whether both fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from docmill.extraction.overrides import Overrides, faults_for
from docmill.extraction.schema import available, load_schema, parsed_schema, schema_bytes, schema_file
from docmill.extraction.schema_text import SchemaInvalid
from docmill.model.errors import DocmillError
from docmill.settings import Settings

if TYPE_CHECKING:
    from docmill.extraction.schema import FieldSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found."""

    schemas: tuple[str, ...]
    """Those that can be used."""
    mistakes: tuple[str, ...]
    """Each with its place and remedy."""


def look_over(settings: Settings, overrides: Overrides, *, asked: str | None = None) -> Looked:
    """Check everything that the settings lead to, and list all that is wrong.

    `asked` is a schema that somebody names besides, perhaps by the path of a file in no folder of the settings.
    """
    mistakes = [*_folders(settings.schemas, settings.schema_folders)]
    schemas: dict[str, FieldSchema] = {}
    for name in available(settings.schema_folders):
        try:
            schemas[name] = load_schema(name, settings.schema_folders)
        except SchemaInvalid as error:
            source = error.details.get("source", name)
            mistakes += [f"{source}: {fault}" for fault in error.faults]
        except DocmillError as error:
            mistakes.append(error.message)
    path = None if asked is None else schema_file(asked, settings.schema_folders)
    if path is not None:
        own = parsed_schema(path, schema_bytes(path))
        schemas[own.name] = own
    mistakes += _strangers(schemas, overrides)
    for schema in schemas.values():
        mistakes += faults_for(schema, overrides)
    return Looked(schemas=tuple(schemas), mistakes=tuple(mistakes))


def _folders(named: Sequence[Path], folders: Sequence[Path]) -> Iterator[str]:
    """Folders that are named and not there; the one under home may lack."""
    for written, folder in zip(named, folders, strict=False):
        if not folder.is_dir():
            yield f"schemas: {str(written)!r} is no folder ({folder}). Make it, or correct its name."


def _strangers(schemas: "dict[str, FieldSchema]", overrides: Overrides) -> Iterator[str]:
    """Schemas and rules that the settings speak of and nobody has."""
    for name in overrides.fields:
        if name not in schemas:
            yield f"fields.{name}: there is no such schema.{_meant(name, schemas)}"
    everywhere = sorted({rule.name for schema in schemas.values() for rule in schema.rules})
    for name in overrides.rules:
        owner, dot, rule = name.rpartition(".")
        known = [each.name for each in schemas[owner].rules] if owner in schemas else everywhere
        if dot and owner not in schemas:
            yield f"validation.rules.{name}: there is no schema {owner!r}.{_meant(owner, schemas)}"
        elif rule not in known:
            yield f"validation.rules.{name}: there is no such rule.{_meant(rule, known)}"


def _meant(name: str, known: "Sequence[str] | dict[str, FieldSchema]") -> str:
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]}?" if close else f" Known: {', '.join(known)}."
