"""The labelled documents that models are fitted on: DOCMILL_DATA, else ../shared/data. None are in this repository.

Reading includes OCR, which takes minutes; `kept` is a folder in which readings are kept for the next time.
"""

import gzip
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from docmill.documents.limits import Limits
from docmill.documents.parsing import read_whole
from docmill.documents.reading import Box, Format, Line, Page, Reading, TextSource, Word
from docmill.extraction.ground_truth import Labelled, read_labels
from docmill.extraction.grounding import ground
from docmill.extraction.pages import Pages
from docmill.extraction.schema import load_schema
from docmill.extraction.values.texts import loose

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "src/docmill/extraction/local/models"


class Part(StrEnum):
    """Who read a receipt."""

    IMAGES = "images, installed OCR"
    LINES = "RapidOCR 3.10, 150"
    TYPED = "transcribed by people"


@dataclass(frozen=True, kw_only=True)
class Document:
    """A labelled document as it was read; the XML of an e-invoice is left out."""

    labelled: Labelled
    reading: Reading
    group: str
    """Whose it is: a group is learned from or tested on, never both."""
    part: Part = Part.IMAGES


def data_folder() -> Path:
    """Where the labelled documents lie."""
    return Path(os.environ.get("DOCMILL_DATA", ROOT / "../shared/data")).resolve()


def write_model(name: str, data: dict[str, Any]) -> None:
    """Replace a model that ships."""
    file = MODELS / f"{name}.json"
    file.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"wrote {file.relative_to(ROOT)}")


def invoices(kept: Path | None = None) -> list[Document]:
    """Invoices without XML, and the visible pages of e-invoices that are not among them."""
    found, seen = [], set()
    for folder in ("invoices", "einvoices"):
        for record, labelled in _rows(folder):
            if not labelled.file.endswith(".pdf") or record["id"] in seen:
                continue
            seen.add(record["id"])
            reading = replace(_reading(folder, record, kept), invoice=None)
            if not labelled.visible:
                labelled = replace(labelled, visible=_visible(labelled, reading))
            found.append(Document(labelled=labelled, reading=reading, group=_seller(record, reading)))
    return found


def receipts(kept: Path | None = None) -> list[Document]:
    """Receipts whose images are here, as they are read, and others as their lines were read by OCR."""
    groups = _groups()
    found = [
        Document(labelled=labelled, reading=_reading("receipts", record, kept), group=groups[record["id"]])
        for record, labelled in _rows("receipts")
    ]
    have = {document.labelled.file for document in found}
    return found + [each for each in _by_lines(groups) if each.labelled.file not in have]


def read_by_others(besides: Sequence[Document]) -> list[Document]:
    """The same receipts and more, as others read them: lines of those whose images are here, and transcriptions of all.

    To learn from, as what ships does; not to measure on.
    """
    groups = _groups()
    have = {document.labelled.file for document in besides if document.part is Part.LINES}
    lines = [each for each in _by_lines(groups) if each.labelled.file not in have]
    # Under another name: the same receipt twice is two documents.
    return [
        *_typed(groups),
        *(replace(each, labelled=replace(each.labelled, file=f"{each.labelled.file}#lines")) for each in lines),
    ]


def _by_lines(groups: Mapping[str, str]) -> Iterator[Document]:
    lines = {record["id"]: record for record in _packed("receipts/ocr_rapidocr3.10_150.jsonl.gz")}
    for record, labelled in _rows("receipts", "labels_150.jsonl"):
        read = lines[record["id"]]
        reading = from_lines(read["lines"], read["w"], read["h"], TextSource.OCR)
        yield Document(labelled=labelled, reading=reading, group=groups[record["id"]], part=Part.LINES)


