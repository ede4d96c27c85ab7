"""Documents as the command line tells of them: a bar while they are worked on, a table, records for programs."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import ceil
from os.path import basename, commonpath, dirname, isabs, relpath
from shutil import get_terminal_size
from textwrap import fill
from time import monotonic
from typing import TYPE_CHECKING, Any

from docmill.cli.live import bar, drawn
from docmill.cli.output import counted, plain, print_table, printable, styled
from docmill.model.documents import DocumentStatus, NothingRead
from docmill.model.percents import percent

if TYPE_CHECKING:
    from docmill.documents.records import DocumentRecord
    from docmill.model.errors import DocmillError
    from docmill.services.outages import Outage
    from docmill.services.processing import Progress, Watcher

_PARTIES = ("seller_name", "company", "vendor", "vendor_name", "merchant")
_NUMBERS = ("invoice_number", "receipt_number", "number")
_DATES = ("issue_date", "date", "invoice_date")
_TOTALS = ("total", "amount_due", "total_amount")
_APART = timedelta(seconds=10)
"""What one line says of the next try holds for tries that follow within this time."""
_LONGEST_FILE = 100
"""Characters of a file, or of who sent it, in a table that is piped."""


def document_record(
    record: "DocumentRecord", extraction: Mapping[str, Any] | None, *, file: str | None = None
) -> dict[str, Any]:
    """One document for programs, with its extraction as it is stored."""
    found = extraction or {}
    failed = record.status is DocumentStatus.FAILED
    return {
        "file": record.source if file is None else file,
        "id": record.id,
        "status": record.status.value,
        "schema": record.schema_name,
        "schema_version": record.schema_version,
        "document_type": record.document_type,
        "fields": found.get("fields", {}),
        "rows": found.get("rows", {}),
        "confidence": record.confidence,
        "checks": found.get("checks", []),
        "unchecked": found.get("unchecked", []),
        "notes": found.get("notes", []),
        "reader": found.get("reader"),
        "error": {"code": record.error_code, "message": record.error_message} if failed else None,
        "duplicate_of": record.duplicate_of,
        "file_name": record.file_name,
        "format": record.format,
        "size": record.size,
        "sha256": record.sha256,
        "variant": record.variant,
        "locked": dict(record.locked),
        "outputs": list(record.outputs),
        "job_id": record.job_id,
        "created_at": record.created_at,
        "finished_at": record.finished_at,
    }


def absent_record(file: str, fault: "DocmillError") -> dict[str, Any]:
    """A row for a path that names nothing: as the others are, with no document behind it."""
    from docmill.bootstrap.clock import this_moment
    from docmill.documents.intake import refused, shown_name
    from docmill.documents.records import DocumentRecord

    nobody = DocumentRecord(id="", org_id="", file_name=shown_name(file), created_at=this_moment())
    unknown = dict.fromkeys(("id", "variant", "created_at", "finished_at"))
    return document_record(refused(nobody, fault), None, file=file) | unknown


def print_records(records: Iterable[dict[str, Any]]) -> int:
    """All of them as one JSON list on stdout, a line each, never all in memory; how many failed."""
    import orjson

    failed, before = 0, "["
    for record in records:
        failed += record["error"] is not None
        sys.stdout.write(before + "\n" + orjson.dumps(record, default=plain).decode())
        before = ","
    sys.stdout.write("\n]\n" if before == "," else "[]\n")
    return failed


def print_results(records: Iterable[dict[str, Any]]) -> int:
    """All of them as a table on stdout, and what came of them in a line below; how many failed."""
    rows: list[Sequence[Any]] = []
    counts: dict[str, int] = {}
    failed = 0
    for record in records:
        failed += record["error"] is not None
        counts[record["status"]] = counts.get(record["status"], 0) + 1
        rows.append(_row(record))
    _print_rows(rows)
    told = ", ".join(f"{counts[status.value]} {status.value}" for status in DocumentStatus if status.value in counts)
    sys.stdout.write(f"{counted(len(rows), 'document')}{f': {told}' if told else ''}.\n")
    return failed


_HEADS = ("FILE", "STATUS", "TYPE", "FROM", "NUMBER", "DATE", "TOTAL", "SURE", "ID", "NOTE")
_GIVE_WAY = ("FILE", "FROM", "NUMBER")
_NEEDED = 20
"""Characters of a file that a narrow terminal shows before it shows anything of who sent it, or its number."""


def _print_rows(rows: Sequence[Sequence[Any]]) -> None:
    """In a pipe, a line each. In a terminal, remarks stand below the table, where they can be read to their end."""
    if not sys.stdout.isatty():
        print_table(
            _HEADS, [(*(_cut(part) if isinstance(part, str) else part for part in row[:-1]), row[-1]) for row in rows]
        )
        return
    width = get_terminal_size().columns
    files = without_folder([str(row[0]) for row in rows])
    cells = [(file, *row[1:]) for file, row in zip(files, rows, strict=True)]
    places = _fitting(cells, width)
    print_table([_HEADS[at] for at in places], [[row[at] for at in places] for row in cells], give_way=_GIVE_WAY)
    for told in _remarks(files, [str(row[-1]) for row in rows]):
        sys.stdout.write(fill(told, width, initial_indent="- ", subsequent_indent="  ") + "\n")
    if copies := _copies(files, rows):
        sys.stdout.write(fill(copies, width, subsequent_indent="  ") + "\n")
    if rows and _HEADS.index("ID") not in places:
        lacking = [name for at, name in enumerate(_HEADS) if at not in places and name in _GIVE_WAY]
        widen = f"; there is no room for {' and '.join(lacking)}" if lacking else ""
        told = f"`docmill documents show FILE` tells all of one, `docmill show FILE` draws it{widen}."
        sys.stdout.write(fill(told, width) + "\n")


def _remarks(files: Sequence[str], remarks: Sequence[str]) -> list[str]:
    """What went wrong, once for all files of which the same is said. Copies are told apart: they would bury it."""
    alike: dict[str, list[str]] = {}
    for file, remark in zip(files, remarks, strict=True):
        if remark and not _ONLY_A_COPY.fullmatch(remark):
            alike.setdefault(remark, []).append(file)
    return [printable(f"{_first_of(some)}: {remark}") for remark, some in alike.items()]


def _copies(files: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Which file is a copy of which, in a line; of an original that is not among them its id."""
    named = {row[_HEADS.index("ID")]: file for file, row in zip(files, rows, strict=True)}
    told = []
    for file, row in zip(files, rows, strict=True):
        if row[-1].startswith(_COPY):
            original = row[-1].removeprefix(_COPY).partition(": ")[0]
            told.append(printable(f"{file} of {named.get(original, original)}"))
    return f"Copies: {_first_of(told)}." if told else ""


