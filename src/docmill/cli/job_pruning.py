"""`docmill jobs prune`: delete what is old enough."""

from typing import Annotated

from cyclopts import Parameter

from docmill.cli.acting import acting_for
from docmill.cli.errors import WrongUse
from docmill.cli.options import AtMost, Json
from docmill.cli.output import counted, print_json
from docmill.model.statuses import FINISHED_JOBS, JobStatus


def prune(
    *,
    older_than: Annotated[str, Parameter(metavar="TIME", help="Finished so long ago: 90d, 12h, or seconds.")],
    status: Annotated[
        tuple[JobStatus, ...],
        Parameter(
            metavar="STATUS",
            negative="",
            consume_multiple=False,
            show_default=False,
            help="Only jobs that ended so; may be given several times.",
        ),
    ] = (),
    dry_run: Annotated[bool, Parameter(negative="", help="Only count them.")] = False,
    limit: AtMost = None,
    json: Json = False,
) -> int:
    """Delete finished jobs with their steps, events and resolved issues, the oldest first.

    Kept in any case: jobs with open issues, with follow-ups or an undoing that have not finished, and of batches that
    have not. What models cost stays on record. Workers go on meanwhile.
    """
    from docmill.services.retention import long_ago

    if unfinished := [each for each in status if not each.finished]:
        raise WrongUse(f"Only finished jobs can be pruned, not {', '.join(unfinished)}.")
    with acting_for() as (installation, acting):
        before = long_ago(installation.database, older_than)
        pruned = installation.jobs.by(acting).prune(
            finished_before=before, statuses=status or FINISHED_JOBS, limit=limit, dry_run=dry_run
        )
    if json:
        print_json({"jobs": pruned.jobs, "batches": pruned.batches, "finished_before": before, "dry_run": dry_run})
    elif dry_run:
        print(f"{counted(pruned.jobs, 'job')} would be deleted.")
    else:
        batches = counted(pruned.batches, "emptied batch", "emptied batches")
        print(f"Deleted {counted(pruned.jobs, 'job')}{f' and {batches}' if pruned.batches else ''}.")
    return 0
