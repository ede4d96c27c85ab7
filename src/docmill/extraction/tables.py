"""Tables of any schema: rows below the heads of their columns.

The heads are found by the labels of the columns; what stands below each, in rows, is read by the type of its column.
The lines of shipped invoices have a reader of their own; this one needs nothing but the schema.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from docmill.documents.reading import Box, Reading, Word
from docmill.extraction.labels import Label, LabelBook, book_of
from docmill.extraction.neighbours import ByHeight
from docmill.extraction.pages import Pages
from docmill.extraction.result import Evidence, FieldValue, Reader
from docmill.extraction.schema import Field, FieldSchema, Table
from docmill.extraction.values import FieldType, Hints, canonical
from docmill.extraction.values.kinds import DECIMALS
from docmill.extraction.values.texts import clean

_FAR = 8.0
"""Heights of a line without a row after which a table has ended."""
_MOST_ROWS = 2000
"""Of a table."""
_MOST_HEADS = 300
"""Labels of a row of heads."""
_REACH = 1.2
"""Heights of a line by which the heads of one row may stand apart."""
_MOST_LINES = 30
"""Of the text of one cell."""
_ROW_WORDS = 300
"""Of a row; lines of print have some dozens."""
_WIDE = 1.3
"""Gap between two words, in letters, from which on they belong to two cells."""
_SURE = 0.6


@dataclass(frozen=True, slots=True)
class _Head:
    """The heads of the columns, in one row of a page."""

    page: int
    box: Box
    columns: tuple[tuple[str, Box], ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    box: Box
    value: str = ""
    """Canonical, once it is known of which column."""


def read_tables(
    reading: Reading | Pages, schema: FieldSchema, names: Iterable[str] | None = None
) -> dict[str, list[dict[str, FieldValue]]]:
    """The rows of the schema's tables that were found, on all pages, by the name of the table."""
    pages = reading if isinstance(reading, Pages) else Pages(reading)
    wanted = [schema.tables[name] for name in (schema.tables if names is None else names) if name in schema.tables]
    found: dict[str, list[dict[str, FieldValue]]] = {}
    for table in wanted:
        rows: list[dict[str, FieldValue]] = []
        for head in _heads(table, pages):
            rows += _rows(table, head, pages, _ends(schema, pages))
            if len(rows) > _MOST_ROWS:
                pages.note(f"{table.title}: only the first {_MOST_ROWS:,} rows were read.")
                break
        if rows:
            found[table.name] = rows[:_MOST_ROWS]
    return found


def _ends(schema: FieldSchema, pages: Pages) -> ByHeight[Label]:
    """Labels of fields: one of them below a table ends it."""
    key = ("ends", schema)
    if key not in pages.kept:
        labels = book_of(schema).find(pages)
        pages.kept[key] = ByHeight((one.place.page, one.place.box.middle, one) for one in labels if one.alone)
    kept: ByHeight[Label] = pages.kept[key]
    return kept


@lru_cache(maxsize=64)
def _book(columns: tuple[Field, ...]) -> LabelBook:
    fields = {field.name: field for field in columns}
    return LabelBook(FieldSchema(name="table", version="", title="", fields=fields))


def _heads(table: Table, pages: Pages) -> Iterator[_Head]:
    """On each page the row that names most columns, at least two of them."""
    by_page: dict[int, list[Label]] = defaultdict(list)
    for label in _book(tuple(table.columns.values())).find(pages):
        by_page[label.place.page].append(label)
    enough = min(2, len(table.columns))
    for page, labels in by_page.items():
        columns: dict[str, Box] = {}
        for label in sorted(_fullest(labels), key=lambda one: one.place.box.left):
            free = next((name for name in label.fields if name not in columns), None)
            if free:
                columns[free] = label.place.box
        if len(columns) >= enough:
            boxes = list(columns.values())
            yield _Head(page, boxes[0].around(*boxes[1:]), tuple(columns.items()))


def _fullest(labels: list[Label]) -> list[Label]:
    """The labels about one height that name most columns; the topmost of several such rows.

    A window slides down the page, so that a page full of heads costs no more than its size.
    """
    ordered = sorted(labels, key=lambda one: one.place.box.middle)
    heights = [label.place.box.middle for label in ordered]
    named: Counter[str] = Counter()
    best, first, last, most = (0, 0), 0, 0, 0
    for label in ordered:
        reach = _REACH * max(label.place.box.height, 0.004)
        while last < len(ordered) and heights[last] <= label.place.box.middle + reach:
            named[ordered[last].fields[0]] += 1
            last += 1
        while first < last and heights[first] < label.place.box.middle - reach:
            named[ordered[first].fields[0]] -= 1
            if not named[ordered[first].fields[0]]:
                del named[ordered[first].fields[0]]
            first += 1
        if len(named) > most:
            most, best = len(named), (first, last)
    return ordered[best[0] : best[1]][:_MOST_HEADS]


