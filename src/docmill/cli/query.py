"""`docmill query`: SQL over the outputs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

from docmill.cli.options import MOST_LISTED, Json
from docmill.cli.output import counted, fitting, print_json, print_table, printable

if TYPE_CHECKING:
    from docmill.outputs.querying import Answer
    from docmill.outputs.tables import View
    from docmill.settings import Settings

From = Annotated[
    Path | None,
    Parameter(
        name="--from",
        metavar="DIR",
        show_default=False,
        help="Look at the outputs in this folder; default: those of the settings.",
    ),
]
"""Which outputs are meant."""
Everything = Annotated[
    bool,
    Parameter(
        name="--all", negative="", help="Also copies, and results that a later one replaced; sums count them again."
    ),
]
_LONGEST = 200
"""Characters of a value in a table."""


def query(
    sql: Annotated[str | None, Parameter(name="SQL", show_default=False, help="A SELECT.")] = None,
    /,
    *,
    from_: From = None,
    limit: Annotated[
        int, Parameter(metavar="N", help="At most this many rows.", validator=validators.Number(gte=1, lte=MOST_LISTED))
    ] = 1000,
    everything: Everything = False,
    json: Json = False,
) -> int:
    """Ask the outputs in SQL (DuckDB's); without SQL, list what can be asked.

    Tables: documents, invoices, receipts (and one for each schema of yours), line_items, tax_lines, fields. In
    `documents` every document has a row, failed ones too; the others have each document once, by its newest result.
    Nothing is changed, and nothing but the outputs can be reached.
    """
    from docmill.bootstrap import output_settings
    from docmill.cli.opening import read_settings
    from docmill.outputs.querying import Outputs

    settings = read_settings()
    without = _without_outputs(settings) if from_ is None else ()
    places, cache = output_settings(settings).into(from_), settings.home / "cache" / "outputs"
    with Outputs(places, cache, note_reading, without=without, everything=everything) as outputs:
        if sql is None:
            _print_views(outputs.views, as_json=json)
            return 0
        answer = outputs.ask(sql, limit=limit)
    if json:
        names = [name for name, _ in answer.columns]
        print_json(
            {
                "columns": [{"name": name, "type": kind} for name, kind in answer.columns],
                "rows": [dict(zip(names, row, strict=True)) for row in answer.rows],
                "complete": answer.complete,
            }
        )
        return 0
    _print(answer)
    return 0


def _without_outputs(settings: "Settings") -> "Sequence[dict[str, object]]":
    """Documents that only the database knows."""
    from docmill.bootstrap import open_app

    if not settings.home.is_dir():
        return ()
    with open_app(settings, check_schema=False) as installation:
        if installation.revision() is None:
            return ()
    with open_app(settings) as installation:
        return installation.documents.without_outputs()


def note_reading(count: int) -> None:
    """Said before a wait."""
    print(f"Reading {counted(count, 'new output')}; the next time it will be quick.", file=sys.stderr)


def _print(answer: "Answer") -> None:
    if answer.rows:
        heads = [name for name, _ in answer.columns]
        rows = [[_shown(value) for value in row] for row in answer.rows]
        kept = fitting(heads, rows) if sys.stdout.isatty() else len(heads)
        texts = [name for name, kind in answer.columns[:kept] if kind == "VARCHAR" or not kind.isupper()]
        print_table(heads[:kept], [row[:kept] for row in rows], give_way=texts)
        if kept < len(heads):
            left = ", ".join(heads[kept:])
            print(f"note: too narrow for {left}; name the columns you want, or take --json.", file=sys.stderr)
    else:
        print("No rows.", file=sys.stderr)
    if not answer.complete:
        print(f"note: only the first {len(answer.rows)} rows are shown; for more: --limit.", file=sys.stderr)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        import orjson

        value = orjson.dumps(value).decode()
    text = printable(f"{value:g}" if isinstance(value, float) else str(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _print_views(views: "Sequence[View]", *, as_json: bool) -> None:
    if as_json:
        listed = [
            {"name": view.name, "columns": [{"name": name, "type": kind} for name, kind in view.columns]}
            for view in views
        ]
        print_json({"tables": listed})
        return
    rows = [(view.name, name, kind) for view in views for name, kind in view.columns]
    print_table(("TABLE", "COLUMN", "TYPE"), rows, give_way=("TYPE",))
