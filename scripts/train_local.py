#!/usr/bin/env python3
"""Fit the model of receipts that ships with the package, and measure it on sellers it has not seen.

    .venv/bin/python scripts/train_local.py [--write] [--readings DIR] [--errors FIELD]

Reads `receipts` in DOCMILL_DATA (else ../shared/data): what people transcribed, what RapidOCR 3.10 read, and the
images, which are read by the installed OCR; `--readings` keeps what was read for the next time. Receipts of sellers
that share a name or an address are one group, and a group is never in the training and the test part of a fold.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from corpus import MODELS, ROOT, Document, Part, read_by_others, receipts

from docmill.extraction.local.receipts import RECEIPT, read_receipt
from docmill.extraction.local.receipts.amounts import label_amount
from docmill.extraction.local.receipts.days import label_day
from docmill.extraction.local.training import Labelled, cross_validate, train
from docmill.extraction.result import Extraction
from docmill.extraction.schema import load_schema
from docmill.extraction.values.texts import fold, loose

MODEL = MODELS / "receipt.json"
FIELDS = ("company", "address", "date", "total")


def main() -> int:
    """Measure by cross-validation, print; fit on everything and write the model if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="replace the model that ships")
    parser.add_argument("--only-write", action="store_true", help="do not measure")
    parser.add_argument("--readings", type=Path, help="folder in which readings of the images are kept")
    parser.add_argument("--errors", help="print what was read wrongly of this field")
    chosen = parser.parse_args()
    own = receipts(chosen.readings)
    records = [*own, *read_by_others(own)]
    documents = [taught(record) for record in records]
    if not chosen.only_write:
        schema = load_schema("receipt")
        found = cross_validate(documents, RECEIPT, lambda reading, model: read_receipt(reading, schema, model))
        for part in (Part.TYPED, Part.LINES, Part.IMAGES):
            _report(part, records, found, chosen.errors)
    if chosen.write or chosen.only_write:
        model = train(documents, RECEIPT)
        text = json.dumps(model.as_json(), sort_keys=True, separators=(",", ":"))
        MODEL.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
        print(f"wrote {MODEL.relative_to(ROOT)}, {MODEL.stat().st_size // 1024} KB")
    return 0


def taught(record: Document) -> Labelled:
    """The receipt as a ranker learns from it."""
    labels = {field: record.labelled.fields.get(field) or "" for field in FIELDS}
    return Labelled(reading=record.reading, labels=labels, group=record.group)


def _report(part: Part, records: Sequence[Document], found: Sequence[Extraction], errors: str | None) -> None:
    print(f"\n{part.value}\n{'field':10}{'n':>6}{'exact':>8}{'loose':>8}{'by seller':>11}")
    means = []
    for field in FIELDS:
        exact: list[bool] = []
        near: list[bool] = []
        sellers: dict[str, list[bool]] = {}
        for record, extraction in zip(records, found, strict=True):
            label = record.labelled.fields.get(field)
            if record.part is not part or not label:
                continue
            value = extraction.fields[field].value if field in extraction.fields else ""
            exact.append(_same(field, value, label, fold))
            near.append(_same(field, value, label, loose))
            sellers.setdefault(record.group, []).append(exact[-1])
            if errors == field and not exact[-1]:
                print(f"  {record.labelled.file}: {value!r}, not {label!r}")
        apart = sum(sum(each) / len(each) for each in sellers.values()) / len(sellers)
        means.append((sum(exact) / len(exact), sum(near) / len(near), apart))
        print(f"{field:10}{len(exact):6}{means[-1][0]:8.3f}{means[-1][1]:8.3f}{apart:11.3f}")
    print(
        f"{'mean':16}"
        + "".join(
            f"{sum(column) / len(means):{8 if place < 2 else 11}.3f}"
            for place, column in enumerate(zip(*means, strict=True))
        )
    )


def _same(field: str, value: str, label: str, form: Any) -> bool:
    if field == "total":
        return bool(value) and Decimal(value) == label_amount(label)
    if field == "date":
        return value == label_day(label)
    return bool(form(value) == form(label))


if __name__ == "__main__":
    sys.exit(main())
