"""`docmill callback` and `docmill jobs callbacks`: answers of outside executors, taken in and looked at."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from docmill.cli.errors import EXIT_FAILED, WrongUse
from docmill.cli.options import JobId, Json
from docmill.cli.output import print_json, print_table, printable, record, styled, when
from docmill.cli.sources import STDIN

MOST_READ = 16 * 1024 * 1024


def callback(
    file: Annotated[str, Parameter(name="FILE", help="A file with the callback's JSON; - is stdin.")] = STDIN,
    /,
    *,
    header: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="NAME:VALUE",
            negative="",
            consume_multiple=False,
            help="A header it came with, such as webhook-signature; may be given several times.",
        ),
    ] = (),
    json: Json = False,
) -> int:
    """Take in the callback of an outside executor.

    Prints JSON in any case, as the executor would be told: {"success", "skipped", "outcome", "message", "code"}. Exit
    code 0 if it succeeded, 1 if not. If the executor has a secret, the callback must come with its signed headers.
    """
    from docmill.bootstrap.clock import this_moment
    from docmill.cli.opening import opened
    from docmill.model.errors import InvalidInput
    from docmill.webhooks.signatures import SignatureInvalid

    headers = dict(_header(entry) for entry in header)
    body = _read(file)
    with opened() as installation:
        try:
            answer = installation.callbacks.receive(body, now=this_moment(), headers=headers)
        except (InvalidInput, SignatureInvalid) as error:
            print_json({"success": False, "skipped": False, "code": error.code, "message": error.message})
            return EXIT_FAILED
    print_json(record(answer))
    return 0 if answer.success else EXIT_FAILED


def list_callbacks(job: JobId, /, *, json: Json = False) -> int:
    """List the callbacks that came for a job, and what became of each."""
    from docmill.cli.opening import opened

    with opened() as installation:
        found = installation.callbacks.list(installation.jobs.find_id(job))
    if json:
        print_json({"callbacks": [record(view) for view in found]})
    elif found:
        heads = ("RECEIVED", "STEP", "STATUS", "OUTCOME", "MESSAGE ID")
        rows = [
            (
                when(view.received_at),
                view.step_key or "",
                styled(view.status or ""),
                str(view.outcome),
                view.message_id or "",
            )
            for view in found
        ]
        print_table(heads, rows, give_way=("MESSAGE ID",))
    else:
        print("No callback has come for this job.", file=sys.stderr)
    return 0


def _header(entry: str) -> tuple[str, str]:
    name, colon, value = entry.partition(":")
    if not colon or not name.strip():
        raise WrongUse(f"--header {entry!r} is not NAME:VALUE.")
    return name.strip(), value.strip()


def _read(file: str) -> bytes:
    """Its bytes, for they are what was signed; a little more than can be taken, so that too much is noticed."""
    if file == STDIN:
        return sys.stdin.buffer.read(MOST_READ)
    try:
        with Path(file).open("rb") as source:
            return source.read(MOST_READ)
    except OSError as error:
        raise WrongUse(f"Cannot read {printable(file)}: {error.strerror}.") from error
