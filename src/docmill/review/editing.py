"""What people do to fields: from the rows before to the rows after, each change told. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from docmill.extraction.checks import REQUIRED, check
from docmill.extraction.locking import CHECKED_BY_A_PERSON, with_locked
from docmill.extraction.result import Extraction, FieldValue
from docmill.extraction.same_paper import with_values
from docmill.extraction.schema import THRESHOLD, Field, FieldSchema
from docmill.extraction.values.amounts import format_amount
from docmill.extraction.values.canonical import canonical, is_canonical
from docmill.extraction.values.kinds import FieldType
from docmill.model.errors import Conflict, InvalidInput, NotFound
from docmill.model.review import FieldState, TableTooLong
from docmill.review.fields import FieldRow, missing_row, parse_path
from docmill.review.merging import locked_tables, locks_of

MOST_TEXT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an action did to one row; None: there was, or is, no such row."""

    path: str
    action: str
    before: FieldRow | None
    after: FieldRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """The rows of an item in the hands of somebody."""

    rows: Sequence[FieldRow]
    schema: FieldSchema | None
    cut: Sequence[str]
    """Tables that are not whole."""
    by: str
    at: str

    def correct(self, path: str, text: str) -> Change:
        """Give a field or cell a value; one that was not found is added."""
        name, row_index, column = self._place(path)
        if row_index is not None and not column:
            raise InvalidInput(
                f"{path} is a row; name one of its cells, such as {path}.{self._a_column(name)}.", field="body.path"
            )
        old = self._row(path)
        value = self._value(name, column, path, text)
        if old is None:
            self._check_next_row(name, row_index)
            field = self._field(name, column)
            fresh = missing_row(path, len(self.rows), threshold=THRESHOLD if field is None else field.threshold)
            return Change(path=path, action="add", before=None, after=self._decided(fresh, value, FieldState.ADDED))
        if old.extracted is None:
            state = FieldState.ADDED
        else:
            state = FieldState.CONFIRMED if value == old.extracted else FieldState.CORRECTED
        return Change(path=path, action="correct", before=old, after=self._decided(old, value, state))

    def clear(self, path: str) -> list[Change]:
        """Say that the document has no such value; of a row (`line_items[2]`), none of its values."""
        name, row_index, column = self._place(path)
        if row_index is not None and not column:
            chosen = [row for row in self.rows if (row.name, row.row_index) == (name, row_index)]
        else:
            chosen = [row for row in self.rows if row.path == path]
        if not chosen:
            raise NotFound(f"There is nothing at {path} to clear; name a field that the item shows.", path=path)
        return [
            Change(path=row.path, action="clear", before=row, after=self._decided(row, None, FieldState.CLEARED))
            for row in chosen
        ]

    def confirm(self, paths: Sequence[str] | None) -> list[Change]:
        """Say that values are right; without paths, of all fields that need a look and have a value."""
        if paths is None:
            chosen = [row for row in self.rows if row.needs_review and row.value is not None]
        else:
            chosen = [self._with_value(path) for path in dict.fromkeys(paths)]
        return [
            Change(path=row.path, action="confirm", before=row, after=self._confirmed(row))
            for row in chosen
            if self._editable(row)
        ]

    def restore(self, path: str, before: Mapping[str, Any] | None) -> Change:
        """Take a field back to what it was before a change, as far as the machine has not read it anew."""
        row = self._row(path)
        if row is None:
            raise Conflict(f"{path} is not there any more, so nothing can be undone there.", path=path)
        if before is None and row.extracted is None:
            return Change(path=path, action="undo", before=row, after=None)
        state = FieldState.EXTRACTED if before is None else FieldState(before["state"])
        kept = {} if before is None else {name: before[name] for name in ("value", "changed_by", "changed_at")}
        if state is FieldState.EXTRACTED:
            kept = {"value": row.extracted, "changed_by": None, "changed_at": None}
        locked = state is not FieldState.EXTRACTED
        back = replace(row, **kept, state=state, locked=locked, proposed=None, differs=False)
        return Change(path=path, action="undo", before=row, after=back)

    def _decided(self, row: FieldRow, value: str | None, state: FieldState) -> FieldRow:
        return replace(
            row,
            value=value,
            state=state,
            locked=True,
            needs_review=False,
            proposed=None,
            differs=False,
            changed_by=self.by,
            changed_at=self.at,
        )

    def _confirmed(self, row: FieldRow) -> FieldRow:
        state = FieldState.CONFIRMED if row.state is FieldState.EXTRACTED else row.state
        return self._decided(row, row.value, state)

    def _row(self, path: str) -> FieldRow | None:
        return next((row for row in self.rows if row.path == path), None)

    def _with_value(self, path: str) -> FieldRow:
        self._place(path)
        row = self._row(path)
        if row is None or row.value is None:
            raise NotFound(f"{path} has no value to confirm; give it one, or clear it.", path=path)
        return row

    def _editable(self, row: FieldRow) -> bool:
        # Without paths, a table that is not whole is passed over: a lock on it would lose its other rows.
        return row.row_index is None or row.name not in self.cut

    def _place(self, path: str) -> tuple[str, int | None, str]:
        try:
            name, row_index, column = parse_path(path)
        except ValueError:
            raise InvalidInput(
                f"{path!r} names no field; write total, or line_items[0].amount.", field="body.path", path=path
            ) from None
        if row_index is not None and name in self.cut:
            raise TableTooLong(
                f"{name} has more rows than can be corrected here; correct the document and process it again.",
                path=path,
            )
        known = any(row.name == name for row in self.rows)
        if self.schema is not None:
            table = self.schema.tables.get(name)
            good = name in self.schema.fields if row_index is None else table is not None
            good = good and (not column or (table is not None and column in table.columns))
            if not good and not known:
                listed = ", ".join((*self.schema.fields, *(f"{name}[N]" for name in self.schema.tables)))
                raise NotFound(f"The schema {self.schema.name} has no {path}. Known: {listed}.", path=path)
        elif not known:
            raise NotFound(f"The document has no {path}; name a field that the item shows.", path=path)
        return name, row_index, column

    def _a_column(self, name: str) -> str:
        return next((row.column_name for row in self.rows if row.name == name and row.column_name), "amount")

    def _check_next_row(self, name: str, row_index: int | None) -> None:
        if row_index is None:
            return
        rows = {row.row_index for row in self.rows if row.name == name and row.row_index is not None}
        following = max((number for number in rows if number is not None), default=-1) + 1
        if row_index > following:
            raise InvalidInput(f"{name} has {following} rows; the next one is {name}[{following}].", field="body.path")

    def _field(self, name: str, column: str) -> Field | None:
        if self.schema is None:
            return None
        if not column:
            return self.schema.fields.get(name)
        table = self.schema.tables.get(name)
        return None if table is None else table.columns.get(column)

    def _value(self, name: str, column: str, path: str, text: str) -> str:
        if len(text) > MOST_TEXT:
            raise InvalidInput(
                f"The value has {len(text):,} characters; {MOST_TEXT:,} are allowed.", field="value", path=path
            )
        if "\0" in text or any(0xD800 <= ord(char) < 0xE000 for char in text):
            raise InvalidInput(
                "The value is not valid text: it holds a NUL or half a character.", field="value", path=path
            )
        if not text.strip():
            raise InvalidInput(
                f"{path} cannot be empty; clear it if the document has no such value.", field="value", path=path
            )
        field = self._field(name, column)
        if field is None:
            return text.strip()
        if is_canonical(field.type, text):
            return format_amount(Decimal(text)) if field.type is FieldType.AMOUNT else text
        value = canonical(field.type, text, words=field.enum)
        if value is None:
            example = _EXAMPLES.get(field.type, ", ".join(field.enum) or "text")
            raise InvalidInput(
                f"{path}: {text[:80]!r} is no {field.type}; write it as {example}.", field="value", path=path
            )
        return value


