"""`docmill eval`: how right the extraction of a labelled folder is, and how far its confidence can be trusted."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from docmill.cli.acting import Organisation, acting_for
from docmill.cli.options import Json
from docmill.cli.output import counted, print_json, print_table
from docmill.model.percents import percent

if TYPE_CHECKING:
    from docmill.extraction.scoring import DocumentScore, Summary
    from docmill.services.evaluation import LabelledFolder, Processed
    from docmill.settings import Settings

EXAMPLES = """\
Examples:
  docmill eval receipts/                       labels.jsonl and its documents
  docmill eval --reviewed                      what people approved here
  docmill eval receipts/ --wrong               and every value that is wrong
  docmill eval mixed/ --schema invoice --json  for a program"""


def evaluate(
    folder: Annotated[
        Path | None, Parameter(name="DIR", help="A folder with labels.jsonl and the documents it speaks of.")
    ] = None,
    /,
    *,
    reviewed: Annotated[
        bool, Parameter(negative="", help="Instead of a folder, the documents that people approved here.")
    ] = False,
    schema: Annotated[
        str | None,
        Parameter(metavar="NAME|FILE", help="Read all by this schema; without it the document's type decides."),
    ] = None,
    model: Annotated[
        str | None, Parameter(metavar="NAME", help="Ask this model too, such as google:gemini-2.5-flash.")
    ] = None,
    wrong: Annotated[bool, Parameter(negative="", help="List every value that is wrong.")] = False,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Process a labelled folder and say how right the result is.

    A line of labels.jsonl is {"file": "scan.pdf", "fields": {"total": "12.50", "due_date": null}}. The documents are
    processed as `docmill process` would, in a temporary installation: nothing of it is kept. Amounts and dates are
    compared by value; text exactly, with case and white space folded, and loosely, letters and digits only.
    """
    from docmill.cli.opening import read_settings
    from docmill.services.evaluation import apart, score

    with (
        labelled_documents(folder, reviewed=reviewed, organisation=organisation, schema=schema) as labelled,
        apart(read_settings()) as settings,
    ):
        processed = processed_in(settings, labelled, schema=schema, model=model, quiet=json)
    scores, summary = score(labelled, processed)
    if json:
        answer = summary.as_json()
        print_json(answer | {"wrong": wrong_values(scores)} if wrong else answer)
        return 0
    _print(summary)
    if wrong:
        print()
        _print_wrong(scores)
    return 0


@contextmanager
def labelled_documents(
    folder: Path | None, *, reviewed: bool, organisation: str | None = None, schema: str | None = None
) -> "Iterator[LabelledFolder]":
    """A labelled folder, or what people of one organisation approved, in a folder that is gone afterwards."""
    from docmill.cli.errors import WrongUse
    from docmill.cli.opening import read_settings
    from docmill.extraction.schema import available
    from docmill.services.evaluation import check_labels, open_folder
    from docmill.services.review_labels import reviewed_folder

    if reviewed == (folder is not None):
        raise WrongUse("Name a folder with labels.jsonl, such as labelled/, or give --reviewed.")
    if organisation is not None and folder is not None:
        raise WrongUse("A folder is nobody's: --organisation goes with --reviewed.")
    if folder is not None:
        found = open_folder(folder)
        check_labels(found, schema, read_settings().schema_folders)
        yield found
        return
    with tempfile.TemporaryDirectory(prefix="docmill-reviewed-") as name:
        with acting_for(organisation) as (installation, acting):
            known = frozenset(available(installation.settings.schema_folders))
            place = Path(name)
            found = reviewed_folder(
                installation.database, installation.blobs, place, org_id=acting.org_id, schemas=known
            )
        yield found


def processed_in(
    settings: "Settings",
    folder: "LabelledFolder",
    *,
    schema: str | None,
    model: str | None,
    quiet: bool,
    readings: bool = False,
) -> "Processed":
    """Every document of the folder through the shipped template, both cores at work."""
    from docmill.bootstrap import open_app
    from docmill.cli.opening import check_demands, model_named
    from docmill.cli.process_text import progress_shown
    from docmill.documents.intake import Source
    from docmill.extraction.schema import FieldSchema, load_schema
    from docmill.services.evaluation import Outcome, Processed, by_schema
    from docmill.services.ordering import order_of, processing_template
    from docmill.workers.process import alongside

    found: dict[str, Outcome] = {}
    schemas: dict[str, FieldSchema] = {}
    folders = settings.schema_folders
    check_demands(settings, schema)
    with open_app(settings) as installation, alongside(installation.worker()) as worker:
        processing, documents = installation.processing, installation.documents
        template = processing_template(installation.templates, installation.catalogue)
        named = None if model is None else model_named(installation, model)
        for asked, rows in by_schema(folder, schema).items():
            order = order_of(schema=asked, model=named, out=None, blobs=installation.blobs, folders=folders)
            inputs = [Source(path=folder.file(row), shown=row.file) for row in rows]
            run = processing.open_run([str(source.path) for source in inputs], order)
            with progress_shown(quiet=quiet) as watch:
                entries = processing.run(run, inputs, order, template.id, watch=watch, check=worker.check)
            records = documents.many([entry.document_id for entry in entries])
            for row, entry in zip(rows, entries, strict=True):
                record = records[entry.document_id]
                extraction = documents.extraction(record)
                found[row.file] = Outcome(
                    extraction=extraction,
                    error=None if record.error_code is None else (record.error_code, record.error_message or ""),
                    reading=documents.reading(record) if readings else None,
                )
                if extraction is not None and extraction.schema and extraction.schema not in schemas:
                    schemas[extraction.schema] = load_schema(asked or extraction.schema, folders)
    return Processed(documents=found, schemas=schemas)


