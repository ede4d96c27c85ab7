"""The output files of one document, written while it is processed."""

import gzip
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from docmill.extraction.result import Extraction
from docmill.model.errors import DocmillError
from docmill.outputs.files import put
from docmill.outputs.layout import layout_of
from docmill.outputs.parquet import Compression, write_rows
from docmill.outputs.places import OutputFormat, OutputSettings
from docmill.outputs.records import DocumentFacts, document_json, document_row

if TYPE_CHECKING:
    from docmill.extraction.schema import FieldSchema


def write(
    extraction: Extraction,
    document: DocumentFacts,
    settings: OutputSettings,
    at: datetime,
    *,
    schema: "FieldSchema | None" = None,
) -> tuple[Path, ...]:
    """Write the files of a document and return their paths, JSON first.

    `at` is the moment whose day stands in the paths: that at which the document came in, so that writing again replaces
    the same files. Their names hold the document's id, so no other document has them. The schema gives columns their
    types; without it, it is looked up by the name that the extraction has.
    """
    content = {
        OutputFormat.JSON: lambda: _json(extraction, document, settings),
        OutputFormat.PARQUET: lambda: _parquet(extraction, document, settings, schema),
    }
    files = [
        (settings.path(kind, id=document.id, org_id=document.org_id, at=at), content[kind]())
        for kind in OutputFormat
        if kind in settings.formats
    ]
    if files:
        put(files, atomic=settings.atomic)
    return tuple(path for path, _ in files)


def _json(extraction: Extraction, document: DocumentFacts, settings: OutputSettings) -> bytes:
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    content = orjson.dumps(document_json(document, extraction), option=options)
    # Without a time in its header: the same document gives the same bytes.
    return gzip.compress(content, 6, mtime=0) if settings.json_compression == "gzip" else content


def _parquet(
    extraction: Extraction, document: DocumentFacts, settings: OutputSettings, schema: "FieldSchema | None"
) -> bytes:
    # Of a document that nothing was extracted from, its facts alone.
    found = None
    if extraction.schema:
        found = schema or _schema_of(extraction.schema, extraction.schema_version, settings.schema_folders)
    layout = layout_of(found, extraction)
    row = document_row(document, extraction, layout)
    if settings.parquet_compression in tuple(Compression):
        return write_rows(layout.columns, [row], Compression(settings.parquet_compression))
    from docmill.outputs.duck import recompressed

    return recompressed(write_rows(layout.columns, [row]), settings.parquet_compression)


@lru_cache(maxsize=64)
def _schema_of(name: str, version: str, folders: tuple[Path, ...]) -> "FieldSchema | None":
    """The schema of this name; read again whenever documents come with another version of it."""
    from docmill.extraction.schema import load_schema

    try:
        return load_schema(name, folders)
    except DocmillError:
        # Gone or broken since: what was found is written all the same, as text.
        return None
