"""A receipt read by the local reader: the fields that matter by learned rankers, the others by their labels."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from docmill.documents.reading import Reading, TextSource
from docmill.extraction.labelled import read_labelled
from docmill.extraction.local.candidates import Candidate, Knowledge, Target, closest, equal
from docmill.extraction.local.layout import Layout, lay_out
from docmill.extraction.local.ranker import Choice
from docmill.extraction.local.receipts.address import find_addresses
from docmill.extraction.local.receipts.amounts import Amounts, find_totals, label_amount
from docmill.extraction.local.receipts.company import find_companies
from docmill.extraction.local.receipts.days import find_days, label_day
from docmill.extraction.local.receipts.doubts import doubts
from docmill.extraction.local.receipts.items import read_items
from docmill.extraction.local.receipts.repair import change, learn_spelling, repaired_address, repaired_company
from docmill.extraction.local.receipts.taxes import settle
from docmill.extraction.local.training import Kind, Labelled, Model
from docmill.extraction.result import Extraction, FieldValue, Reader
from docmill.extraction.schema import FieldSchema

_ALIKE = 0.8
"""How much a candidate must resemble the label of a name or an address to be learned from."""
_RIVAL = 0.1
"""Probability from which another value is a rival."""
_ITEMS = "line_items"
_STRENGTH = 0.1
"""Of the pull on weights, where many weak signs tell candidates apart; totals have a few strong ones."""


def learn(documents: Sequence[Labelled]) -> Knowledge:
    """The words of names and addresses, and the words that were read."""
    labels = [
        (document.group or str(number), label)
        for number, document in enumerate(documents)
        for name in ("company", "address")
        if (label := document.labels.get(name))
    ]
    read = [
        (document.group or str(number), line.text)
        for number, document in enumerate(documents)
        for _, line in document.reading.lines()
    ]
    return {"spelling": learn_spelling(labels, read)}


RECEIPT = Kind(
    name="receipt",
    targets=(
        Target(name="company", find=find_companies, right=closest(_ALIKE)),
        Target(name="address", find=find_addresses, right=closest(_ALIKE)),
        Target(name="date", find=find_days, right=equal(label_day)),
        Target(name="total", find=find_totals, right=equal(label_amount, Decimal)),
    ),
    learn=learn,
    strength={"company": _STRENGTH, "address": _STRENGTH, "date": _STRENGTH},
)


def read_receipt(reading: Reading, schema: FieldSchema, model: Model) -> Extraction:
    """All fields of the schema that were found; the confidence is the ranker's until it is calibrated."""
    layout = lay_out(reading)
    fields: dict[str, FieldValue] = {}
    for target in RECEIPT.targets:
        if target.name in schema.fields and target.name in model.rankers:
            choice = model.rankers[target.name].choose(target.find(layout, model.knowledge), target.absent(layout))
            if choice.candidate is not None:
                fields[target.name] = _value(target.name, choice, choice.candidate, layout, reading, model.knowledge)
    learned = {target.name for target in RECEIPT.targets}
    fields |= read_labelled(reading, schema, [name for name in schema.fields if name not in learned])
    total = Decimal(fields["total"].value) if "total" in fields else None
    fields = settle(fields, layout, layout.once(Amounts), total)
    rows = {}
    if _ITEMS in schema.tables:
        rows[_ITEMS] = read_items(layout, layout.once(Amounts), total)
    confidence = 1.0
    for name in schema.required:
        confidence *= fields[name].confidence if name in fields else 0.0
    return Extraction(
        schema=schema.name,
        schema_version=schema.version,
        reader=Reader.LOCAL,
        document_type="receipt",
        fields={name: fields[name] for name in schema.fields if name in fields},
        rows=rows,
        confidence=confidence,
    )


def _value(
    name: str, choice: Choice, candidate: Candidate, layout: Layout, reading: Reading, knowledge: Knowledge
) -> FieldValue:
    value = candidate.value
    if name == "company":
        value = repaired_company(candidate, knowledge)
    elif name == "address":
        value = repaired_address(candidate, knowledge, ocr=_by_ocr(reading))
    return FieldValue(
        value=value,
        raw=candidate.raw,
        confidence=choice.probability,
        evidence=candidate.evidence,
        signals={**_signals(name, choice, candidate, layout, value), **doubts(name, choice, layout, value, knowledge)},
        alternatives=tuple(other for other, _ in choice.alternatives if other is not None),
    )


def _signals(name: str, choice: Choice, candidate: Candidate, layout: Layout, value: str) -> Mapping[str, float]:
    """What confidence can be computed from; the same names for every field, so that one calibration can serve all."""
    pieces = [span.piece for span in candidate.spans]
    features = candidate.features
    agreeing = sum(features.get(sign, 0.0) for sign in ("settled", "running", "block"))
    labelled = max(features.get(sign, 0.0) for sign in ("own_total", "own_grand", "dated", "in_company", "any_street"))
    numeric = name in ("total", "date")
    places = {(span.piece.index, span.start) for one in choice.agreeing for span in one.spans[:1]}
    # Neither how often a name is printed nor what it is beside says much about whether it is right.
    counted = {"repeats": float(len(places)), "arithmetic": agreeing, "label": labelled} if numeric else {}
    return {
        "score": choice.probability,
        "margin": choice.margin,
        **counted,
        "position": layout.depth(pieces[0]) if pieces else 0.0,
        "ocr": sum(piece.score for piece in pieces) / max(1, len(pieces)),
        "lowest": min([1.0 if word.score is None else word.score for piece in pieces for word in piece.words] or [1.0]),
        "repaired": change(candidate.value, value),
        "mended": features.get("mended", 0.0),
        "whole": float(features.get("whole", 0.0) > 0),
        "rivals": float(sum(chance >= _RIVAL for _, chance in choice.alternatives)),
        "lines": float(len(pieces)),
        "length": float(len(value)),
        **candidate.signals,
    }


def _by_ocr(reading: Reading) -> bool:
    return any(page.source is TextSource.OCR for page in reading.pages)
