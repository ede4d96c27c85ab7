"""What runs in children: parsing, OCR and extraction, all of it on bytes that nobody has looked at before.

A child knows no database and no bucket. It gets paths, leaves its result on the shelf or as a file in the workshop, and
answers with the key that it has or will have. What it needs is imported when it is called: the worker, which imports
this too, never parses anything.
"""

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from docmill.documents.blobs import Workshop, leave, write_in
from docmill.documents.limits import Limits
from docmill.documents.reading import Reading, page_as_json, page_from_json
from docmill.engine.children import cpu_limited

if TYPE_CHECKING:
    from docmill.extraction.asking import Takes
    from docmill.extraction.result import Extraction
    from docmill.extraction.schema import FieldSchema
    from docmill.model.ai import Request
    from docmill.outputs.places import OutputSettings

_LEVEL = 1
"""Of compression: words and boxes shrink to a fifth at once, and to little less with patience."""

_PER_MEGABYTE = 5.0
"""CPU seconds that the outline of a file may take for each of its megabytes."""


def pack(value: object) -> bytes:
    """JSON, compressed: the same bytes for the same value."""
    return zlib.compress(orjson.dumps(value), _LEVEL)


def unpack(data: bytes) -> Any:
    """What `pack` was given."""
    return orjson.loads(zlib.decompress(data))


def warm() -> None:
    """Import what most documents need, before the first of them is there."""
    from docmill.documents import parsing
    from docmill.extraction import extracting
    from docmill.extraction.local import invoices
    from docmill.outputs import writing
    from docmill.review import fields

    del parsing, extracting, invoices, writing, fields


def begin(path: str, limits: Limits, workshop: Workshop) -> dict[str, Any]:
    """Everything but OCR: the whole reading, or an outline and the numbers of the pages that are still to be read."""
    from docmill.documents import parsing

    with cpu_limited(_cpu_seconds(path, limits)):
        outline = parsing.outline(path, limits)
    to_read = list(outline.needs_ocr)
    if not to_read:
        return {"to_read": [], **_stored(parsing.assemble(outline, ()), workshop)}
    file, _ = write_in(Path(workshop.folder), pack(outline.as_json()))
    return {"to_read": to_read, "outline": str(file)}


def _cpu_seconds(path: str, limits: Limits) -> int:
    """For the whole of a file: more for a large one, since a book of 2,000 pages takes its time; not without end."""
    megabytes = os.path.getsize(path) / (1 << 20)
    return min(3 * limits.cpu_seconds, limits.cpu_seconds + int(_PER_MEGABYTE * megabytes))


def page(path: str, number: int, limits: Limits, workshop: Workshop, reader: str) -> dict[str, str | None]:
    """One page, read by OCR. `reader` tells it from the same page as others read it: each deletes its own."""
    from docmill.documents import parsing

    with cpu_limited(limits.cpu_seconds):
        read = parsing.read_page(path, number, limits)
    found = {"reader": reader, "page": page_as_json(read)}
    return leave(pack(found), workshop)


def finish(outline: str, pages: Sequence[str], workshop: Workshop) -> dict[str, Any]:
    """The whole reading, from the outline and the pages that were read."""
    from docmill.documents import parsing

    file = Path(outline)
    begun = parsing.Outline.from_json(unpack(file.read_bytes()))
    read = [page_from_json(unpack(Path(page).read_bytes())["page"]) for page in pages]
    whole = _stored(parsing.assemble(begun, read), workshop)
    file.unlink(missing_ok=True)
    return whole


def _stored(reading: Reading, workshop: Workshop) -> dict[str, Any]:
    left = leave(pack(reading.as_json()), workshop)
    summary = {
        "format": reading.format.value,
        "pages": len(reading.pages),
        "sections": len(reading.sections),
        "structured": reading.invoice is not None,
        "notes": list(reading.notes)[:20],
    }
    return {**left, "summary": summary}


def load_reading(path: str | Path) -> Reading:
    """The reading in a blob."""
    return Reading.from_json(unpack(Path(path).read_bytes()))


def load_extraction(path: str | Path) -> "Extraction":
    """The extraction in a blob."""
    from docmill.extraction.result import Extraction

    return Extraction.from_json(unpack(Path(path).read_bytes()))


class SchemaText(NamedTuple):
    """A schema that came as a file: its name, and the blob with its YAML."""

    name: str
    file: str


def extract(
    reading: str, schema: str | SchemaText | None, options: Mapping[str, Any], workshop: Workshop
) -> dict[str, Any]:
    """The fields of a reading, without a model; without a schema, by the type of the document."""
    from docmill.extraction.extracting import extract as found_in

    return stored_extraction(found_in(load_reading(reading), _schema(schema), options), workshop)


def _schema(schema: str | SchemaText | None) -> "FieldSchema | str | None":
    return _parsed(schema.name, schema.file) if isinstance(schema, SchemaText) else schema


@lru_cache(maxsize=32)
def _parsed(name: str, file: str) -> "FieldSchema":
    # Known by its path alone: that of a blob says what is in it.
    from docmill.extraction.schema_text import parse_schema

    text = Path(file).read_text(encoding="utf-8", errors="surrogateescape")
    return parse_schema(text, source=name, name=name)


def _chosen(schema: str | SchemaText, options: Mapping[str, Any]) -> "FieldSchema":
    """A schema as this installation has it."""
    from docmill.extraction.overrides import apply_overrides
    from docmill.extraction.schema import FieldSchema, chosen_schema

    found = _schema(schema)
    if not isinstance(found, FieldSchema):
        found = chosen_schema(str(found), options)
    return apply_overrides(found, options.get("overrides"))


