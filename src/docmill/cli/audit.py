"""`docmill audit`: what people did, and whether the log still says so."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from docmill.cli.acting import Organisation, acting_for
from docmill.cli.errors import EXIT_FAILED, WrongUse
from docmill.cli.options import Json, Limit
from docmill.cli.output import print_json, print_json_line, print_table, record

if TYPE_CHECKING:
    from docmill.model.people import Principal
    from docmill.services.audit import Audit

app = App(name="audit", help="See what people did; verify and export the log.")

Shared = Annotated[
    bool, Parameter(negative="", help="What was done to shared prompts, which are no organisation's own.")
]


@contextmanager
def _log(organisation: str | None, *, shared: bool) -> "Iterator[tuple[Audit, Principal]]":
    """The log of an organisation, or of what all of them share, and whoever reads it."""
    from dataclasses import replace

    from docmill.model.ids import SHARED_ORG
    from docmill.services.audit import Audit

    if shared and organisation is not None:
        raise WrongUse("--shared and --organisation exclude each other; give one of them.")
    with acting_for(organisation) as (installation, acting):
        if shared:
            yield Audit(installation.database, SHARED_ORG), replace(acting, org_id=SHARED_ORG)
        else:
            yield installation.audit, acting


@app.command(name="list")
def list_entries(
    *,
    action: Annotated[str | None, Parameter(metavar="ACTION", help="Only this action, as review.approve.")] = None,
    actor: Annotated[str | None, Parameter(metavar="WHO", help="Only what this one did, by id or name.")] = None,
    limit: Limit = 50,
    before: Annotated[
        int | None, Parameter(metavar="N", help="Only entries before this number: the next page.")
    ] = None,
    organisation: Organisation = None,
    shared: Shared = False,
    json: Json = False,
) -> int:
    """List what was done, the newest first."""
    with _log(organisation, shared=shared) as (log, acting):
        found = log.list(acting, limit=limit, before=before, actor=actor, action=action)
    if json:
        print_json({"entries": [record(each) for each in found]})
    elif not found:
        print("Nothing is recorded.", file=sys.stderr)
    else:
        rows = [
            [
                str(each.number),
                f"{each.at:%Y-%m-%d %H:%M:%S}",
                each.actor_name,
                each.action,
                f"{each.subject_type} {each.subject_id}",
            ]
            for each in found
        ]
        print_table(["N", "AT", "WHO", "ACTION", "WHAT"], rows, give_way=["WHO", "WHAT"])
    return 0


@app.command
def verify(*, organisation: Organisation = None, shared: Shared = False, json: Json = False) -> int:
    """Hold every entry against its hash. Exits with 1 if the log is not what was written."""
    with _log(organisation, shared=shared) as (log, acting):
        found = log.verify(acting)
    if json:
        print_json({"entries": found.entries, "faults": [record(each) for each in found.faults]})
    else:
        for fault in found.faults:
            print(f"entry {fault.number}: {fault.message}")
        print(f"{found.entries} entries, {len(found.faults) or 'no'} faults.", file=sys.stderr)
    return EXIT_FAILED if found.faults else 0


@app.command
def export(*, organisation: Organisation = None, shared: Shared = False, json: Json = False) -> int:
    """Print the whole log as lines of JSON, the oldest first."""
    with _log(organisation, shared=shared) as (log, acting):
        for each in log.export(acting):
            print_json_line(record(each))
    return 0
