"""Labelled documents: what people say stands in them, one JSON object per line of a `labels.jsonl`. Pure.

A row is `{"file": "scans/7.pdf", "fields": {"total": "12.50", "due_date": null}}`. The file is named as seen from the
folder of the labels; null says that the document has no such value. Optional: `layout`, a name under which such
documents are also counted apart; `visible`, which fields can be seen on the page (`{"total": true}`); `schema`, the
field schema to read it by. Whatever else a row holds is left alone.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import PurePosixPath

from docmill.model.errors import InvalidInput

FILE_NAME = "labels.jsonl"
_SHOWN = 5
"""Faults that are told at once."""


class LabelsInvalid(InvalidInput):
    """A file of labels is missing, empty or has faulty rows; the message names their lines."""

    code = "labels_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One document and what is known to stand in it."""

    file: str
    fields: Mapping[str, str | None]
    """By the names of the labels; None: the document has no such value."""
    layout: str | None = None
    visible: Mapping[str, bool] = field(default_factory=dict)
    """Which fields can be seen on the page; empty if nobody said."""
    schema: str | None = None
    line: int = 0
    """Of the file of labels, from 1."""

    def sees(self, name: str) -> bool:
        """Whether the field can be seen; where nobody marked any, all can."""
        return self.visible.get(name, False) if self.visible else True


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What labels may be called."""

    holds: Callable[[str], bool]
    """Whether a name is one of them, however it is spelled."""
    names: Sequence[str]
    """All of them, aliases too."""
    shown: Sequence[str]
    """Those to name to a person."""


def read_labels(
    text: str, source: str = FILE_NAME, *, exists: Callable[[str], bool] = lambda file: True
) -> tuple[Labelled, ...]:
    """The rows of a file of labels, in order; LabelsInvalid names every line that is wrong.

    `exists` says whether the document of a row is there.
    """
    rows: list[Labelled] = []
    faults: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = _row(line, number)
            if row.file in seen:
                raise ValueError(f"{row.file} has a row already, in line {seen[row.file]}")
            if not exists(row.file):
                raise ValueError(f"there is no file {row.file}; add it or remove the row")
        except ValueError as error:
            faults.append(f"{source}:{number}: {error}")
            continue
        seen[row.file] = number
        rows.append(row)
    if faults:
        raise _invalid(faults)
    if not rows:
        raise LabelsInvalid(
            f"{source} holds no labels. Write a line for each document: "
            '{"file": "scan.pdf", "fields": {"total": "12.50"}}'
        )
    return tuple(rows)


def check_names(rows: Sequence[Labelled], names_for: Callable[[Labelled], Known], source: str = FILE_NAME) -> None:
    """Every label names something that can be found; LabelsInvalid names those that do not, with the nearest that does.

    A misspelt name could never be right, and every figure would be worse for it without a word.
    """
    faults = []
    for row in rows:
        known = names_for(row)
        for name in dict.fromkeys([*row.fields, *row.visible]):
            if not known.holds(name):
                close = get_close_matches(name.casefold(), known.names, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known.shown)}"
                faults.append(f"{source}:{row.line}: no field {name!r} can be found; {hint}")
    if faults:
        raise _invalid(faults)


def _invalid(faults: Sequence[str]) -> LabelsInvalid:
    more = len(faults) - _SHOWN
    told = "\n".join(f"  {fault}" for fault in [*faults[:_SHOWN], *([f"and {more} more"] if more > 0 else [])])
    return LabelsInvalid(f"The labels have mistakes; correct these lines:\n{told}", faults=list(faults))


def _row(line: str, number: int) -> Labelled:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError('not an object; write {"file": …, "fields": {…}}')
    file = data.get("file")
    if not isinstance(file, str) or not file:
        raise ValueError('"file" is missing or not a text')
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f'"file" must lie in the folder of the labels, not {file}')
    fields = data.get("fields")
    if not isinstance(fields, dict):
        raise ValueError('"fields" is missing or not an object')
    visible = data.get("visible") or {}
    if not isinstance(visible, dict) or not all(isinstance(seen, bool) for seen in visible.values()):
        raise ValueError('"visible" must say true or false for each field that it names')
    for name in ("layout", "schema"):
        if not isinstance(data.get(name), str | None):
            raise ValueError(f'"{name}" must be a text')
    return Labelled(
        file=str(path),
        fields={name: _value(name, value) for name, value in fields.items()},
        layout=data.get("layout"),
        visible=visible,
        schema=data.get("schema"),
        line=number,
    )


def _value(name: str, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise ValueError(f'the value of "{name}" must be a text, a number or null')
    text = None if value is None else str(value).strip()
    return text or None
