#!/usr/bin/env python3
"""Fit the classifier of document types that ships with the package, and measure it on senders it has not seen.

.venv/bin/python scripts/train_types.py [--write] [--readings DIR]
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from corpus import book_pages, invoices, read_by_others, receipts, write_model

from docmill.documents.reading import Reading
from docmill.extraction.classification import DocumentType, classify, features
from docmill.extraction.type_training import TypedDocument, fit_types, folds_of
from docmill.testing.paper_readings import papers

TRANSCRIBED = 150
"""Receipts without OCR mistakes among those with."""
PAGES = 80
CREDIT_NOTES = frozenset({"381", "261"})


def main() -> int:
    """Train, measure, print; write the model if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="replace the model that ships")
    parser.add_argument("--readings", type=Path, help="folder in which readings are kept")
    chosen = parser.parse_args()
    train_types(chosen.readings, write=chosen.write)
    return 0


def train_types(kept: Path | None, *, write: bool) -> None:
    """Fit on everything, after having measured on each fold what the others teach."""
    documents = _documents(kept)
    typed = [TypedDocument(features=features(reading), type=kind, group=group) for reading, kind, group in documents]
    folds = folds_of(typed)
    right: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    schema = 0
    for fold in sorted(set(folds)):
        fitted = fit_types([each for each, own in zip(typed, folds, strict=True) if own != fold])
        for (reading, kind, _), own in zip(documents, folds, strict=True):
            if own == fold:
                found = classify(reading, fitted)
                seen[kind.value] += 1
                right[kind.value] += found.type is kind
                schema += found.schema == ("receipt" if kind is DocumentType.RECEIPT else "invoice")
    print("\ntypes, each group named by a classifier that has not seen it")
    for kind, count in seen.items():
        print(f"  {kind:16} {right[kind]:4} of {count:4}  {right[kind] / count:.3f}")
    whole = sum(seen.values())
    print(f"  {'all':16} {sum(right.values()):4} of {whole:4}  {sum(right.values()) / whole:.3f}")
    print(f"  {'schema':16} {schema:4} of {whole:4}  {schema / whole:.3f}")
    if write:
        write_model("classification", fit_types(typed).as_json())


def _documents(kept: Path | None) -> list[tuple[Reading, DocumentType, str]]:
    slips = receipts(kept)
    found = [(each.reading, DocumentType.RECEIPT, each.group) for each in slips]
    found += [(each.reading, DocumentType.RECEIPT, each.group) for each in read_by_others(slips)[:TRANSCRIBED]]
    for each in invoices(kept):
        credit = each.labelled.fields.get("type_code") in CREDIT_NOTES
        found.append((each.reading, DocumentType.CREDIT_NOTE if credit else DocumentType.INVOICE, each.group))
    found += [(reading, DocumentType(kind), f"{kind} {language}") for kind, language, reading in papers()]
    found += [(reading, DocumentType.OTHER, f"page {number}") for number, reading in enumerate(book_pages(PAGES))]
    return [each for each in found if each[0].pages]


if __name__ == "__main__":
    sys.exit(main())