def _rows(table: Table, head: _Head, pages: Pages, ends: ByHeight[Label]) -> list[dict[str, FieldValue]]:
    rows: list[dict[str, FieldValue]] = []
    bottom = head.box.bottom
    for line in _visual_rows(head, pages):
        box = line[0].box
        if box.top - bottom > _FAR * max(box.height, 0.006) or len(rows) > _MOST_ROWS:
            break
        cells = _placed(line, head, table, pages.hints)
        numbers = [name for name in cells if table.columns[name].type is not FieldType.TEXT]
        if rows and len(cells) <= 2 and _closes(box, head, ends):
            break
        if numbers and len(cells) >= min(2, len(table.columns)):
            rows.append({name: _value(cell, head.page) for name, cell in cells.items()})
            bottom = box.bottom
        elif rows and cells and not numbers and box.top - bottom < 1.2 * box.height:
            _continue(rows[-1], cells, head.page)
            bottom = box.bottom
    return rows


def _closes(box: Box, head: _Head, ends: ByHeight[Label]) -> bool:
    near = ends.near(head.page, box.middle - 0.5 * box.height, box.middle + 0.5 * box.height)
    return any(label.place.box.top > head.box.bottom for label in near)


def _visual_rows(head: _Head, pages: Pages) -> Iterator[list[_Cell]]:
    """What stands below the heads, row by row, each cut into cells where the gaps are wide."""
    words = sorted(
        (
            word
            for line in pages.by_page.get(head.page, ())
            for word in line.words
            if word.box.middle > head.box.bottom and word.box.top > head.box.middle
        ),
        key=lambda word: word.box.middle,
    )
    row: list[Word] = []
    for word in words:
        if row and word.box.middle - row[0].box.middle > 0.6 * max(row[0].box.height, 0.004):
            yield _cells(row)
            row = []
        if len(row) < _ROW_WORDS:
            row.append(word)
    if row:
        yield _cells(row)


def _cells(words: list[Word]) -> list[_Cell]:
    cells: list[list[Word]] = []
    for word in sorted(words, key=lambda one: one.box.left):
        if cells:
            last = cells[-1][-1]
            letter = last.box.width / max(1, len(last.text))
            if word.box.left - last.box.right < _WIDE * letter:
                cells[-1].append(word)
                continue
        cells.append([word])
    return [
        _Cell(" ".join(word.text for word in cell), cell[0].box.around(*(word.box for word in cell[1:])))
        for cell in cells
    ]


def _placed(line: list[_Cell], head: _Head, table: Table, hints: Hints) -> dict[str, _Cell]:
    """Each cell under the head it overlaps most, or stands nearest to, whose type it has."""
    placed: dict[str, _Cell] = {}
    for cell in line:
        near = sorted(head.columns, key=lambda column: _distance(cell.box, column[1]))[:3]
        for name, _ in near:
            kind = table.columns[name]
            if name in placed and kind.type is not FieldType.TEXT:
                continue
            value = _read(kind, cell.text, hints)
            if value is None:
                continue
            whole = placed.get(name)
            if whole is None:
                placed[name] = _Cell(cell.text, cell.box, value)
            else:
                text = f"{whole.text} {cell.text}"
                placed[name] = _Cell(text, whole.box.around(cell.box), clean(text))
            break
    return placed


def _distance(one: Box, other: Box) -> float:
    """Negative where the two overlap; by their nearest edges where they do not."""
    overlap = min(one.right, other.right) - max(one.left, other.left)
    if overlap > 0:
        return -overlap
    edges = (abs(one.left - other.left), abs(one.right - other.right))
    return min(*edges, -overlap)


def _read(field: Field, text: str, hints: Hints) -> str | None:
    if field.type in (FieldType.IDENTIFIER, FieldType.TAX_ID) and not any(sign.isalnum() for sign in text):
        return None
    value = canonical(field.type, text, hints, words=field.enum)
    if value is None and field.type in DECIMALS:
        # `2 Stk`, `3 x`: a number with its unit.
        value = canonical(field.type, text.split(" ")[0], hints)
    return value


def _value(cell: _Cell, page: int) -> FieldValue:
    return FieldValue(
        value=cell.value,
        raw=cell.text,
        confidence=_SURE,
        evidence=(Evidence(page=page, box=cell.box),),
        reader=Reader.LOCAL,
        signals={"label": 1.0, "score": _SURE},
    )


def _continue(row: dict[str, FieldValue], cells: Mapping[str, _Cell], page: int) -> None:
    """Text that goes on in the next line."""
    for name, cell in cells.items():
        old = row.get(name)
        if old is not None and len(old.evidence) < _MOST_LINES:
            row[name] = FieldValue(
                value=clean(f"{old.value} {cell.text}"),
                raw=f"{old.raw}\n{cell.text}",
                confidence=old.confidence,
                evidence=(*old.evidence, Evidence(page=page, box=cell.box)),
                reader=old.reader,
                signals=old.signals,
            )