def _first_of(told: Sequence[str]) -> str:
    """Few by name, and how many more there are: a folder has thousands."""
    more = f", and {len(told) - _MOST_TOLD} more (`--json` names all)" if len(told) > _MOST_TOLD else ""
    return f"{', '.join(told[:_MOST_TOLD])}{more}"


def _fitting(rows: Sequence[Sequence[Any]], width: int) -> list[int]:
    """Which columns are shown: ids only where there is room for all, for they are long and the values matter more.

    The file must be known, so where it is narrow, sender and number are left out.
    """
    longest = [max([len(head), *(len(row[at]) for row in rows)]) for at, head in enumerate(_HEADS)]
    left_out = {"NOTE"}
    if sum(longest[at] + 2 for at, head in enumerate(_HEADS) if head not in left_out) - 2 > width:
        left_out.add("ID")
    for head in ("FROM", "NUMBER"):
        giving = [at for at, name in enumerate(_HEADS) if name in _GIVE_WAY and name not in left_out]
        whole = sum(longest[at] + 2 for at, name in enumerate(_HEADS) if at not in giving and name not in left_out)
        if (width - whole) // len(giving) - 2 >= min(_NEEDED, longest[0]):
            break
        left_out.add(head)
    return [at for at, name in enumerate(_HEADS) if name not in left_out]


def _cut(file: str) -> str:
    """A file without its middle if it is so long that it would widen the table for all: `--json` has it whole."""
    if len(file) <= _LONGEST_FILE:
        return file
    half = _LONGEST_FILE // 2
    return f"{file[: half - 1]}…{file[-half:]}"


def without_folder(files: Sequence[str]) -> list[str]:
    """The files without the folder that all of them are in: it says nothing, and takes the room of what does."""
    folders = {dirname(file) for file in files}
    if len(files) < 2 or len({isabs(folder) for folder in folders}) > 1:
        return list(files)
    shared = commonpath(folders)
    return [relpath(file, shared) if shared else file for file in files]


