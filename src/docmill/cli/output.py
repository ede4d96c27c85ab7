"""What reaches stdout: JSON for programs, text and tables for people."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES = {
    "COMPLETED": "green",
    "PARTIAL_SUCCESS": "yellow",
    "FAILED": "bold red",
    "CANCELLED": "magenta",
    "IN_PROGRESS": "cyan",
    "WAITING": "blue",
    "READY": "default",
    "PENDING": "bright_black",
    "SKIPPED": "bright_black",
    "queued": "bright_black",
    "processing": "cyan",
    "completed": "green",
    "duplicate": "yellow",
    "failed": "bold red",
    "pending": "bright_black",
    "in_review": "cyan",
    "approved": "green",
    "corrected": "yellow",
    "rejected": "bold red",
    "look": "bold yellow",
    "info": "bright_black",
    "warning": "yellow",
    "error": "red",
    "critical": "bold red",
    "ok": "green",
    "warn": "yellow",
    "fail": "bold red",
    "unchecked": "bright_black",
}
_GAP = 2
"""Blanks between columns."""
_LEAST = 4
"""Characters that a column keeps that gives way."""
_UNBOUNDED = 10_000
"""Columns when nobody looks: a line in a pipe is never folded or cut."""


def print_json(value: object) -> None:
    """One JSON document on stdout, laid out for reading."""
    import orjson

    _write(orjson.dumps(value, default=plain, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def print_json_line(value: object) -> None:
    """One line of JSON on stdout, at once: part of a stream."""
    import orjson

    _write(orjson.dumps(value, default=plain, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.flush()


def _write(data: bytes) -> None:
    sys.stdout.write(data.decode())


def plain(value: object) -> object:
    """What orjson cannot write by itself, as plain data."""
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def record(value: Any, **more: object) -> dict[str, object]:
    """A frozen record as a JSON object, with what else belongs to it."""
    assert is_dataclass(value)
    return {field.name: getattr(value, field.name) for field in fields(value)} | more


def console(stream: TextIO) -> "Console":
    """A rich console that keeps to NO_COLOR, and to no width at all when it is not a terminal."""
    from rich.console import Console

    width = None if stream.isatty() else _UNBOUNDED
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def print_table(heads: Sequence[str], rows: Sequence[Sequence["str | Text"]], *, give_way: Sequence[str] = ()) -> None:
    """A table on stdout. Columns in `give_way` are cut when the terminal is narrow; the others never are."""
    print_drawn(table(heads, rows, give_way=give_way))


def print_drawn(drawing: Any) -> None:
    """Something rich can draw, on stdout, without the blanks it pads lines with."""
    target = console(sys.stdout)
    with target.capture() as capture:
        target.print(drawing)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def table(heads: Sequence[str], rows: Sequence[Sequence["str | Text"]], *, give_way: Sequence[str] = ()) -> Any:
    """The table as something rich can draw."""
    from rich.table import Table

    grid = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    cells = [[printable(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widest = [max([len(head), *(len(row[place]) for row in cells)]) for place, head in enumerate(heads)]
    giving = [place for place, head in enumerate(heads) if head in give_way]
    for head, width in zip(heads, _narrowed(widest, giving, console(sys.stdout).width), strict=True):
        # A least width of all it holds, or rich would cut every column a little.
        grid.add_column(head, no_wrap=True, overflow="ellipsis", min_width=width, max_width=width)
    for row in cells:
        grid.add_row(*row)
    return grid


def _narrowed(widths: Sequence[int], giving: Sequence[int], room: int) -> list[int]:
    """Widths that fit the room if they can: of the columns that give way, the widest gives first."""
    fitted = list(widths)
    while sum(fitted) + _GAP * len(fitted) > room:
        place = max(giving, key=fitted.__getitem__, default=None)
        if place is None or fitted[place] <= _LEAST:
            break
        fitted[place] -= 1
    return fitted


def fitting(heads: Sequence[str], rows: Sequence[Sequence[str]], *, least: int = 12) -> int:
    """How many columns from the left fit the terminal, each with so many characters at least, or all that it has."""
    room, kept = console(sys.stdout).width, 0
    for place, head in enumerate(heads):
        room -= min(least, max([len(head), *(len(row[place]) for row in rows)])) + _GAP
        if room < 0:
            break
        kept += 1
    return max(1, kept)


_FOR_ALL = 120
"""Columns of a terminal from which on whole ids and times stand in lists."""
_SHORT = (18, 23)
"""Characters of an id: up to its third or fourth dash."""


def is_narrow() -> bool:
    """Whether somebody looks at a terminal that has no room for whole ids and times."""
    return sys.stdout.isatty() and get_terminal_size().columns < _FOR_ALL


def short_ids(ids: Sequence[str]) -> list[str]:
    """As much of each as tells it from the others; the first digits are enough wherever one is asked for."""
    for length in _SHORT:
        if len({each[:length] for each in ids}) == len(ids):
            return [each[:length] for each in ids]
    return list(ids)


def styled(word: str) -> "Text":
    """A status in its colour."""
    from rich.text import Text

    return Text(word, style=STYLES.get(word, ""))


def printable(text: str) -> str:
    """One printable line: data may not move the cursor of whoever looks at it."""
    return "".join(char if char.isprintable() else " " for char in text)


def print_text(text: str) -> None:
    """Text of many lines on stdout: as it is into a pipe, and harmless on a terminal."""
    if sys.stdout.isatty():
        text = "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)
    sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")


def when(moment: datetime | None) -> str:
    """A moment in local time."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""


def took(length: timedelta | None) -> str:
    """A length of time, short."""
    if length is None:
        return ""
    seconds = max(0.0, length.total_seconds())
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds >= 0.1 else f"{seconds * 1000:.0f} ms"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def note_page(shown: int, limit: int, last: str | None = None) -> None:
    """When a page is full, say on stderr how to see more of the list."""
    if shown == limit:
        ways = f"--after {last}, or --limit" if last else "--limit"
        print(f"note: {shown} are shown; for more: {ways}.", file=sys.stderr)


def note_left_out(heads: Sequence[str]) -> None:
    """When columns found no room, say on stderr which, and where they are."""
    if heads:
        print(f"note: no room for {' and '.join(heads)}; widen the terminal, or take --json.", file=sys.stderr)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 step`, `2 steps`; the plural is given where an s does not make it."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
