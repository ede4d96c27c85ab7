"""What a person said and what a new run reads, put together: the person's value stands, the other beside it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from docmill.model.review import FieldState
from docmill.review.fields import FieldRow, missing_row


def merged(before: Sequence[FieldRow], found: Sequence[FieldRow]) -> list[FieldRow]:
    """The rows of an item after another run. What is not locked is as the run found it; nothing locked changes."""
    held = {row.path: row for row in before}
    tables = locked_tables(before)
    rows = []
    for new in found:
        old = held.pop(new.path, None)
        if old is not None and (old.locked or new.name in tables):
            rows.append(_beside(old, new))
        elif new.row_index is not None and new.name in tables:
            # A row that the person's table does not have.
            rows.append(replace(new, value=None, needs_review=False, proposed=new.value, differs=True))
        else:
            rows.append(new)
    rows += [
        _not_found(old) for old in held.values() if old.locked or (old.row_index is not None and old.name in tables)
    ]
    return [replace(row, position=place) for place, row in enumerate(sorted(rows, key=_order))]


def _order(row: FieldRow) -> tuple[bool, int]:
    return row.row_index is not None, row.position


def _beside(old: FieldRow, new: FieldRow) -> FieldRow:
    same = new.value == old.value
    kept = replace(old, extracted=new.value, confidence=new.confidence, required=new.required, threshold=new.threshold)
    kept = replace(kept, proposed=None if same else new.value, differs=not same)
    return replace(kept, details=new.details) if same else kept


def _not_found(old: FieldRow) -> FieldRow:
    """The run found nothing here; that is news only if one before had."""
    news = old.extracted is not None and old.value is not None
    return replace(old, extracted=None, confidence=None, proposed=None, differs=news or old.differs)


def agrees(decided: Sequence[FieldRow], found: Sequence[FieldRow]) -> bool:
    """Whether a new run reads what was decided, wherever nobody fixed the value by hand."""
    tables = locked_tables(decided)
    fixed = {row.path for row in decided if row.locked}

    def free(rows: Iterable[FieldRow]) -> dict[str, str]:
        return {
            row.path: row.value
            for row in rows
            if row.value is not None
            and row.path not in fixed
            and not (row.row_index is not None and row.name in tables)
        }

    return free(decided) == free(found)


def locked_tables(rows: Iterable[FieldRow]) -> frozenset[str]:
    """Tables of which a person touched a cell: all of such a table is the person's."""
    return frozenset(row.name for row in rows if row.locked and row.row_index is not None)


def locks_of(rows: Sequence[FieldRow]) -> dict[str, Any]:
    """What no run may overwrite, as the document keeps it: a value, None for what is not there, or rows of a table."""
    tables = locked_tables(rows)
    locks: dict[str, Any] = {row.name: row.value for row in rows if row.locked and row.row_index is None}
    for table in sorted(tables):
        lines: dict[int, dict[str, str]] = {}
        for row in rows:
            if row.name == table and row.row_index is not None and row.value is not None:
                lines.setdefault(row.row_index, {})[row.column_name] = row.value
        locks[table] = [lines[number] for number in sorted(lines)]
    return locks


def with_locks(found: Sequence[FieldRow], locks: Mapping[str, Any], said: Iterable[FieldRow] = ()) -> list[FieldRow]:
    """The rows of a document that brought locked values along, as the duplicate of a corrected one does.

    `said`: rows in which people said it, so that who did, and how, is still known.
    """
    known = {row.path: row for row in said if row.locked}
    held = [row for name, value in locks.items() for row in _rows_of(name, value)]
    return merged([known[row.path] if _says(known.get(row.path), row) else row for row in held], found)


def said_since(rows: Sequence[FieldRow], locks: Mapping[str, Any], said: Iterable[FieldRow] = ()) -> list[FieldRow]:
    """The rows of an item whose document is told what people have decided of the same bytes elsewhere since."""
    mine = locks_of(rows)
    news = {name: value for name, value in locks.items() if name not in mine or mine[name] != value}
    if not news:
        return list(rows)
    read = [
        replace(row, value=row.extracted, state=FieldState.EXTRACTED, locked=False)
        for row in rows
        if row.name in news and (row.row_index is None or row.extracted is not None)
    ]
    after = [row for row in rows if row.name not in news] + with_locks(read, news, said)
    return [replace(row, position=place) for place, row in enumerate(sorted(after, key=_order))]


def values_of(rows: Iterable[FieldRow]) -> dict[str, str]:
    """What rows say, by their paths."""
    return {row.path: row.value for row in rows if row.value is not None}


def _says(known: FieldRow | None, held: FieldRow) -> bool:
    return known is not None and known.value == held.value


def _rows_of(name: str, value: Any) -> Iterable[FieldRow]:
    cells = (
        {f"{name}[{number}].{column}": cell for number, line in enumerate(value) for column, cell in line.items()}
        if isinstance(value, list)
        else {name: value}
    )
    for path, cell in cells.items():
        state = FieldState.CLEARED if cell is None else FieldState.CONFIRMED
        yield replace(missing_row(path, 0), value=None if cell is None else str(cell), state=state, locked=True)
