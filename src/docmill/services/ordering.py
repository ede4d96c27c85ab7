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

    `learned` tells sets of learned models apart: what one of them read does not answer for another. A schema that comes
    as a file is kept with the documents: what was asked for stays known when the file changes.
    """
    from docmill.extraction.schema import SUFFIXES, available, content_version, load_schema

    name = file = None
    if schema is None:
        version = content_version({each: load_schema(each, folders).version for each in available(folders)})
    else:
        found = load_schema(schema, folders)
        name, version = found.name, found.version
        if schema.endswith(SUFFIXES) or "/" in schema or "\\" in schema:
            file = blobs.put(io.BytesIO(Path(schema).read_bytes())).key
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

    The shipped one tries again as the policy says; under another policy it is another version.
    """
    from docmill.templates.compile import compile_template
    from docmill.templates.shipped import shipped_text

    shipped = compile_template(shipped_text(TEMPLATE), catalogue=catalogue, source=TEMPLATE)
    wanted = with_policy(shipped, policy or RetryPolicy())
    try:
        stored = templates.find(TEMPLATE)
    except NotFound:
        return templates.register(wanted)
    if stored.digest == wanted.digest or not differ_in_policy_only(templates.plan(stored.id), wanted.plan):
        return stored
    return templates.register(wanted)


def outputs_template(templates: Templates, catalogue: Catalogue) -> TemplateVersion:
    """The organisation's template for the outputs of reviewed documents: its own, or the shipped one."""
    from docmill.services.review_decisions import OUTPUTS
    from docmill.templates.compile import compile_template
    from docmill.templates.shipped import shipped_text

    try:
        return templates.find(OUTPUTS)
    except NotFound:
        return templates.register(compile_template(shipped_text(OUTPUTS), catalogue=catalogue, source=OUTPUTS))
