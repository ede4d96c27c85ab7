#!/usr/bin/env python3
"""Fit the confidence that ships with the package, and measure it on senders it has not seen.

    .venv/bin/python scripts/train_confidence.py [--write] [--readings DIR] [--wrong]

Each document is read with a ranker that has not seen its sender; confidence is fitted to what is right and wrong then.
Measured is the confidence that a document gets from the others. Receipts as others read them are learned from and
fitted on too, as for the ranker that ships: they hold the same mistakes of choosing. They are not measured.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from corpus import Document, Part, invoices, read_by_others, receipts, write_model

from docmill.documents.reading import Reading
from docmill.extraction.calibrating import Example, fit
from docmill.extraction.checks import check
from docmill.extraction.confidence import ANY
from docmill.extraction.judging import examples_of
from docmill.extraction.labelled import read_labelled
from docmill.extraction.local.training import Kind, Labelled, Model, cross_validate
from docmill.extraction.reliability import slices
from docmill.extraction.result import Extraction, Reader
from docmill.extraction.schema import FieldSchema, load_schema
from docmill.extraction.scoring import score_document, summarise
from docmill.services.learning import Lesson, calibrated_apart, labels_of

UNKNOWN = ("syntax", "type_code", "line_count")
"""Labels that no value on the page is right or wrong for."""


def main() -> int:
    """Train, measure, print; write the calibration if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="replace the calibration that ships")
    parser.add_argument("--readings", type=Path, help="folder in which readings are kept")
    parser.add_argument("--wrong", action="store_true", help="list wrong values with their confidence")
    chosen = parser.parse_args()
    train_confidence(chosen.readings, write=chosen.write, wrong=chosen.wrong)
    return 0


def train_confidence(kept: Path | None, *, write: bool, wrong: bool = False) -> None:
    """Fit on everything, after having measured on each fold what the others teach."""
    from docmill.extraction.local.invoices import read_invoice
    from docmill.extraction.local.invoices.learning import KIND as INVOICES
    from docmill.extraction.local.receipts import RECEIPT, read_receipt

    receipt, invoice = load_schema("receipt"), load_schema("invoice")
    papers, slips = invoices(kept), receipts(kept)
    examples: list[Example] = []
    for schema, documents, also, kind, read, folds in (
        (
            receipt,
            slips,
            read_by_others(slips),
            RECEIPT,
            lambda reading, model: read_receipt(reading, receipt, model),
            5,
        ),
        (invoice, papers, [], INVOICES, read_invoice, 3 * len({each.group for each in papers})),
    ):
        examples += _examples(schema, documents, also, kind, read, folds, wrong=wrong)
    examples += _by_labels(invoice, papers)
    if write:
        write_model("calibration", fit(examples).as_json())


def _examples(
    schema: FieldSchema,
    documents: Sequence[Document],
    also: Sequence[Document],
    kind: Kind,
    read: Callable[[Reading, Model], Extraction],
    folds: int,
    *,
    wrong: bool,
) -> list[Example]:
    every = [*documents, *also]
    lessons = [lesson_of(document, schema) for document in every]
    learned = [taught(lesson, document) for lesson, document in zip(lessons, every, strict=True)]
    found = [check(each, schema) for each in cross_validate(learned, kind, read, folds=folds)]
    told = [
        examples_of(lesson.labelled, each, schema, group=document.group)
        for lesson, each, document in zip(lessons, found, every, strict=True)
    ]
    sure = calibrated_apart(lessons, found, told, groups=[document.group for document in every])
    scores = [score_document(lesson.labelled, each, schema) for lesson, each in zip(lessons, sure, strict=True)]
    scores = scores[: len(documents)]
    own = sum(document.part is Part.IMAGES for document in documents)
    summary = summarise(scores)
    outcomes = [outcome for score in scores for outcome in score.outcomes]
    right = sum(good for _, good in outcomes)
    print(f"\n{schema.name}: {len(documents)} documents, {right} of {len(outcomes)} values that were found are right")
    print(f"  F1 {summary.exact_f1:.3f}  loose {summary.loose_mean:.3f}  visible {summary.micro_visible or 0:.3f}")
    print(f"  AUROC {summary.auroc or 0:.3f}  calibration error {summary.ece or 0:.3f}")
    if 0 < own < len(scores):
        part = summarise(scores[:own])
        print(f"  of {own} that were read here: AUROC {part.auroc or 0:.3f}  calibration error {part.ece or 0:.3f}")
    print(f"  documents that pass at 99 %: {summary.straight_through_99:.3f} (from {summary.threshold_99} on)")
    for name, field in summary.by_field.items():
        print(f"  {name:16} {field.n:4}  exact {field.exact:.3f}  loose {field.loose:.3f}")
    for part in slices(outcomes):
        print(f"  stated {part.stated:.3f}  right {part.right:.3f}  of {part.n}")
    if wrong:
        for score in scores:
            for each in score.fields:
                if each.visible and not each.exact and each.confidence is not None:
                    print(f"  {each.confidence:.3f} {score.file} {each.field}: {each.expected!r}, not {each.found!r}")
    return [example for part in told for example in part]


def lesson_of(document: Document, schema: FieldSchema) -> Lesson:
    """The document with those labels that a value can be right for."""
    fields = {name: value for name, value in document.labelled.fields.items() if name not in UNKNOWN}
    return Lesson(labelled=replace(document.labelled, fields=fields), reading=document.reading, schema=schema)


def taught(lesson: Lesson, document: Document) -> Labelled:
    """The document as a ranker learns from it."""
    labels = {name: value for name, value in labels_of(lesson).items() if value}
    return Labelled(reading=lesson.reading, labels=labels, group=document.group)


def _by_labels(schema: FieldSchema, documents: Sequence[Document]) -> list[Example]:
    """What the reader of schemas that nobody has learned finds on invoices: the confidence of any schema."""
    examples = []
    for document in documents:
        found = Extraction(
            schema=schema.name,
            schema_version=schema.version,
            reader=Reader.LOCAL,
            document_type="invoice",
            fields=read_labelled(document.reading, schema),
        )
        lesson = lesson_of(document, schema)
        for example in examples_of(lesson.labelled, check(found, schema), schema, group=document.group):
            examples.append(replace(example, schema=ANY, required=False))
    right = sum(example.right for example in examples)
    print(f"\nby labels alone, on invoices: {right} of {len(examples)} values that were found are right")
    return examples


if __name__ == "__main__":
    sys.exit(main())
