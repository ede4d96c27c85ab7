"""`docmill worker`: run what is due."""

from typing import Annotated

from cyclopts import Parameter

from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import print_json_line

MOST_SLOTS = 100_000


def run_worker(
    *,
    pool: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="NAME=CAPACITY",
            negative="",
            consume_multiple=False,
            help="Serve only this pool, with so many steps at once; may be given several times. "
            "Without it, all pools of the settings and one for each kind of step are served.",
        ),
    ] = (),
    verbose: Annotated[bool, Parameter(negative="", help="Log more.")] = False,
    json: Json = False,
) -> int:
    """Run steps that are due, until told to stop.

    Logs go to stderr. SIGTERM or Ctrl-C drains: running steps get time to finish (drain_seconds), what is left goes
    back to the queue. A second Ctrl-C ends at once; another worker takes over. With --json, a line on stdout says when
    the worker is ready and when it has stopped.
    """
    only = _pools(pool) if pool else None
    from docmill.cli.opening import opened
    from docmill.workers.logs import log_to_stderr
    from docmill.workers.process import serve

    with opened() as installation:
        log_to_stderr(verbose=verbose)
        worker = installation.worker(only, staying=True)

        def ready() -> None:
            if json:
                pools = {use.name: use.capacity for use in worker.use()}
                print_json_line({"type": "ready", "database": str(installation.database), "pools": pools})

        serve(worker, database=str(installation.database), on_ready=ready)
        if json:
            print_json_line({"type": "stopped"})
    return 0


def _pools(entries: tuple[str, ...]) -> dict[str, int]:
    pools: dict[str, int] = {}
    for entry in entries:
        name, _, capacity = entry.partition("=")
        if not name or not capacity.isascii() or not capacity.isdigit() or not 1 <= int(capacity[:9]) <= MOST_SLOTS:
            raise WrongUse(f"--pool {entry!r} is not NAME=CAPACITY; write --pool ai=20, capacity 1 to {MOST_SLOTS:,}.")
        if name in pools:
            raise WrongUse(f"--pool {name} is given twice.")
        pools[name] = int(capacity)
    return pools
