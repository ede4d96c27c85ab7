"""A person's values and another run's: the person's stand, whatever the run reads."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from docmill.extraction.locking import with_locked
from docmill.extraction.result import Extraction, FieldValue, Reader
from docmill.model.review import FieldState
from docmill.review.fields import FieldRow, found_in
from docmill.review.merging import agrees, locks_of, merged, said_since, with_locks
from docmill.testing.plans import profile

names = st.sampled_from(["number", "total", "due"])
values = st.sampled_from(["1", "2", "3"])
scalars = st.dictionaries(names, values)
tables = st.lists(st.dictionaries(st.sampled_from(["what", "amount"]), values, min_size=1), max_size=3)


def read(fields: Mapping[str, str], lines: Sequence[Mapping[str, str]]) -> Extraction:
    def found(value: str) -> FieldValue:
        return FieldValue(value=value, raw=value, confidence=0.9)

    return Extraction(
        schema="slip",
        schema_version="1",
        reader=Reader.LOCAL,
        document_type="slip",
        fields={name: found(value) for name, value in fields.items()},
        rows={"lines": [{column: found(value) for column, value in line.items()} for line in lines]},
    )


def fixed(row: FieldRow, value: str | None) -> FieldRow:
    state = FieldState.CLEARED if value is None else FieldState.CORRECTED
    return replace(row, value=value, state=state, locked=True)


@given(scalars, tables, scalars, tables, st.sets(st.integers(0, 8)), st.none() | values)
@profile(300)
def test_nothing_that_a_person_fixed_is_changed_by_another_run(
    fields: dict[str, str],
    lines: list[dict[str, str]],
    later: dict[str, str],
    later_lines: list[dict[str, str]],
    touched: set[int],
    said: str | None,
) -> None:
    first = found_in(read(fields, lines), None).rows
    before = [fixed(row, said) if place in touched else row for place, row in enumerate(first)]
    second = read(later, later_lines)
    after = merged(before, found_in(second, None).rows)
    assert locks_of(after) == locks_of(before)
    assert len({row.path for row in after}) == len(after)
    # What the document keeps locked makes of the new reading what the reviewer sees.
    kept = with_locked(second, locks_of(before))
    shown = {row.name: row.value for row in after if row.row_index is None and row.value is not None}
    assert shown == {name: found.value for name, found in kept.fields.items()}
    for row in after:
        machine = later.get(row.name) if row.row_index is None else None
        if row.locked and row.row_index is None and machine is not None:
            assert (row.proposed, row.differs) == ((None, False) if machine == row.value else (machine, True))


@given(scalars, tables)
@profile(100)
def test_the_same_reading_agrees_with_itself_and_another_does_not(
    fields: dict[str, str], lines: list[dict[str, str]]
) -> None:
    rows = found_in(read(fields, lines), None).rows
    assert agrees(rows, rows)
    assert not agrees(rows, found_in(read({**fields, "number": "other"}, lines), None).rows)
    assert merged(rows, rows) == list(rows)


@given(scalars, tables, scalars, tables)
@profile(100)
def test_locks_that_a_duplicate_brings_along_are_locked_in_its_item(
    fields: dict[str, str], lines: list[dict[str, str]], locked: dict[str, str], rows: list[dict[str, str]]
) -> None:
    locks = {**locked, **({"lines": rows} if rows else {})}
    found = with_locks(found_in(read(fields, lines), None).rows, locks)
    assert locks_of(found) == locks


@given(scalars, tables, scalars, tables, scalars, tables)
@profile(100)
def test_what_was_said_elsewhere_since_is_said_beside_what_was_read(
    fields: dict[str, str],
    lines: list[dict[str, str]],
    before: dict[str, str],
    rows_before: list[dict[str, str]],
    since: dict[str, str],
    rows_since: list[dict[str, str]],
) -> None:
    found = found_in(read(fields, lines), None).rows
    held = with_locks(found, {**before, **({"lines": rows_before} if rows_before else {})})
    locks = {**since, **({"lines": rows_since} if rows_since else {})}
    after = said_since(held, locks)
    assert locks_of(after) == {**locks_of(held), **locks}
    assert [row.position for row in after] == list(range(len(after)))
    assert said_since(after, locks) == after
    read_as = {row.path: row.extracted for row in after if row.row_index is None and row.extracted is not None}
    assert read_as == fields
