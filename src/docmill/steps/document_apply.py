"""The processors of documents and their loader, as they are declared; `document_rows` has what they do.

Apart, because a template is checked against the declarations, and checking one must not cost the import of a database
library.
"""

from collections.abc import Mapping
from typing import Any

from docmill.plugin import ApplyContext, Database, entity_loader, processor

SERVICE = "document"


@processor(SERVICE, "claim")
def claim(ctx: ApplyContext, result: Mapping[str, Any]) -> None:
    """The document is being processed; unless it is a duplicate, it is so for its key from now on, and it alone."""
    from docmill.steps import document_rows

    document_rows.claim(ctx, result)


@processor(SERVICE, "complete")
def complete(ctx: ApplyContext, result: Mapping[str, Any]) -> None:
    """The document is done, and its result answers for the same bytes from now on."""
    from docmill.steps import document_rows

    document_rows.complete(ctx, result)


@processor(SERVICE, "review_outputs")
def review_outputs(ctx: ApplyContext, result: Mapping[str, Any]) -> None:
    """The outputs say what a person decided, and the document's result too."""
    from docmill.steps import document_rows

    document_rows.review_outputs(ctx, result)


@entity_loader("document")
def load_document(db: Database, entity_id: str, org_id: str) -> Mapping[str, object] | None:
    """The document with all its columns, and what is known of its bytes."""
    from docmill.steps import document_rows

    return document_rows.load_document(db, entity_id, org_id)
