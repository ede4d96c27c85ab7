#!/usr/bin/env python3
"""Measure confidence where much goes wrong: on documents made harder, worse copies, invoices composed at random.

    .venv/bin/python scripts/check_confidence.py [--readings DIR] [--copies] [--composed COUNT]

Nothing is fitted here and nothing written. Each document is read by a ranker, and weighed by a confidence, that have
not seen its sender. `--copies` rescans the labelled documents (see worn.py): a quarter of an hour the first time.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from corpus import Document, Part, data_folder, invoices, read_by_others, receipts
from harder import in_unknown_words, misread, without_values
from train_confidence import lesson_of, taught
from worn import LIGHT, SOFT, WEARS, copies

from docmill.documents.limits import Limits
from docmill.documents.parsing import read_whole
from docmill.documents.reading import Reading
from docmill.extraction.checks import check
from docmill.extraction.ground_truth import Labelled
from docmill.extraction.judging import examples_of
from docmill.extraction.local.training import Kind, Model, cross_validate, shipped
from docmill.extraction.reliability import auroc, calibration_error
from docmill.extraction.result import Extraction
from docmill.extraction.schema import FieldSchema, load_schema
from docmill.extraction.scoring import DocumentScore, score_document
from docmill.services.learning import calibrated_apart
from docmill.testing.papers import composed_pdf

Read = Callable[[Reading, Model], Extraction]


def main() -> int:
    """Make, read, weigh, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--readings", type=Path, help="folder in which readings are kept")
    parser.add_argument("--copies", action="store_true", help="worse copies of the labelled documents too")
    parser.add_argument("--composed", type=int, default=250, help="how many invoices to compose")
    chosen = parser.parse_args()
    if chosen.copies and not chosen.readings:
        parser.error("--copies needs --readings: rescanning takes long enough to do it once")
    check_invoices(chosen.readings, composed=chosen.composed, worn=chosen.copies)
    if chosen.copies:
        check_receipts(chosen.readings)
    return 0


def check_invoices(kept: Path | None, *, composed: int, worn: bool) -> None:
    """Invoices as they are, and each kind of harder ones."""
    from docmill.extraction.local.invoices import read_invoice
    from docmill.extraction.local.invoices.learning import KIND

    schema, papers = load_schema("invoice"), invoices(kept)
    drawn = [_composed(seed) for seed in range(composed)]
    sets = {
        "in words a third of which nobody knows": [
            in_unknown_words(each, 0.3, seed) for each in papers for seed in (0, 1)
        ],
        "in words half of which nobody knows": [
            in_unknown_words(each, 0.5, seed) for each in papers for seed in (2, 3)
        ],
        "misread": [misread(each, seed=seed) for each in papers for seed in (0, 1)],
        "without the value, beside those with it": without_values(papers, schema),
    }
    if worn and kept:
        here = [each for each in papers if (data_folder() / "invoices" / each.labelled.file).exists()]
        text = [each for each in here if each.labelled.layout != "scanned"]
        for wear in (LIGHT, SOFT):
            sets[f"rescanned, {wear.name}"] = copies(text, "invoices", [wear], kept)
    apart = {
        "composed": drawn,
        "composed, in words a third of which nobody knows": [in_unknown_words(each, 0.3) for each in drawn],
        "composed, misread": [misread(each) for each in drawn],
    }
    folds = 3 * len({each.group for each in papers})
    scores = _measure(schema, papers, sets, apart, KIND, read_invoice, folds)
    for name, found in scores.items():
        # What is wrong by construction is told from what is right on the same pages as they were.
        _print(name, [*found, *scores["as they are"]] if name.startswith("without") else found)


def check_receipts(kept: Path) -> None:
    """Receipts whose images are here, and worse copies of these."""
    from docmill.extraction.local.receipts import RECEIPT, read_receipt

    schema, slips = load_schema("receipt"), receipts(kept)
    sets = {f"receipts, {wear.name}": copies(slips, "receipts", [wear], kept) for wear in WEARS}
    every = [*slips, *read_by_others(slips)]
    scores = _measure(schema, every, sets, {}, RECEIPT, lambda reading, model: read_receipt(reading, schema, model), 5)
    _print("receipts whose images are here", scores["as they are"][: sum(each.part is Part.IMAGES for each in slips)])
    for name in sets:
        _print(name, scores[name])


def _measure(
    schema: FieldSchema,
    documents: Sequence[Document],
    sets: dict[str, list[Document]],
    apart: dict[str, list[Document]],
    kind: Kind,
    read: Read,
    folds: int,
) -> dict[str, list[DocumentScore]]:
    """The scores of all sets; those in `apart` are of senders that are not among the documents."""
    by_file = {each.labelled.file: each for each in documents}
    variants: dict[int, list[Document]] = defaultdict(list)
    for some in sets.values():
        for each in some:
            variants[id(by_file[each.labelled.file.partition("#")[0]].reading)].append(each)
    found: dict[int, Extraction] = {}

    def read_all(reading: Reading, model: Model) -> Extraction:
        for each in variants.get(id(reading), ()):
            found[id(each)] = check(read(each.reading, model), schema)
        return read(reading, model)

    lessons = [lesson_of(each, schema) for each in documents]
    learned = [taught(lesson, each) for lesson, each in zip(lessons, documents, strict=True)]
    plain = [check(each, schema) for each in cross_validate(learned, kind, read_all, folds=folds)]
    told = [
        examples_of(lesson.labelled, each, schema, group=document.group)
        for lesson, each, document in zip(lessons, plain, documents, strict=True)
    ]
    everything = {"as they are": list(documents), **sets, **apart}
    shipping = shipped(kind.name)
    for some in apart.values():
        for each in some:
            found[id(each)] = check(read(each.reading, shipping), schema)
    found |= {id(document): each for document, each in zip(documents, plain, strict=True)}
    flat = [each for some in everything.values() for each in some]
    known = dict(zip(map(id, documents), told, strict=True))
    sure = calibrated_apart(
        [lesson_of(each, schema) for each in flat],
        [found[id(each)] for each in flat],
        [known.get(id(each), []) for each in flat],
        groups=[each.group for each in flat],
    )
    scored = [score_document(each.labelled, one, schema) for each, one in zip(flat, sure, strict=True)]
    at, scores = 0, {}
    for name, some in everything.items():
        scores[name] = scored[at : at + len(some)]
        at += len(some)
    return scores


def _composed(seed: int) -> Document:
    paper = composed_pdf(seed)
    with tempfile.TemporaryDirectory() as scratch:
        reading = read_whole(str(paper.write(Path(scratch))), Limits())
    return Document(labelled=Labelled(file=paper.name, fields=paper.fields), reading=reading, group=paper.name)


def _print(name: str, scores: Sequence[DocumentScore]) -> None:
    outcomes = [outcome for score in scores for outcome in score.outcomes]
    wrong = sum(not good for _, good in outcomes)
    stated = sum(confidence for confidence, _ in outcomes) / len(outcomes)
    print(
        f"{name:50} {len(outcomes):5} values, {wrong:3} wrong  AUROC {auroc(outcomes) or 0:.3f}  "
        f"calibration error {calibration_error(outcomes) or 0:.3f}  stated {stated:.3f}  right "
        f"{1 - wrong / len(outcomes):.3f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
