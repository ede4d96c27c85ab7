#!/usr/bin/env python3
"""Fit the model of receipts that ships with the package, and measure it on sellers it has not seen.

    .venv/bin/python scripts/train_local.py [--write] [--readings DIR] [--errors FIELD]

Reads `receipts` in DOCMILL_DATA (else ../shared/data): what people transcribed, what RapidOCR 3.10 read, and the
images, which are read by the installed OCR; `--readings` keeps what was read for the next time. Receipts of sellers
that share a name or an address are one group, and a group is never in the training and the test part of a fold.
"""

import argparse
import gzip
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmill.documents.limits import Limits
from docmill.documents.parsing import read_whole
from docmill.documents.reading import Box, Format, Line, Page, Reading, TextSource, Word
from docmill.extraction.local.receipts import RECEIPT, read_receipt
from docmill.extraction.local.receipts.amounts import label_amount
from docmill.extraction.local.receipts.days import label_day
from docmill.extraction.local.training import Labelled, cross_validate, train
from docmill.extraction.result import Extraction
from docmill.extraction.schema import load_schema
from docmill.extraction.values.texts import fold, loose

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "src/docmill/extraction/local/models/receipt.json"
FIELDS = ("company", "address", "date", "total")
TYPED, OLD, IMAGES = "transcribed by people", "RapidOCR 3.10, 150", "images, installed OCR"


@dataclass(frozen=True, kw_only=True)
class Record:
    """A labelled document, and which part of the data it comes from."""

    part: str
    id: str
    document: Labelled


def main() -> int:
    """Measure by cross-validation, print; fit on everything and write the model if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="replace the model that ships")
    parser.add_argument("--only-write", action="store_true", help="do not measure")
    parser.add_argument("--readings", type=Path, help="folder in which readings of the images are kept")
    parser.add_argument("--errors", help="print what was read wrongly of this field")
    chosen = parser.parse_args()
    data = Path(os.environ.get("DOCMILL_DATA", ROOT / "../shared/data")) / "receipts"
    records = list(_records(data, chosen.readings))
    if not chosen.only_write:
        schema = load_schema("receipt")
        documents = [record.document for record in records]
        found = cross_validate(documents, RECEIPT, lambda reading, model: read_receipt(reading, schema, model))
        for part in (TYPED, OLD, IMAGES):
            _report(part, records, found, chosen.errors)
    if chosen.write or chosen.only_write:
        model = train([record.document for record in records], RECEIPT)
        MODEL.parent.mkdir(exist_ok=True)
        text = json.dumps(model.as_json(), sort_keys=True, separators=(",", ":"))
        MODEL.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
        print(f"wrote {MODEL.relative_to(ROOT)}, {MODEL.stat().st_size // 1024} KB")
    return 0


def _records(data: Path, kept: Path | None) -> Iterable[Record]:
    typed = {row["id"]: row for row in _lines(data / "train_lines.jsonl.gz")}
    labels = {name: {field: row["fields"].get(field) or "" for field in FIELDS} for name, row in typed.items()}
    groups = _groups(labels)

    def record(part: str, name: str, reading: Reading) -> Record:
        return Record(part=part, id=name, document=Labelled(reading=reading, labels=labels[name], group=groups[name]))

    for name, row in typed.items():
        width = 1.03 * max(max(line["box"][0::2]) for line in row["lines"])
        height = 1.02 * max(max(line["box"][1::2]) for line in row["lines"])
        yield record(TYPED, name, _reading(name, width, height, row["lines"], TextSource.EMBEDDED))
    for row in _lines(data / "ocr_rapidocr3.10_150.jsonl.gz"):
        yield record(OLD, row["id"], _reading(row["id"], row["w"], row["h"], row["lines"], TextSource.OCR))
    for path in sorted((data / "img").iterdir()):
        if path.stem in labels:
            yield record(IMAGES, path.stem, _read(path, kept))


def _lines(path: Path) -> Iterable[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def _read(path: Path, kept: Path | None) -> Reading:
    stored = kept / f"{path.stem}.json" if kept else None
    if stored is not None and stored.exists():
        return Reading.from_json(json.loads(stored.read_text(encoding="utf-8")))
    reading = read_whole(str(path), Limits())
    if stored is not None:
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(json.dumps(reading.as_json()), encoding="utf-8")
    return reading


def _reading(name: str, width: float, height: float, lines: Iterable[Mapping[str, Any]], source: TextSource) -> Reading:
    made = []
    for line in lines:
        if words := tuple(_words(line["text"], line["box"], width, height, line.get("score"))):
            made.append(Line(words=words))
    page = Page(number=1, width=width, height=height, source=source, lines=tuple(made))
    return Reading(sha256=hashlib.sha256(name.encode()).hexdigest(), format=Format.JPEG, pages=(page,))


def _words(text: str, box: Sequence[float], width: float, height: float, score: float | None) -> Iterable[Word]:
    """Words at their share of the line, along its slant: these parts of the data have boxes of lines only."""
    (left, top), (right, top_right), (right_low, bottom_right), (left_low, bottom) = zip(
        box[0::2], box[1::2], strict=True
    )
    at = 0
    for word in text.split(" "):
        if word:
            start, end = at / len(text), (at + len(word)) / len(text)
            sides = [left + (right - left) * start, left_low + (right_low - left_low) * start]
            ends = [left + (right - left) * end, left_low + (right_low - left_low) * end]
            tops = [top + (top_right - top) * share for share in (start, end)]
            bottoms = [bottom + (bottom_right - bottom) * share for share in (start, end)]
            place = Box(min(sides) / width, min(tops) / height, max(ends) / width, max(bottoms) / height)
            yield Word(text=word, box=place, score=score)
        at += len(word) + 1


def _groups(labels: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Whose receipt it is: the same when names or addresses begin alike."""
    parent: dict[str, str] = {}

    def top(key: str) -> str:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    for name, label in labels.items():
        company = "company " + loose(label["company"])[:8]
        parent[top(f"receipt {name}")] = top(company)
        if label["address"]:
            parent[top("address " + loose(label["address"])[:14])] = top(company)
    return {name: top(f"receipt {name}") for name in labels}


def _report(part: str, records: Sequence[Record], found: Sequence[Extraction], errors: str | None) -> None:
    print(f"\n{part}\n{'field':10}{'n':>6}{'exact':>8}{'loose':>8}{'by seller':>11}")
    means = []
    for field in FIELDS:
        exact: list[bool] = []
        near: list[bool] = []
        sellers: dict[str, list[bool]] = {}
        for record, extraction in zip(records, found, strict=True):
            label = record.document.labels[field]
            if record.part != part or not label:
                continue
            value = extraction.fields[field].value if field in extraction.fields else ""
            exact.append(_same(field, value, label, fold))
            near.append(_same(field, value, label, loose))
            sellers.setdefault(record.document.group, []).append(exact[-1])
            if errors == field and not exact[-1]:
                print(f"  {record.id}: {value!r}, not {label!r}")
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
        return value == label_amount(label)
    if field == "date":
        return value == label_day(label)
    return bool(form(value) == form(label))


if __name__ == "__main__":
    sys.exit(main())
