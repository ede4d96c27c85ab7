"""Field schemas: which fields a kind of document has, what they look like, and what must hold between them.

A schema is a YAML file (docs/reference/schemas.md). Those shipped lie in `docmill/extraction/schemas`; a folder of
one's own comes first, so that a file of the same name replaces a shipped one.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from docmill.extraction.rules import Rule
from docmill.extraction.values.kinds import FieldType
from docmill.model.errors import NotFound

SUFFIXES = (".yaml", ".yml")
_SHIPPED = "docmill.extraction.schemas"

THRESHOLD = 0.8
"""Confidence that is enough where a schema does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field, or one column of a table."""

    name: str
    type: FieldType
    title: str
    labels: tuple[str, ...] = ()
    """Words that are printed beside it, in any language."""
    phrases: tuple[str, ...] = ()
    """Words with which the value itself begins, for free text without a label: `payable within`."""
    aliases: tuple[str, ...] = ()
    """Other names for it, in labels of documents and answers of models."""
    pattern: str | None = None
    """A regular expression (RE2) that the whole value must match."""
    enum: tuple[str, ...] = ()
    minimum: Decimal | None = None
    maximum: Decimal | None = None
    threshold: float = THRESHOLD
    """Confidence below which a person should look at it."""
    required: bool = False
    """Without it, nobody can approve the document."""
    printed: bool = True
    """False for what is not on the page and only an e-invoice knows."""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A field with rows."""

    name: str
    title: str
    columns: Mapping[str, Field]
    labels: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    required: bool = False
    threshold: float = THRESHOLD
    description: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class FieldSchema:
    """Everything that is asked of one kind of document. Two of the same name and content are equal."""

    name: str
    version: str
    """A hash of the content: the same as long as the schema means the same."""
    title: str
    description: str = ""
    fields: Mapping[str, Field]
    tables: Mapping[str, Table] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    tolerance: Decimal = Decimal("0.02")
    """By how much numbers may differ in rules that do not say so themselves."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSchema) and (self.name, self.version) == (other.name, other.version)

    def __hash__(self) -> int:
        return hash((self.name, self.version))

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Fields and tables without which a document cannot be approved."""
        parts: Iterable[Field | Table] = (*self.fields.values(), *self.tables.values())
        return tuple(part.name for part in parts if part.required)

    @cached_property
    def _names(self) -> dict[str, str]:
        parts: list[Field | Table] = [*self.fields.values(), *self.tables.values()]
        aliases = {_plain(alias): part.name for part in parts for alias in part.aliases}
        return aliases | {_plain(part.name): part.name for part in parts}

    def resolve(self, name: str) -> str | None:
        """The field or table of this name or alias, however it is spelled; None if there is none."""
        return self._names.get(_plain(name))


def _plain(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def content_version(content: object) -> str:
    """A short hash of plain data that does not depend on the order of keys, comments or spacing."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def shipped() -> tuple[str, ...]:
    """Names of the schemas that come with Docmill; looked up once, because every document asks."""
    return tuple(sorted(Path(entry.name).stem for entry in files(_SHIPPED).iterdir() if _is_schema(entry.name)))


def available(folders: Iterable[Path] = ()) -> tuple[str, ...]:
    """Names of all schemas that `load_schema` finds: those of the folders, and those shipped."""
    own = {path.stem for folder in folders if folder.is_dir() for path in folder.iterdir() if _is_schema(path.name)}
    return tuple(sorted(own | set(shipped())))


def load_schema(name_or_path: str | Path, folders: Iterable[Path] = ()) -> FieldSchema:
    """A schema by name (looked for in `folders`, then among those shipped) or by the path of its file.

    NotFound if there is none; SchemaInvalid with every fault and its place if it cannot be used.
    """
    folders = tuple(folders)
    own = schema_file(name_or_path, folders)
    if own is not None:
        return parsed_schema(own, schema_bytes(own))
    text = str(name_or_path)
    if text in shipped():
        return _shipped(text)
    close = get_close_matches(text, available(folders), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise NotFound(
        f"There is no field schema {text!r}.{hint} Known: {', '.join(available(folders))}. "
        "Put a file of this name in a schema folder, or give the path of the file.",
        name=text,
    )


def schema_source(name: str, folders: Iterable[Path] = ()) -> bytes:
    """The YAML of a schema that `load_schema` finds by this name."""
    own = schema_file(name, tuple(folders))
    return files(_SHIPPED).joinpath(name + SUFFIXES[0]).read_bytes() if own is None else schema_bytes(own)


def packed_schemas(folders: Iterable[Path] = ()) -> bytes:
    """All schemas that there are, as jobs keep them: whatever is installed later, these are meant."""
    folders = tuple(folders)
    texts = {name: schema_source(name, folders).decode("utf-8", "surrogateescape") for name in available(folders)}
    return json.dumps(texts, sort_keys=True).encode()


def chosen_schema(name_or_path: str | Path, options: Mapping[str, Any]) -> FieldSchema:
    """As `load_schema`, by options: of the schemas that were kept with the job (`schema_set`), or in `schemas`."""
    kept = options.get("schema_set")
    found = None if kept is None else _unpacked(str(kept), str(name_or_path))
    return found or load_schema(name_or_path, [Path(folder) for folder in options.get("schemas", ())])


@lru_cache(maxsize=32)
def _unpacked(file: str, name: str) -> FieldSchema | None:
    # Known by its path alone: that of a blob says what is in it.
    from docmill.extraction.schema_text import parse_schema

    text = json.loads(Path(file).read_bytes()).get(name)
    return None if text is None else parse_schema(text, source=name, name=name)


def _is_schema(name: str) -> bool:
    return name.endswith(SUFFIXES)


def schema_file(name_or_path: str | Path, folders: Iterable[Path] = ()) -> Path | None:
    """The file that `load_schema` would read; None: one that is shipped, or none at all."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(SUFFIXES) or "/" in text or "\\" in text:
        return Path(text)
    files = (folder / (text + suffix) for folder in folders for suffix in SUFFIXES)
    return next((file for file in files if file.is_file()), None)


def schema_bytes(path: Path) -> bytes:
    """What stands in the file of a schema; NotFound if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFound(
            f"The field schema {path} cannot be read: {error.strerror}. Check the path and its permissions.",
            name=str(path),
        ) from None


def parsed_schema(path: Path, data: bytes) -> FieldSchema:
    """The schema that stands in the file; SchemaInvalid if it cannot be used."""
    from docmill.extraction.schema_text import parse_schema

    return parse_schema(data.decode("utf-8", errors="surrogateescape"), source=str(path), name=path.stem)


@lru_cache(maxsize=32)
def _shipped(name: str) -> FieldSchema:
    from docmill.extraction.schema_text import parse_schema

    text = files(_SHIPPED).joinpath(name + SUFFIXES[0]).read_text(encoding="utf-8")
    return parse_schema(text, source=f"{name}{SUFFIXES[0]} (shipped)", name=name)