def _typed(groups: Mapping[str, str]) -> Iterator[Document]:
    for record in _packed("receipts/train_lines.jsonl.gz"):
        wide = 1.03 * max(max(line["box"][0::2]) for line in record["lines"])
        high = 1.02 * max(max(line["box"][1::2]) for line in record["lines"])
        reading = from_lines(record["lines"], wide, high, TextSource.EMBEDDED)
        labelled = Labelled(file=record["id"], fields=record["fields"])
        yield Document(labelled=labelled, reading=reading, group=groups[record["id"]], part=Part.TYPED)


def _groups() -> dict[str, str]:
    """Whose receipt it is: the same when names or addresses begin alike."""
    parent: dict[str, str] = {}

    def top(key: str) -> str:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    names = []
    for record in _packed("receipts/train_lines.jsonl.gz"):
        names.append(record["id"])
        company = "company " + loose(record["fields"].get("company") or "")[:8]
        parent[top(f"receipt {record['id']}")] = top(company)
        if address := record["fields"].get("address"):
            parent[top("address " + loose(address)[:14])] = top(company)
    return {name: top(f"receipt {name}") for name in names}


def book_pages(count: int, words: int = 300) -> list[Reading]:
    """Pages of prose."""
    from docmill.testing.paper_readings import paper

    book = read_whole(str(data_folder() / "books/moby-dick.epub"), Limits())
    text = " ".join(section.text for section in book.sections).split()
    step = len(text) // (count + 1)
    pages = []
    for number in range(count):
        some = text[number * step : number * step + words - 2 * number]
        wide = 7 + number % 6
        pages.append(paper([" ".join(some[at : at + wide]) for at in range(0, len(some), wide)]))
    return pages


def from_lines(lines: Sequence[Mapping[str, Any]], wide: float, high: float, source: TextSource) -> Reading:
    """A reading of lines with boxes of eight numbers in pixels; a word has its share of its line, and its score."""
    made = []
    for line in lines:
        if words := tuple(_words(line["text"], line["box"], wide, high, line.get("score"))):
            made.append(Line(words=words))
    page = Page(number=1, width=wide, height=high, source=source, lines=tuple(made))
    return Reading(sha256="", format=Format.JPEG, pages=(page,))


def _words(text: str, box: Sequence[float], wide: float, high: float, score: float | None) -> Iterator[Word]:
    """Words at their share of the line, along its slant."""
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
            place = Box(min(sides) / wide, min(tops) / high, max(ends) / wide, max(bottoms) / high)
            yield Word(text=word, box=place, score=score)
        at += len(word) + 1


def _rows(folder: str, file: str = "labels.jsonl") -> Iterator[tuple[dict[str, Any], Labelled]]:
    text = (data_folder() / folder / file).read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines() if line.strip()]
    yield from zip(records, read_labels(text), strict=True)


def _packed(file: str) -> Iterator[dict[str, Any]]:
    with gzip.open(data_folder() / file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _reading(folder: str, record: dict[str, Any], kept: Path | None) -> Reading:
    store = kept / f"{folder}_{record['id']}.json" if kept else None
    if store and store.exists():
        return Reading.from_json(json.loads(store.read_text(encoding="utf-8")))
    reading = read_whole(str(data_folder() / folder / record["file"]), Limits())
    if store:
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps(reading.as_json()), encoding="utf-8")
    return reading


def _visible(labelled: Labelled, reading: Reading) -> dict[str, bool]:
    """What of an e-invoice can be seen on its page: its labels are those of the XML, and some pages say otherwise."""
    schema, pages = load_schema("invoice"), Pages(reading)
    return {
        name: bool(value and name in schema.fields and ground(value, schema.fields[name].type, pages))
        for name, value in labelled.fields.items()
    }


def _seller(record: dict[str, Any], reading: Reading) -> str:
    """Whatever shares a seller or a way of printing."""
    if record.get("layout") == "stylesheet":
        return "stylesheet"
    if record.get("origin") == "gst_fixture":
        return "gst"
    if all(word in reading.text for word in ("Date of issue", "Date due", "Invoice number")):
        return "billing service"
    return str(record["fields"].get("seller_name") or record["id"]).split("\n")[0]
