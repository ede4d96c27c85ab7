"""`docmill process`: documents in, data out."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from docmill.cli.acting import acting_for
from docmill.cli.options import Json
from docmill.cli.output import counted, printable
from docmill.cli.sources import STDIN

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.documents.intake import FileMissing, Source
    from docmill.engine.children import Children
    from docmill.services.processing import Entry, Order, Progress
    from docmill.settings import Settings

_MOST_COUNTED = 64
"""Files that are counted before any is looked at: there are fewer children than that."""
_HOW_TO_GO_ON = "The same command goes on from here."


def process(
    paths: Annotated[
        tuple[str, ...],
        Parameter(name="PATHS", negative="", help="Files, folders (all files below them), or - for standard input."),
    ],
    /,
    *,
    schema: Annotated[
        str | None,
        Parameter(metavar="NAME|FILE", help="Which fields to look for; without it the document's type decides."),
    ] = None,
    model: Annotated[
        str | None, Parameter(metavar="NAME", help="Ask this model too, such as google:gemini-2.5-flash.")
    ] = None,
    out: Annotated[Path | None, Parameter(metavar="DIR", help="Folder for the outputs; default: the settings.")] = None,
    json: Json = False,
) -> int:
    """Turn documents into data: read them, extract their fields, check them, write JSON and Parquet.

    Each document is a job of the template document-processing, stored at the first use. Interrupt it at any time: the
    same command goes on where it was. Bytes that were processed before are not processed again (status duplicate).
    A path that names nothing is told before the work and stored nowhere. Exits with 1 if any document failed.
    """
    from docmill.bootstrap import retry_policy, schema_overrides
    from docmill.cli.errors import WrongUse
    from docmill.cli.opening import read_settings

    if not paths:
        raise WrongUse("Name files or folders, or - for standard input: docmill process invoices/")
    settings = read_settings()
    with _warmed(settings, paths) as children, acting_for(settings=settings) as (installation, acting):
        from docmill.cli.opening import check_demands, model_named
        from docmill.cli.process_text import print_records, print_results
        from docmill.documents import intake
        from docmill.extraction.models import fingerprint
        from docmill.outputs.files import make_sure_of
        from docmill.services.ordering import order_of, processing_template

        named = [intake.STDIN if path == STDIN else path for path in paths]
        check_demands(installation.settings, schema)
        order = order_of(
            schema=schema,
            model=None if model is None else model_named(installation, model),
            out=out,
            blobs=installation.blobs,
            folders=installation.settings.schema_folders,
            overrides=schema_overrides(installation.settings),
            learned=fingerprint(installation.settings.home / "models"),
        )
        template = processing_template(
            installation.templates, installation.catalogue, retry_policy(installation.settings)
        )
        target = out or installation.document_work.outputs.root
        make_sure_of(target)
        asked = list(intake.sources(named, besides=(installation.settings.home, target)))
        if not asked and not json:
            print("No files were found there. Hidden files are passed over unless they are named.", file=sys.stderr)
            return 0
        absent = {source: fault for source in asked if (fault := intake.absent(source)) is not None}
        inputs = [source for source in asked if source not in absent]
        entries: Sequence[Entry] = ()
        if inputs:
            for fault in absent.values():
                # Better known now than after an hour's work on the others.
                print(f"note: {printable(fault.message)}", file=sys.stderr)
            run_id = installation.processing.by(acting).open_run(named, order)
            entries = _worked_on(installation, children, run_id, inputs, order, template.id, quiet=json)
        records = _in_order(asked, absent, _records(installation, entries))
        failed = print_records(records) if json else print_results(records)
        if out is not None and target.resolve() != installation.document_work.outputs.root.resolve():
            where = quote(str(target))
            told = f"the outputs are in {target}: `docmill query --from {where}` and `export --from {where}` ask them"
            print(printable(f"note: {told}; without it both look where the settings say."), file=sys.stderr)
    return 1 if failed else 0


def _worked_on(
    installation: "Installation",
    children: "Children",
    run_id: str,
    inputs: "Sequence[Source]",
    order: "Order",
    template_id: str,
    *,
    quiet: bool,
) -> "Sequence[Entry]":
    """Work on the inputs to their ends, and show how it goes."""
    from docmill.cli.interrupts import tell_waiting
    from docmill.cli.process_text import progress_shown
    from docmill.workers.process import alongside

    worker, processing = installation.worker(children=children), installation.processing
    done = 0

    def note(progress: "Progress") -> None:
        nonlocal done
        done = progress.done
        watch(progress)

    try:
        with progress_shown(quiet=quiet) as watch, alongside(worker, waiting=tell_waiting) as working:
            try:
                entries = processing.run(run_id, inputs, order, template_id, watch=note, check=working.check)
            except KeyboardInterrupt:
                print("Finishing the pages that are being read. Ctrl-C once more ends at once.", file=sys.stderr)
                raise
    except KeyboardInterrupt:
        told = f"{done} of {counted(len(inputs), 'document')}"
        print(f"Interrupted: {told} done. {_HOW_TO_GO_ON}", file=sys.stderr)
        raise
    processing.close_run(run_id)
    return entries


@contextmanager
def _warmed(settings: "Settings", paths: Sequence[str]) -> "Iterator[Children]":
    """Children that import what they will need while we import, open and store what we do: they take as long.

    An interrupt ends them too: by then the worker has given back what it did, or this process ends at once.
    """
    from docmill.bootstrap import children_of
    from docmill.cli.interrupts import second_ends_at_once
    from docmill.steps import document_children

    children = children_of(settings)
    with second_ends_at_once(f"Interrupted. {_HOW_TO_GO_ON}", before=children.abandon):
        try:
            children.warm(document_children.warm, _files(paths))
            yield children
        finally:
            children.close()


def _files(paths: Sequence[str]) -> int:
    """About how many there are, as far as it matters: a child that nobody needs costs a second of CPU."""
    count = 0
    for path in paths:
        for _, _, names in os.walk(path) if os.path.isdir(path) else [("", [], [path])]:
            count += len(names)
            if count >= _MOST_COUNTED:
                return count
    return count


def _records(installation: "Installation", entries: "Sequence[Entry]") -> Iterator[dict[str, Any]]:
    """One record per input, a few at a time."""
    from docmill.cli.process_text import document_record
    from docmill.model.errors import DocmillError
    from docmill.services.processing import CHUNK

    for start in range(0, len(entries), CHUNK):
        some = entries[start : start + CHUNK]
        found = installation.documents.many([entry.document_id for entry in some])
        for entry in some:
            record = found[entry.document_id]
            try:
                extraction = installation.documents.extraction_json(record)
            except DocmillError as fault:
                # What one document lost must not cost the others their rows.
                error = {"code": fault.code, "message": fault.message}
                yield document_record(record, None, file=entry.shown) | {"error": error}
            else:
                yield document_record(record, extraction, file=entry.shown)


def _in_order(
    asked: "Sequence[Source]", absent: "Mapping[Source, FileMissing]", found: Iterator[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """A record for each input in the order in which they were asked for, those that are not there among them."""
    from docmill.cli.process_text import absent_record

    for source in asked:
        yield next(found) if source not in absent else absent_record(source.shown, absent[source])
