"""What a person asks of a run, made definite: the schema, the model, the template; wrong wishes are refused at once."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from docmill.documents.blobs import Blobs
from docmill.model.errors import InvalidInput, NotFound
from docmill.services.processing import TEMPLATE, Order
from docmill.services.retries import RetryPolicy, differ_in_policy_only, with_policy
from docmill.services.templates import Templates, TemplateVersion
from docmill.templates.catalogue import Catalogue

if TYPE_CHECKING:
    from docmill.extraction.overrides import Overrides


def order_of(
    *,
    schema: str | None,
    model: str | None,
    out: Path | None,
    blobs: Blobs,
    folders: Sequence[Path] = (),
    overrides: "Overrides | None" = None,
    learned: str = "",
) -> Order:
    """The order; NotFound or SchemaInvalid if there is no such schema.

    `learned` tells sets of learned models apart: what one of them read does not answer for another. Schemas are
    kept with the documents, the one that was named or all there are: the jobs read what was asked for, even if a file
    changes meanwhile, or another release ships others.
    """
    from docmill.extraction.schema import (
        available,
        content_version,
        load_schema,
        packed_schemas,
        parsed_schema,
        schema_bytes,
        schema_file,
        schema_source,
    )

    name = file = every = None
    if schema is None:
        version = content_version({each: load_schema(each, folders).version for each in available(folders)})
        every = blobs.put(io.BytesIO(packed_schemas(folders))).key
    else:
        path = schema_file(schema, folders)
        if path is None:
            found = load_schema(schema)
            data = schema_source(found.name)
        else:
            # What is checked, counted as the version and kept are the same bytes.
            data = schema_bytes(path)
            found = parsed_schema(path, data)
        file = blobs.put(io.BytesIO(data)).key
        name, version = found.name, found.version
    if overrides is not None and overrides.digest:
        # What the settings ask of the fields is part of what is asked.
        version = content_version([version, overrides.digest])
    if learned:
        version = content_version([version, learned])
    if out is not None and not _is_text(str(out.absolute())):
        raise InvalidInput("The name of the folder for the outputs is not UTF-8. Choose another one.")
    return Order(
        schema=name,
        schema_file=file,
        schema_set=every,
        schema_version=version,
        model=model,
        out=None if out is None else str(out.absolute()),
    )


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def processing_template(
    templates: Templates, catalogue: Catalogue, policy: RetryPolicy | None = None
) -> TemplateVersion:
    """The organisation's template for documents: its own, or the shipped one, stored at the first use.

    The shipped one tries again as the policy says; under another policy, and when another release ships another, it is
    another version. One that somebody has changed stays.
    """
    from docmill.templates.compile import compile_template
    from docmill.templates.shipped import shipped_text

    shipped = compile_template(shipped_text(TEMPLATE), catalogue=catalogue, source=TEMPLATE)
    wanted = with_policy(shipped, policy or RetryPolicy())
    try:
        stored = templates.find(TEMPLATE)
    except NotFound:
        return templates.register(wanted, shipped=True)
    untouched = templates.is_shipped(stored.id) or differ_in_policy_only(templates.plan(stored.id), wanted.plan)
    return templates.register(wanted, shipped=True) if untouched and stored.digest != wanted.digest else stored


def outputs_template(templates: Templates, catalogue: Catalogue) -> TemplateVersion:
    """The organisation's template for the outputs of reviewed documents: its own, or the shipped one."""
    from docmill.services.review_decisions import OUTPUTS
    from docmill.templates.compile import compile_template
    from docmill.templates.shipped import shipped_text

    wanted = compile_template(shipped_text(OUTPUTS), catalogue=catalogue, source=OUTPUTS)
    try:
        stored = templates.find(OUTPUTS)
    except NotFound:
        return templates.register(wanted, shipped=True)
    renewed = templates.is_shipped(stored.id) and stored.digest != wanted.digest
    return templates.register(wanted, shipped=True) if renewed else stored
