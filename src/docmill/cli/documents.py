"""`docmill documents`: list, show, retry, reprocess, remove, expire."""

import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import fill
from typing import Annotated, Any

from cyclopts import App, Parameter

from docmill.cli import document_failures, document_reruns
from docmill.cli.acting import acting_for
from docmill.cli.options import Json, Limit
from docmill.cli.output import (
    counted,
    is_narrow,
    note_left_out,
    note_page,
    print_json,
    print_table,
    printable,
    short_ids,
    styled,
    when,
)
from docmill.model.documents import DocumentStatus
from docmill.model.percents import percent

app = App(name="documents", help="Look at documents and what was found in them.")

DocumentId = Annotated[str, Parameter(name="DOCUMENT", help="The document's id, its first digits, or its file.")]


@app.command(name="list")
def list_documents(
    *,
    status: Annotated[
        DocumentStatus | None, Parameter(metavar="STATUS", help="Only those with this status.", show_default=False)
    ] = None,
    everything: Annotated[bool, Parameter(name="--all", negative="", help="Also duplicates.")] = False,
    limit: Limit = 50,
    after: Annotated[str | None, Parameter(metavar="DOCUMENT", help="Go on after this one: the next page.")] = None,
    json: Json = False,
) -> int:
    """List documents, the newest first; those that are duplicates of others only if they are asked for."""
    from docmill.cli.opening import opened
    from docmill.cli.output import record
    from docmill.cli.process_text import without_folder
    from docmill.services.workers import alive_workers

    with opened() as installation:
        documents = installation.documents
        before = None if after is None else documents.find_id(after)
        asked = everything or status is DocumentStatus.DUPLICATE
        found = documents.list(status=status, duplicates=asked, before=before, limit=limit)
        left_out = 0 if asked or status is not None else documents.duplicates()
        unfinished = sum(not each.status.finished for each in found)
        idle = unfinished and not alive_workers(installation.database)
    if left_out:
        print(f"note: {counted(left_out, 'duplicate')} left out; --all lists them too.", file=sys.stderr)
    if json:
        print_json([record(each) for each in found])
        return 0
    # With their folders, unless all are in one: names may repeat in others.
    files = without_folder([each.source or each.file_name for each in found])
    narrow = is_narrow()
    ids = short_ids([each.id for each in found]) if narrow else [each.id for each in found]
    wrong = any(each.error_code for each in found)
    rows = [
        (
            name,
            styled(each.status.value),
            file,
            each.document_type or "",
            *((each.error_code or "",) if wrong else ()),
            "" if each.confidence is None else percent(each.confidence),
            *(() if narrow else (when(each.created_at),)),
        )
        for name, file, each in zip(ids, files, found, strict=True)
    ]
    heads = (
        "DOCUMENT",
        "STATUS",
        "FILE",
        "TYPE",
        *(("ERROR",) if wrong else ()),
        "SURE",
        *(() if narrow else ("CREATED",)),
    )
    print_table(heads, rows, give_way=("FILE", "TYPE"))
    if narrow and found:
        note_left_out(["CREATED"])
    note_page(len(found), limit, found[-1].id if found else None)
    failed = sum(each.status is DocumentStatus.FAILED for each in found)
    if failed:
        ways = "`docmill documents retry --failed` tries again, `remove --failed` takes them off the list"
        print(f"note: {counted(failed, 'document')} failed: {ways}.", file=sys.stderr)
    if idle:
        told = f"{counted(unfinished, 'document')} not done, and nobody works on them"
        print(f"note: {told}: run the same `docmill process` again, or `docmill worker`.", file=sys.stderr)
    return 0


app.command(document_failures.retry, name="retry")
app.command(document_reruns.reprocess, name="reprocess")
app.command(document_failures.remove, name="remove")


@app.command
def show(document: DocumentId, /, *, json: Json = False) -> int:
    """Show a document: where it stands, its fields with their evidence, which checks hold, the sections of a book."""
    from docmill.cli.opening import opened
    from docmill.cli.process_text import document_record
    from docmill.documents.reading import Format

    with opened() as installation:
        found = installation.documents.get(installation.documents.find_id(document))
        record = document_record(found, installation.documents.extraction_json(found))
        # Only books have them, and the reading of a long scan is not loaded in vain.
        reading = installation.documents.reading(found) if found.format == Format.EPUB.value else None
    sections = () if reading is None else reading.sections
    if json:
        told = [{"number": number, "title": each.title, "text": each.text} for number, each in enumerate(sections, 1)]
        print_json(record | {"sections": told})
        return 0
    heads = ("id", "file", "status", "document_type", "schema", "confidence", "reader", "duplicate_of", "job_id")
    for name in heads:
        if record[name] is not None:
            print(f"{name.replace('_', ' '):<14} {printable(str(record[name]))}")
    if record["error"] is not None:
        print(f"{'error':<14} {record['error']['code']}: {printable(record['error']['message'])}")
    for path in record["outputs"]:
        print(f"{'output':<14} {printable(path)}")
    if record["fields"]:
        print()
        rows = [
            (name, each["value"], percent(each["confidence"]), _where(each)) for name, each in record["fields"].items()
        ]
        print_table(("FIELD", "VALUE", "SURE", "WHERE"), rows, give_way=("VALUE",))
    for name, lines in record["rows"].items():
        if lines:
            columns = list(dict.fromkeys(column for line in lines for column in line))
            print(f"\n{name}")
            cells = [[line[column]["value"] if column in line else "" for column in columns] for line in lines]
            print_table([column.upper() for column in columns], cells, give_way=[column.upper() for column in columns])
    if sections:
        print()
        parts = [
            (str(number), each.title or "", str(len(each.text.split()))) for number, each in enumerate(sections, 1)
        ]
        print_table(("SECTION", "TITLE", "WORDS"), parts, give_way=("TITLE",))
    if record["checks"] or record["unchecked"]:
        print()
        _print_checks(record["checks"], record["unchecked"])
    for note in record["notes"]:
        print(f"note: {printable(note)}")
    return 0


def _print_checks(checks: Sequence[dict[str, Any]], unchecked: Sequence[dict[str, Any]]) -> None:
    """Each with all that it says, on as many lines as that takes: why one failed is what people look for."""
    judged = [("ok" if each["passed"] else "fail", each) for each in checks] + [
        ("unchecked", each) for each in unchecked
    ]
    if not sys.stdout.isatty():
        print_table(("CHECK", "", "FOUND"), [(each["name"], styled(word), each["message"]) for word, each in judged])
        return
    width = get_terminal_size().columns
    for word, each in judged:
        line = f"{word:<4} {each['name']}: {printable(each['message'])}"
        print(fill(line, width, subsequent_indent="     "))


def _where(field: dict[str, object]) -> str:
    evidence = field["evidence"]
    assert isinstance(evidence, list)
    return f"page {evidence[0]['page']}" if evidence else "not on a page"


@app.command
def expire(
    *,
    older_than: Annotated[
        str | None, Parameter(metavar="TIME", help="Also of documents that were done so long ago: 90d, 12h.")
    ] = None,
    json: Json = False,
) -> int:
    """Delete originals whose time is up; what was extracted from them stays.

    How long originals are kept is the setting storage.originals_expire_after; workers see to it by themselves.
    """
    from docmill.services.retention import long_ago

    with acting_for() as (installation, acting):
        before = None if older_than is None else long_ago(installation.database, older_than)
        expired = installation.documents.by(acting).expire(before=before)
    if json:
        print_json({"expired": expired})
    else:
        print(f"{counted(expired, 'original')} expired.")
    return 0