_EXAMPLES = {
    FieldType.AMOUNT: "1234.50",
    FieldType.NUMBER: "2.5",
    FieldType.COUNT: "3",
    FieldType.PERCENT: "19",
    FieldType.DATE: "2026-11-16",
    FieldType.TIME: "14:05",
    FieldType.CURRENCY: "EUR",
    FieldType.IBAN: "DE89370400440532013000",
    FieldType.BIC: "DEUTDEFF",
    FieldType.BOOLEAN: "true or false",
}


def applied(rows: Sequence[FieldRow], changes: Sequence[Change]) -> list[FieldRow]:
    """The rows after the changes."""
    after = {change.path: change.after for change in changes}
    kept = [after.pop(row.path) if row.path in after else row for row in rows]
    return [row for row in (*kept, *after.values()) if row is not None]


def rechecked(
    rows: Sequence[FieldRow], extraction: Extraction | None, schema: FieldSchema | None
) -> tuple[list[FieldRow], list[dict[str, object]]]:
    """The rows with the checks that their values pass and fail now, and the checks of the whole document.

    Whether another document has the same paper is asked again when the outputs are written: it is not known of values
    by which the paper is another.
    """
    if extraction is None or schema is None:
        return [_judged(row, row.details) for row in rows], []
    values = {row.name: row.value for row in rows if row.row_index is None}
    judged = check(with_locked(with_values(extraction, values), values | locks_of(rows)), schema)
    cells = _cells(rows, judged)
    told = [
        {"name": one.name, "passed": one.passed, "message": one.message, "fields": list(one.fields)}
        for one in judged.checks
    ]
    return [_judged(row, _details(row, judged, cells)) for row in rows], told


def _cells(rows: Sequence[FieldRow], judged: Extraction) -> dict[str, FieldValue]:
    """The cells by path. In a table of a person's, rows without a value are not counted."""
    found: dict[str, FieldValue] = {}
    locked = locked_tables(rows)
    for table, lines in judged.rows.items():
        numbers = {row.row_index or 0 for row in rows if row.name == table and row.value is not None}
        places = sorted(numbers) if table in locked else range(len(lines))
        for number, line in zip(places, lines, strict=False):
            found |= {f"{table}[{number}].{column}": cell for column, cell in line.items()}
    return found


def _details(row: FieldRow, judged: Extraction, cells: Mapping[str, FieldValue]) -> Mapping[str, Any]:
    found = judged.fields.get(row.name) if row.row_index is None else cells.get(row.path)
    if row.value is None:
        return {**row.details, "passed": [], "failed": [REQUIRED] if row.required else []}
    if found is None or found.value != row.value:
        return row.details
    # Whether a person decided it, the state says.
    passed = [name for name in found.passed if name != CHECKED_BY_A_PERSON]
    return {**row.details, "passed": passed, "failed": list(found.failed)}


def _judged(row: FieldRow, details: Mapping[str, Any]) -> FieldRow:
    if row.state is not FieldState.EXTRACTED:
        needed = False
    elif row.value is None:
        needed = row.required
    else:
        unsure = row.confidence is not None and row.confidence < row.threshold
        needed = unsure or bool(details["failed"])
    return replace(row, details=details, needs_review=needed)


def lacking(rows: Sequence[FieldRow], schema: FieldSchema | None) -> list[str]:
    """What is required for approval and not there."""
    have = {row.name for row in rows if row.value is not None}
    wanted = [row.name for row in rows if row.required and row.row_index is None]
    if schema is not None:
        wanted += schema.required
    return [name for name in dict.fromkeys(wanted) if name not in have]
