"""`docmill eval` as a service: a labelled folder is processed as any folder is, and held against its labels.

It happens in an installation of its own, in a temporary folder that is removed at the end: measuring leaves no
documents and no results behind. Learned models and schemas are those of the installation it stands in for.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from docmill.extraction.ground_truth import FILE_NAME, Known, Labelled, LabelsInvalid, check_names, read_labels
from docmill.extraction.schema import available, load_schema
from docmill.extraction.schema_text import SchemaInvalid
from docmill.extraction.scoring import COUNTS, DocumentScore, Summary, score_document, summarise
from docmill.model.errors import NotFound

if TYPE_CHECKING:
    from docmill.documents.reading import Reading
    from docmill.extraction.result import Extraction
    from docmill.extraction.schema import FieldSchema
    from docmill.settings import Settings

_SHARED = ("models", "schemas")
"""Folders of the home folder that decide how documents are read."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one document."""

    extraction: "Extraction | None"
    error: tuple[str, str] | None = None
    """The code and the message of what went wrong."""
    reading: "Reading | None" = None
    """Only if it was asked for."""


@dataclass(frozen=True, kw_only=True)
class Processed:
    """A folder as it was processed."""

    documents: "Mapping[str, Outcome]"
    """By the file of their row."""
    schemas: "Mapping[str, FieldSchema]"
    """By name, those that were used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledFolder:
    """A folder of documents with their labels."""

    path: Path
    rows: tuple[Labelled, ...]

    def file(self, row: Labelled) -> Path:
        """Where the document of a row lies."""
        return self.path / row.file


def open_folder(path: Path) -> LabelledFolder:
    """The labels of a folder, their files made sure of; LabelsInvalid or NotFound says what is missing."""
    if not path.is_dir():
        raise NotFound(f"There is no folder {path}. Name one that holds {FILE_NAME} and the documents it speaks of.")
    file = path / FILE_NAME
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise LabelsInvalid(
            f"{path} has no {FILE_NAME}. Write one, a line for each document: "
            '{"file": "scan.pdf", "fields": {"total": "12.50"}}'
        ) from None
    except UnicodeDecodeError as error:
        raise LabelsInvalid(f"{file} is not UTF-8: {error.reason} at byte {error.start}. Save it as UTF-8.") from None
    rows = read_labels(text, source=str(file), exists=lambda name: (path / name).is_file())
    return LabelledFolder(path=path, rows=rows)


def check_labels(folder: LabelledFolder, asked: str | None, schemas: Sequence[Path]) -> None:
    """Make sure that the labels name fields of the schema they are read by; of any, where the document's type decides.

    LabelsInvalid names those that do not, before anything is processed.
    """

    @lru_cache
    def known(name: str | None) -> Known:
        found = [load_schema(name, schemas)] if name is not None else list(_all_schemas(schemas))
        names = {each for schema in found for each in (*schema.fields, *COUNTS)}
        aliases = {alias for schema in found for field in schema.fields.values() for alias in field.aliases}
        return Known(
            holds=lambda label: label in COUNTS or any(schema.resolve(label) is not None for schema in found),
            names=sorted(names | aliases),
            shown=sorted(names),
        )

    check_names(folder.rows, lambda row: known(asked or row.schema), str(folder.path / FILE_NAME))


def _all_schemas(folders: Sequence[Path]) -> "Iterator[FieldSchema]":
    for name in available(folders):
        # One that nobody can read by has no say in what labels are called.
        with suppress(SchemaInvalid):
            yield load_schema(name, folders)


@contextmanager
def apart(settings: "Settings") -> "Iterator[Settings]":
    """Settings of an installation of its own that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="docmill-eval-"))
    try:
        for name in _SHARED:
            own = settings.home / name
            if own.is_dir():
                (folder / name).symlink_to(own.absolute(), target_is_directory=True)
        fresh = {
            "home": folder,
            "database_url": None,
            "storage": type(settings.storage)(),
            "output": settings.output.model_copy(update={"root": None}),
            "retention": type(settings.retention)(),
        }
        yield settings.model_copy(update=fresh)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def score(folder: LabelledFolder, processed: Processed) -> tuple[Sequence[DocumentScore], Summary]:
    """The score of every document of the folder, and of all together."""
    scores = []
    for row in folder.rows:
        found = processed.documents[row.file]
        schema = None if found.extraction is None else processed.schemas.get(found.extraction.schema)
        scores.append(score_document(row, found.extraction, schema, error=found.error))
    return scores, summarise(scores)


def by_schema(folder: LabelledFolder, asked: str | None) -> dict[str | None, list[Labelled]]:
    """The rows by the schema they are to be read by: the one asked for, their own, or none for that of their type."""
    found: dict[str | None, list[Labelled]] = {}
    for row in folder.rows:
        found.setdefault(asked or row.schema, []).append(row)
    return found
