"""From labelled documents to examples of right and wrong values: what confidence is fitted on. Pure."""

from collections.abc import Mapping, Sequence

from docmill.extraction.calibrating import OPTIMISM, Example
from docmill.extraction.confidence import signals_of
from docmill.extraction.ground_truth import Labelled
from docmill.extraction.result import Extraction, Reader
from docmill.extraction.schema import FieldSchema
from docmill.extraction.scoring import COUNTS, score_document
from docmill.extraction.values import FieldType

DOUBTS: Mapping[FieldType, float] = {FieldType.TEXT: 0.06, FieldType.IDENTIFIER: 0.03}
"""By type, where more goes wrong than the labelled documents show: names are written in many ways, numbers in one."""
WELL_KNOWN: Mapping[str, float] = {"receipt": 0.0}
"""The doubt about schemas of which hundreds of senders are labelled: what goes wrong with them is shown, and doubt on
top of it made confidence say less than is right of senders not seen."""


def examples_of(labelled: Labelled, extraction: Extraction, schema: FieldSchema, *, group: str) -> list[Example]:
    """Every value that was found and has a label; the extraction must have been checked, its confidence is not used."""
    if extraction.reader is Reader.EINVOICE:
        return []
    score = score_document(labelled, extraction, schema)
    examples = []
    for judged in score.fields:
        name = schema.resolve(judged.field) or judged.field
        found = extraction.fields.get(name)
        if found is None or judged.field in COUNTS or not judged.visible:
            continue
        examples.append(
            Example(
                document=labelled.file,
                group=group or labelled.file,
                schema=schema.name,
                field=name,
                signals=signals_of(found),
                right=judged.exact,
                required=name in schema.required,
                doubt=WELL_KNOWN.get(schema.name, DOUBTS.get(schema.fields[name].type, OPTIMISM)),
            )
        )
    return examples


def group_of(labelled: Labelled) -> str:
    """Whose document it is: documents of one sender look alike and are never split between learning and measuring."""
    for name in ("seller_name", "company", "vendor_name", "merchant"):
        sender = labelled.fields.get(name)
        if sender:
            return " ".join(sender.casefold().split())
    return ""


def together(parts: Sequence[Sequence[Example]]) -> list[Example]:
    """All examples of several documents."""
    return [example for part in parts for example in part]
