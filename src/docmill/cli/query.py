"""`docmill query`: SQL over the outputs."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

from docmill.cli.acting import Organisation, acting_for
from docmill.cli.options import MOST_LISTED, Json
from docmill.cli.output import counted, fitting, print_json, print_table, printable

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.model.people import Principal
    from docmill.outputs.gathering import Known
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
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Ask the outputs in SQL (DuckDB's); without SQL, list what can be asked.

    Tables: documents, invoices, receipts (and one for each schema of yours), line_items, tax_lines, fields. In
    `documents` every document has a row, failed ones too; the others have each document once, by its newest result.
    `review` tells where the review of a document stands now.
    Nothing is changed, and nothing but the outputs of the organisation can be reached.
    """
    from docmill.bootstrap import output_settings
    from docmill.cli.opening import read_settings
    from docmill.outputs.querying import Outputs

    settings = read_settings()
    places, cache = output_settings(settings).into(from_), settings.home / "cache" / "outputs"
    with outputs_of(organisation, settings, from_) as asked:
        documents = None if asked.installation is None else asked.installation.documents
        without = None if documents is None else partial(documents.facts, only_without_outputs=True)
        outputs = Outputs(
            places, cache, note_reading, known=asked.known(without), everything=everything, org_id=asked.org_id
        )
    with outputs:
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


_Rows = Callable[[], "Iterable[Mapping[str, object]]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Whose outputs are meant, and by whom they are looked at, if there is a database that knows."""

    org_id: str | None
    """None: all that lie in the folder."""
    installation: "Installation | None" = None
    acting: "Principal | None" = None
    reviews: _Rows | None = None
    """Where reviews stand."""

    def known(self, without: _Rows | None) -> "Known":
        """What the database says beside the outputs; `without`: documents that may have none."""
        from docmill.outputs.gathering import Known

        return Known(without=without or (lambda: ()), reviews=self.reviews or (lambda: ()))


@contextmanager
def outputs_of(organisation: str | None, settings: "Settings", from_: Path | None) -> "Iterator[Asked]":
    """Whose outputs are meant.

    A folder that is named is looked at as it lies there: whoever may read it may read all of it. With an organisation
    it is still only that one's. Where reviews stand the database tells in either case, of the organisation's own.
    """
    from docmill.model.errors import DocmillError
    from docmill.model.ids import DEFAULT_ORG
    from docmill.services.review_statuses import review_statuses

    whose = None if from_ is not None else DEFAULT_ORG
    with ExitStack() as stack:
        found = None
        try:
            if organisation is not None or _has_database(settings):
                found = stack.enter_context(acting_for(organisation))
        except DocmillError as error:
            if organisation is not None or from_ is None:
                raise
            # A folder can be looked at whatever has become of the database.
            print(f"note: where reviews stand is not told: {error}", file=sys.stderr)
        if found is None:
            yield Asked(org_id=whose)
            return
        installation, acting = found
        reviews = partial(review_statuses, installation.database.scoped(installation.org_id), installation.org_id)
        if from_ is None:
            yield Asked(org_id=installation.org_id, installation=installation, acting=acting, reviews=reviews)
        else:
            yield Asked(org_id=None if organisation is None else installation.org_id, reviews=reviews)


def _has_database(settings: "Settings") -> bool:
    """Whether somebody has processed something here: to look must not make a database."""
    from docmill.bootstrap import open_app

    if not settings.home.is_dir():
        return False
    with open_app(settings, check_schema=False) as installation:
        return installation.revision() is not None


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