def question(
    reading: str, original: str, schema: str | SchemaText, options: Mapping[str, Any], limits: Limits, takes: "Takes"
) -> "Request":
    """What to ask a model about a document, in a form that it takes."""
    from docmill.extraction.asking import request_for

    data = Path(original).read_bytes()
    return request_for(load_reading(reading), _chosen(schema, options), data, limits=limits, takes=takes)


def understand(
    answer: str,
    reading: str,
    local: str,
    schema: str | SchemaText,
    options: Mapping[str, Any],
    workshop: Workshop,
    takes: "Takes" = "files",
) -> dict[str, Any]:
    """What a model's answer makes of a document, cross-checked with what was found without one."""
    from docmill.extraction.asking import from_answer
    from docmill.extraction.combining import combine
    from docmill.extraction.extracting import finish as judged

    read, asked = load_reading(reading), _chosen(schema, options)
    said = unpack(Path(answer).read_bytes())
    together = combine(from_answer(said, read, asked, takes=takes), load_extraction(local))
    return stored_extraction(judged(together, read, asked, options), workshop)


def keep(value: object, workshop: Workshop) -> dict[str, str | None]:
    """Leave any JSON value."""
    return leave(pack(value), workshop)


def stored_extraction(extraction: "Extraction", workshop: Workshop) -> dict[str, Any]:
    """Leave an extraction."""
    return {**leave(pack(extraction.as_json()), workshop), "summary": summary_of(extraction)}


def summary_of(extraction: "Extraction") -> dict[str, Any]:
    """What later steps and lists need to know of an extraction."""
    from docmill.extraction import same_paper

    return {
        "schema": extraction.schema or None,
        "schema_version": extraction.schema_version or None,
        "reader": extraction.reader.value,
        "document_type": extraction.document_type,
        "confidence": round(extraction.confidence, 4) if extraction.schema else None,
        "fields": len(extraction.fields),
        "failed_checks": [check.name for check in extraction.checks if not check.passed][:50],
        "passed_checks": sum(check.passed for check in extraction.checks),
        "known_by": same_paper.named(extraction),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the outputs say of a document. Not its record, which would bring a database library into every child."""

    id: str
    org_id: str
    file_name: str
    sha256: str | None
    format: str | None
    status: str
    duplicate_of: str | None
    locked: Mapping[str, Any]
    created_at: datetime


def save(
    extraction: str,
    document: Facts,
    settings: "OutputSettings",
    out: str | None,
    workshop: Workshop,
    schema: str | SchemaText | None = None,
    options: Mapping[str, Any] | None = None,
    earlier: tuple[str, str] | None = None,
    *,
    recheck: bool = False,
) -> dict[str, Any]:
    """Write the outputs of a document, with the values that people decided in their places.

    The day in their paths is the one when the document came in: it is the same at every attempt. A schema that came as
    a file is needed for the types of columns; others are found by name. With `options`, what reviewers are shown is
    answered too. The rules of the schema are held against decided values, with `recheck` in any case. `earlier` is the
    document that has the same paper.
    """
    from docmill.extraction import same_paper
    from docmill.extraction.checks import check
    from docmill.extraction.locking import with_locked
    from docmill.extraction.schema import FieldSchema
    from docmill.outputs.writing import write

    read = load_extraction(extraction)
    # Of a duplicate, what its original was told stands.
    same = None if earlier is None else same_paper.Earlier(*earlier)
    found = read if document.duplicate_of else same_paper.compared(read, same)
    kept = with_locked(found, document.locked)
    if (recheck or document.locked) and (known := _known_schema(schema or found.schema, options or {})) is not None:
        kept = check(kept, known)
    asked = _schema(schema)
    types = asked if isinstance(asked, FieldSchema) else None
    paths = write(kept, document, settings.into(out), document.created_at, schema=types)
    # Without a key: what was read stays what it is.
    answer = stored_extraction(kept, workshop) if kept is not read else {"summary": summary_of(read)}
    # Where no schema fits there are no fields, and nothing to review.
    review = None if options is None or recheck or not found.schema else _reviewed(found, schema, options)
    return {**answer, "outputs": [str(path) for path in paths], "review": review}


def named(extraction: str) -> dict[str, str] | None:
    """What an extraction says of that by which its paper is known."""
    from docmill.extraction import same_paper

    return same_paper.named(load_extraction(extraction))


def rewrite(
    extraction: str,
    document: Facts,
    settings: "OutputSettings",
    out: str | None,
    workshop: Workshop,
    schema: str | SchemaText | None,
    options: Mapping[str, Any],
    earlier: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """As `save`, once a person has decided: the rules are held against the decided values."""
    return save(extraction, document, settings, out, workshop, schema, options, earlier, recheck=True)


def _reviewed(found: "Extraction", schema: str | SchemaText | None, options: Mapping[str, Any]) -> dict[str, Any]:
    from docmill.review.fields import found_in

    return found_in(found, _known_schema(schema or found.schema, options)).as_json()


def _known_schema(schema: str | SchemaText, options: Mapping[str, Any]) -> "FieldSchema | None":
    """A schema as this installation has it; None if nobody has it any more."""
    from docmill.model.errors import NotFound

    try:
        return _chosen(schema, options)
    except NotFound:
        return None