def wrong_values(scores: "Sequence[DocumentScore]") -> list[dict[str, object]]:
    """Every value that is not exactly right, the most confident mistakes first; documents that failed before all."""
    rows: list[dict[str, object]] = []
    for document in scores:
        for field in document.fields:
            if not field.exact:
                rows.append(
                    {
                        "file": document.file,
                        "field": field.field,
                        "expected": field.expected,
                        "found": field.found,
                        "confidence": field.confidence,
                        "loose": field.loose,
                        "visible": field.visible,
                        "error": document.error,
                    }
                )
    return sorted(rows, key=lambda row: (row["error"] is None, -float(row["confidence"] or 0.0)))  # type: ignore[arg-type]


def _print(summary: "Summary") -> None:
    from rich.text import Text

    def share(value: float | None) -> Text:
        return Text("–" if value is None else f"{value:.3f}", justify="right")

    rows = [
        (name, Text(str(field.n), justify="right"), share(field.exact), share(field.loose))
        for name, field in summary.by_field.items()
    ]
    print_table(("FIELD", "N", "EXACT", "LOOSE"), rows)
    print()
    parts = {"all": summary, **summary.by_layout} if summary.by_layout else {"all": summary}
    print_table(
        ("LAYOUT", "DOCUMENTS", "F1", "MICRO", "VISIBLE", "LOOSE", "AUROC", "ECE", "PASS AT 99 %"),
        [
            (
                name,
                Text(str(part.documents), justify="right"),
                *map(share, (part.exact_f1, part.micro, part.micro_visible, part.loose_mean, part.auroc, part.ece)),
                share(part.straight_through_99),
            )
            for name, part in parts.items()
        ],
    )
    print(f"\n{_told(summary)}")


FEW = 100
"""Documents of which one mistake more or less would move what is said of 99 %."""


def _told(summary: "Summary") -> str:
    """The figures in words, for whoever does not live with them."""
    count = counted(summary.documents, "document")
    if summary.micro_visible is None:
        parts = [f"{count}: {percent(summary.micro, 1)} of the labels are right"]
    else:
        parts = [
            f"{count}: {percent(summary.micro_visible, 1)} of the values that can be seen on the page are right, "
            f"{percent(summary.micro, 1)} of all labels"
        ]
    if summary.failed:
        parts.append(f"{counted(summary.failed, 'document')} could not be read")
    if summary.threshold_99 is None:
        parts.append("no confidence is high enough for 99 % of values to be right")
    else:
        parts.append(
            f"{percent(summary.straight_through_99)} of the documents could pass untouched: "
            f"from confidence {summary.threshold_99:.2f} on, 99 % of the values that can be seen are right"
        )
    told = "; ".join(parts) + "."
    if summary.documents < FEW:
        told += f" Of fewer than {FEW} documents that says little: one more mistake would move the last figure far."
    return told


def _print_wrong(scores: "Sequence[DocumentScore]") -> None:
    rows = []
    for row in wrong_values(scores):
        found = row["error"] or ("(nothing)" if row["found"] is None else row["found"])
        expected = "(nothing)" if row["expected"] is None else row["expected"]
        sure = "" if row["confidence"] is None else f"{row['confidence']:.2f}"
        remark = (
            "unreadable"
            if row["error"]
            else "loosely right"
            if row["loose"]
            else ""
            if row["visible"]
            else "not visible"
        )
        rows.append([str(cell) for cell in (row["file"], row["field"], expected, found, sure, remark)])
    if rows:
        print_table(("FILE", "FIELD", "EXPECTED", "FOUND", "SURE", ""), rows, give_way=("EXPECTED", "FOUND"))
    else:
        print("Nothing is wrong.")