def _row(record: dict[str, Any]) -> Sequence[Any]:
    fields = record["fields"]
    total, currency = _first(fields, _TOTALS), _first(fields, ("currency",))
    sure = record["confidence"]
    broken = [check for check in record["checks"] if not check["passed"]]
    remark = ""
    if record["error"] is not None:
        remark = f"{record['error']['code']}: {record['error']['message']}"
    elif record["duplicate_of"] is not None:
        # What is wrong with the original is wrong with it: a folder that is processed again must not look better.
        remark = f"{_COPY}{record['duplicate_of']}" + (f": {_told(broken)}" if broken else "")
    elif broken:
        remark = _told(broken)
    elif record["status"] == DocumentStatus.COMPLETED.value and record["schema"] is None:
        remark = _unread(record)
    return (
        record["file"],
        styled(record["status"]),
        record["document_type"] or "",
        _first(fields, _PARTIES),
        _first(fields, _NUMBERS),
        _first(fields, _DATES),
        f"{total} {currency}".strip() if total else "",
        "" if sure is None else percent(sure),
        record["id"] or "",
        remark,
    )


def _unread(record: Mapping[str, Any]) -> str:
    """Why nothing was extracted from a document that is whole; to name a schema does not help with every reason."""
    if NothingRead.EMPTY in record["notes"]:
        return "nothing extracted: the page is empty"
    if NothingRead.HARDLY in record["notes"]:
        return "nothing extracted: hardly anything can be read on it; photograph or scan it again"
    kind = (record["document_type"] or "other").replace("_", " ")
    why = "it is of no known type" if kind == "other" else f"there is no schema for papers of the type {kind}"
    return f"nothing extracted: {why}; --schema NAME reads it all the same"


_COPY = "duplicate of "
_ONLY_A_COPY = re.compile(rf"{_COPY}\S+")
_MOST_TOLD = 3
"""Checks of a document that are told in the table (`docmill documents show` has all), and files of one remark."""


def _told(checks: Sequence[Mapping[str, Any]]) -> str:
    """What checks that failed say; of many the first ones."""
    told = list(dict.fromkeys(check["message"] for check in checks))
    more = len(told) - _MOST_TOLD
    return " ".join(told[:_MOST_TOLD]) + (f" And {counted(more, 'check')} more." if more > 0 else "")


def _first(fields: dict[str, Any], names: Sequence[str]) -> str:
    return next((str(fields[name]["value"]) for name in names if name in fields), "")


_SILENCE = 10.0
"""Seconds without a word after which a run that is piped says where it is."""


@contextmanager
def progress_shown(*, quiet: bool) -> "Iterator[Watcher]":
    """Show on stderr how a run goes: live in a terminal, else a line now and then unless `quiet`."""
    if sys.stderr.isatty():
        seen: list[Progress] = []

        def note(progress: "Progress") -> None:
            seen[:] = [progress]

        with drawn(lambda console: _line(seen[0], console.width) if seen else ""):
            yield note
        return
    told, since = 0, monotonic()
    waits = Waits()

    def tell(progress: "Progress") -> None:
        nonlocal told, since
        if not quiet and (line := waits.line(progress.outage)):
            print(line, file=sys.stderr, flush=True)
            since = monotonic()
        tenth = progress.done * 10 // max(1, progress.total)
        if not quiet and (tenth > told or monotonic() - since >= _SILENCE):
            told, since = tenth, monotonic()
            where = f", at {printable(progress.at)}" if progress.at else ""
            done = f"{progress.done} of {counted(progress.total, 'document')} done"
            print(f"{done}{where}", file=sys.stderr, flush=True)

    yield tell


def _line(progress: "Progress", width: int) -> Any:
    from rich.text import Text

    line = Text.assemble(
        (bar(progress.done, progress.total, min(40, width // 3)), "cyan"),
        f" {progress.done}/{progress.total} ",
        overflow="ellipsis",
        no_wrap=True,
    )
    for status in DocumentStatus:
        if progress.ended.get(status):
            line.append_text(styled(status.value)).append(f" {progress.ended[status]}  ")
    if progress.at:
        # The first pages take seconds: that something happens must be seen before any is done.
        line.append(f"at {printable(basename(progress.at))}", style="dim")
    # On a line of its own: what it waits for, and how long, must not be cut.
    return line.append(f"\n{waits_for(progress.outage)}", "yellow") if progress.outage else line


def waits_for(outage: "Outage") -> str:
    """What a run waits for, and how long."""
    when = f"next try in {ceil(outage.seconds)} s" if outage.seconds > 0 else "it is being tried"
    return f"{outage.model} {outage.said}; {when}"


class Waits:
    """Lines for a pipe about a model that is away: one for each try, and not one for each of many documents."""

    def __init__(self) -> None:
        self._told: datetime | None = None

    def line(self, outage: "Outage | None") -> str:
        """What is to be told now; empty if that was told."""
        if outage is None or outage.seconds == 0:
            return ""
        if self._told is not None and outage.next_try < self._told + _APART:
            return ""
        self._told = outage.next_try
        return waits_for(outage)
