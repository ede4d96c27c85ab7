"""`docmill export`: many documents as one file."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from docmill.cli.acting import Organisation
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import counted, print_json
from docmill.cli.query import From, note_reading, outputs_of

if TYPE_CHECKING:
    from docmill.outputs.csv_text import CsvStyle
    from docmill.outputs.exporting import Export, ExportFormat


def export(
    *,
    format: Annotated[
        str | None,
        Parameter(metavar="FORMAT", help="csv, json, jsonl or parquet; default: by the name of --out, or csv."),
    ] = None,
    out: Annotated[
        Path | None, Parameter(metavar="FILE", help="Where to; default: stdout. It appears once it is whole.")
    ] = None,
    schema: Annotated[str | None, Parameter(metavar="NAME", help="Only documents of this schema.")] = None,
    since: Annotated[
        str | None, Parameter(metavar="TIME", help="Only documents that came in since: 2026-11-01, 7d, 12h.")
    ] = None,
    table: Annotated[
        str | None,
        Parameter(metavar="NAME", help="A row for each row of this table (tax_lines, say) instead of each document."),
    ] = None,
    items: Annotated[bool, Parameter(negative="", help="Short for --table line_items.")] = False,
    review: Annotated[
        str | None,
        Parameter(
            metavar="STATUS,…",
            help="Only documents whose review stands so: approved,corrected, say; none: those without an item.",
        ),
    ] = None,
    everything: Annotated[
        bool,
        Parameter(name="--all", negative="", help="Also copies, replaced results, and what nothing was found in."),
    ] = False,
    excel: Annotated[
        bool, Parameter(negative="", help="CSV that Excel opens as it is: marked as UTF-8. See --decimal.")
    ] = False,
    decimal: Annotated[
        str | None,
        Parameter(metavar="MARK", help="In CSV, '.' or ',' before decimals; with ',' cells are parted by ';'."),
    ] = None,
    delimiter: Annotated[
        str | None, Parameter(metavar="MARK", help="In CSV, between cells: ',' ';' '|' or tab; default: ','.")
    ] = None,
    from_: From = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Write what was read from documents to one file: CSV, JSON, JSON lines or Parquet.

    Each document is written once for each schema, by its newest result, and with where its review stands now.
    """
    from docmill.bootstrap import output_settings
    from docmill.bootstrap.clock import this_moment
    from docmill.cli.opening import read_settings
    from docmill.outputs.exporting import Choice, Export, ExportFormat, asked_reviews, asked_table, style_for
    from docmill.outputs.gathering import gather
    from docmill.services.exports import record_export

    form = _format(format, out)
    style = style_for(form, excel=excel, delimiter=delimiter, decimal=decimal)
    if out is None and form is ExportFormat.PARQUET:
        raise WrongUse("Parquet is not for the terminal; give --out FILE.")
    if out is None and json:
        raise WrongUse("--json tells what was written to a file; give --out, or --format json for the data.")
    rows_of = asked_table(items=items, table=table)
    moment = None if since is None else parse_since(since, this_moment())
    reviews = () if review is None else asked_reviews([review])
    settings = read_settings()
    places = output_settings(settings).into(from_)
    with outputs_of(organisation, settings, from_) as asked:
        if reviews and asked.reviews is None:
            raise WrongUse("Where a review stands only the database knows, and here is none; leave --review away.")
        installation, acting = asked.installation, asked.acting
        without = installation.documents.facts if installation is not None and everything else None
        connection = gather(
            places, settings.home / "cache" / "outputs", note_reading, asked.known(without), org_id=asked.org_id
        )
        try:
            choice = Choice(schema=schema, since=moment, table=rows_of, reviews=reviews, duplicates=everything)
            chosen = Export(connection, choice, places.schema_folders)
            rows, left_out = chosen.count(), chosen.left_out()
            if installation is not None and acting is not None:
                record_export(installation.database.scoped(installation.org_id), acting, choice, form)
            _write(chosen, form, style, out)
        finally:
            connection.close()
    if json:
        print_json({"file": str(out), "format": form.value, "rows": rows, "left_out": left_out})
    else:
        what = counted(rows, "document") if rows_of is None else f"{counted(rows, 'row')} of {rows_of}"
        place = f" written to {out}" if out is not None else ""
        print(f"{what}{place}.", file=sys.stderr)
        if left_out:
            print(
                f"note: {counted(left_out, 'document')} left out: copies, replaced results, what was rejected, quotes "
                "and other papers by which nothing is owed, or nothing was found in them; --all writes them too.",
                file=sys.stderr,
            )
    return 0


def _format(name: str | None, out: Path | None) -> "ExportFormat":
    from docmill.outputs.exporting import ExportFormat

    known = tuple(ExportFormat)
    asked = name or (out.suffix.removeprefix(".").lower() if out is not None and out.suffix else "csv")
    if asked not in known:
        raise WrongUse(f"There is no format {asked!r}; write --format and one of {', '.join(known)}.")
    return ExportFormat(asked)


def parse_since(text: str, now: datetime) -> datetime:
    """A moment as people write it: a day, a moment (in UTC if it names no zone), or how long ago."""
    from docmill.settings.section import parse_length

    length = parse_length(text)
    if length is not None:
        return now - length
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUse(f"--since {text!r} is no time; write 2026-11-01, 2026-11-01T12:00, 7d or 12h.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _write(chosen: "Export", form: "ExportFormat", style: "CsvStyle", out: Path | None) -> None:
    from docmill.outputs.exporting import ExportFormat
    from docmill.outputs.files import replacing

    if out is None:
        # As a file would be, whatever the locale is: csv ends its lines itself.
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        for piece in chosen.text(form, style):
            sys.stdout.write(piece)
        return
    with replacing(out) as temporary:
        if form is ExportFormat.PARQUET:
            chosen.parquet(temporary)
            return
        with temporary.open("x", encoding="utf-8", newline="") as file:
            file.writelines(chosen.text(form, style))
