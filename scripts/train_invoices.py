#!/usr/bin/env python3
"""Fit the model of invoices that ships with the package, and measure it on sellers it has not seen.

    .venv/bin/python scripts/train_invoices.py [--write] [--readings DIR]

Reads the labelled documents in DOCMILL_DATA (else ../shared/data): `invoices`, and the visible pages of the PDFs in
`einvoices`, whose XML is not looked at. Reading includes OCR; `--readings` keeps what was read for the next time.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docmill.documents.limits import Limits
from docmill.documents.parsing import read_whole
from docmill.documents.reading import Reading
from docmill.extraction.local.invoices.learning import KIND
from docmill.extraction.local.invoices.reader import read_invoice
from docmill.extraction.local.training import Labelled, Model, cross_validate, train
from docmill.extraction.result import Extraction
from docmill.extraction.values.texts import fold, loose

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "src/docmill/extraction/local/models/invoice.json"
Record = dict[str, Any]
"""A line of labels.jsonl, with its folder."""
SKIPPED = ("syntax", "type_code", "line_count")


def main() -> int:
    """Train, measure, print; write the model if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="replace the model that ships")
    parser.add_argument("--readings", type=Path, help="folder in which readings are kept")
    chosen = parser.parse_args()
    data = Path(os.environ.get("DOCMILL_DATA", ROOT / "../shared/data"))
    records = list(_records(data))
    documents = [_labelled(record, data, chosen.readings) for record in records]
    hand = Model(kind="invoice", rankers={})
    _report("weights by hand", records, [read_invoice(document.reading, hand) for document in documents])
    folds = len({document.group for document in documents}) * 3
    _report(
        "fitted, each group read by a model that has not seen it",
        records,
        cross_validate(documents, KIND, read_invoice, folds=folds),
    )
    if chosen.write:
        model = train(documents, KIND)
        MODEL.parent.mkdir(exist_ok=True)
        MODEL.write_text(json.dumps(model.as_json(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"wrote {MODEL.relative_to(ROOT)}")
    return 0


def _records(data: Path) -> Iterator[Record]:
    seen = set()
    for folder in ("invoices", "einvoices"):
        for line in (data / folder / "labels.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            # The invoices that were stripped of their XML are e-invoices too: the same page is not learned twice.
            if record["file"].endswith(".pdf") and record["id"] not in seen:
                seen.add(record["id"])
                yield {**record, "folder": folder}


def _labelled(record: Record, data: Path, kept: Path | None) -> Labelled:
    path = data / record["folder"] / record["file"]
    store = kept / f"{record['folder']}_{record['id']}.json" if kept else None
    if store and store.exists():
        reading = Reading.from_json(json.loads(store.read_text(encoding="utf-8")))
    else:
        reading = read_whole(str(path), Limits())
        if store:
            store.parent.mkdir(parents=True, exist_ok=True)
            store.write_text(json.dumps(reading.as_json()), encoding="utf-8")
    labels = {name: value for name, value in record["fields"].items() if name not in SKIPPED and value}
    return Labelled(reading=reading, labels=labels, group=_group(record, reading))


def _group(record: Record, reading: Reading) -> str:
    """Whatever shares a seller or a template: it is either learned from or tested on."""
    if record.get("layout") == "stylesheet":
        return "stylesheet"
    if record.get("origin") == "gst_fixture":
        return "gst"
    if all(word in reading.text for word in ("Date of issue", "Date due", "Invoice number")):
        return "billing service"
    return str(record["fields"].get("seller_name") or record["id"]).split("\n")[0]


def _report(title: str, records: list[Record], found: list[Extraction]) -> None:
    """Shares of visible fields that are exactly right, by layout and field."""
    exact: dict[tuple[str, str], list[bool]] = defaultdict(list)
    alike: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for record, extraction in zip(records, found, strict=True):
        layout = record["layout"] if record["folder"] == "invoices" else f"e-invoice, {record['layout']}"
        seen = record.get("visible") or {}
        for name, wanted in record["fields"].items():
            if name == "line_count":
                right = len(extraction.rows.get("line_items", ())) == wanted
                exact[layout, name].append(right)
            elif name not in SKIPPED and wanted is not None:
                value = extraction.fields[name].value if name in extraction.fields else None
                right = value is not None and fold(value) == fold(wanted)
                nearly = right or (value is not None and loose(value) == loose(wanted))
                exact[layout, "every label"].append(right)
                if seen.get(name, True):
                    for key in (name, "all visible"):
                        exact[layout, key].append(right)
                        alike[layout, key].append(nearly)
    print(f"\n{title}")
    for layout, name in sorted(exact):
        right = exact[layout, name]
        also = alike.get((layout, name))
        loosely = f"  loose {sum(also) / len(also):.3f}" if also and name.endswith(("name", "visible")) else ""
        print(f"  {layout:22} {name:16} {sum(right):4} of {len(right):4}  {sum(right) / len(right):.3f}{loosely}")


if __name__ == "__main__":
    sys.exit(main())
