"""What a job that comes over the API may say of itself, checked before it is submitted.

The command line may say more: whoever sits at it may write to this machine's folders anyway.
"""

from collections.abc import Mapping, Sequence

from docmill.api.access import Call
from docmill.engine.context import STEP_MODELS
from docmill.model.errors import InvalidInput, NotFound
from docmill.model.ids import is_id
from docmill.services.rerunning import BEFORE
from docmill.steps.document_apply import load_document
from docmill.steps.document_ask import MODEL
from docmill.steps.document_extract import SCHEMA, SCHEMA_FILE, SCHEMA_SET
from docmill.steps.document_save import OUT

RESERVED = frozenset({OUT, SCHEMA, SCHEMA_FILE, SCHEMA_SET, MODEL, STEP_MODELS, BEFORE})
"""Keys of metadata by which Docmill tells its own steps of folders, blobs and models that it has checked."""
_DOCUMENT = "document"


def check_metadata(metadata: Mapping[str, object]) -> None:
    """Refuse what would be taken for Docmill's own word: InvalidInput names it."""
    taken = sorted(RESERVED & metadata.keys())
    if taken:
        raise InvalidInput(
            f"The metadata says {', '.join(taken)}, which only Docmill itself may say. Choose other names; schema and "
            "model are chosen when a document is uploaded.",
            field="body.metadata",
            keys=taken,
        )


def check_documents(call: Call, entities: Sequence[str]) -> None:
    """Documents must be the organisation's own; NotFound names the first that is not.

    Entities of other types, and documents that a plug-in loads, are the plug-in's to know.
    """
    named = [entity.partition(":") for entity in entities]
    ids = {name for kind, _, name in named if kind == _DOCUMENT and is_id(name)}
    if not ids or call.app.registry.loaders[_DOCUMENT].function is not load_document:
        return
    strange = ids - call.org.documents.known(sorted(ids))
    if strange:
        document_id = min(strange)
        raise NotFound(f"There is no document {document_id}; upload it first.", document_id=document_id)
