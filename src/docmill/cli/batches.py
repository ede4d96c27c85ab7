"""`docmill batch`: many jobs in one call, so many of them at once; their progress, results, cancel and retry."""

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from docmill.cli.acting import acting_for
from docmill.cli.options import AtMost, Fresh, Json, Limit, Metadata, Statuses, TemplateName, Watch
from docmill.cli.output import counted, note_page, print_json, print_json_line, record
from docmill.model.statuses import JobStatus

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation

EXAMPLES = """\
Examples:
  docmill batch submit invoice document:1 document:2 --watch
  docmill batch submit invoice --from entities.txt --limit 50 --title March
  ls scans | sed 's/^/document:/' | docmill batch submit invoice --from -
  docmill batch results BATCH --step total --json
  docmill batch retry BATCH --status FAILED --status CANCELLED"""

app = App(name="batch", help="Submit many jobs at once, so many of them active at a time.")

BatchId = Annotated[str, Parameter(name="BATCH", help="The batch's id.")]


@app.command(usage="docmill batch submit [OPTIONS] TEMPLATE (ENTITY... | --from FILE)", help_epilogue=EXAMPLES)
def submit(
    template: TemplateName,
    entities: Annotated[
        tuple[str, ...], Parameter(name="ENTITY", help="What the jobs are about, as TYPE:ID. One job each.")
    ] = (),
    /,
    *,
    from_: Annotated[
        str | None,
        Parameter(
            name="--from",
            metavar="FILE",
            help="A file with one entity per line, or an object with entity, title and metadata; - is stdin.",
        ),
    ] = None,
    limit: Annotated[int, Parameter(metavar="N", help="How many jobs may be active at once.")] = 10,
    title: Annotated[str, Parameter(metavar="TEXT", help="Of the batch, for people.")] = "",
    priority: Annotated[int, Parameter(metavar="N", help="Of its jobs, -100 to 100; higher goes first.")] = 0,
    metadata: Metadata = (),
    id: Annotated[
        str | None, Parameter(metavar="UUID", help="Id of the batch: submitting it twice is submitting it once.")
    ] = None,
    skip_active: Annotated[
        bool, Parameter(negative="", help="Leave out entities that have an active job instead of refusing them.")
    ] = False,
    watch: Watch = False,
    json: Json = False,
) -> int:
    """Submit one job for each entity, all or none, and let so many of them be active at once.

    Prints the id of the batch.
    """
    from docmill.cli.entities import read_entities
    from docmill.cli.jobs import template_to_submit
    from docmill.cli.metadata import parse_metadata
    from docmill.services.submission import new_job

    lines = read_entities(entities, from_)
    data = parse_metadata(metadata)
    with acting_for() as (installation, acting):
        version = template_to_submit(installation, template)
        jobs = [
            new_job(version, line.entity, title=line.title, priority=priority, metadata={**data, **line.metadata})
            for line in lines
        ]
        batch = installation.batches.by(acting).submit(
            jobs, limit=limit, title=title, metadata=data, batch_id=id, skip_active=skip_active
        )
        skipped = len(jobs) - batch.total
        if json:
            from docmill.cli.batch_text import batch_record

            answer = {"template": record(version), "batch": batch_record(batch), "skipped": skipped}
            (print_json_line if watch else print_json)({"type": "submitted", **answer} if watch else answer)
        else:
            print(batch.id)
            if skipped:
                print(f"note: {counted(skipped, 'job')} left out: the entity has an active one.", file=sys.stderr)
        return _watch(installation, batch.id, json=json) if watch else 0


@app.command(name="list")
def list_batches(
    *,
    limit: Limit = 50,
    json: Json = False,
) -> int:
    """List batches, the newest first."""
    from docmill.bootstrap.clock import this_moment
    from docmill.cli.batch_text import batch_record, batch_table
    from docmill.cli.opening import opened

    with opened() as installation:
        found = installation.batches.list(limit=limit)
    if json:
        print_json({"batches": [batch_record(batch) for batch in found]})
    elif found:
        batch_table(found, this_moment())
        note_page(len(found), limit)
    else:
        print("No batches yet. `docmill batch submit` starts one.", file=sys.stderr)
    return 0


@app.command
def show(batch: BatchId, /, *, json: Json = False) -> int:
    """Show how a batch stands, and the first jobs that failed."""
    from docmill.bootstrap.clock import this_moment
    from docmill.cli.batch_text import batch_record, details
    from docmill.cli.opening import opened

    with opened() as installation:
        view = installation.batches.get(batch)
    if json:
        print_json({"batch": batch_record(view)})
    else:
        details(view, this_moment())
    return 0


@app.command
def results(
    batch: BatchId,
    /,
    *,
    step: Annotated[
        str | None, Parameter(metavar="KEY", help="The step whose result is wanted; the finish step if not given.")
    ] = None,
    status: Statuses = (),
    after: Annotated[str | None, Parameter(metavar="JOB", help="Go on after this one: the next page.")] = None,
    limit: AtMost = None,
    json: Json = False,
) -> int:
    """Show what became of each job, in the order in which they were given.

    With --json a line for each, so that a large batch can be read as it comes.
    """
    from docmill.cli.batch_text import result_table
    from docmill.cli.opening import opened

    page_size, left = 500, limit
    with opened() as installation:
        after = None if after is None else installation.jobs.find_id(after)
        while left is None or left > 0:
            asked = page_size if left is None else min(page_size, left)
            page = installation.batches.results(batch, step=step, statuses=status, after=after, limit=asked)
            if json:
                for entry in page:
                    print_json_line(record(entry))
            elif page:
                result_table(page)
            if len(page) < asked:
                break
            after = page[-1].job_id
            left = None if left is None else left - len(page)
    return 0


@app.command
def watch(batch: BatchId, /, *, json: Json = False) -> int:
    """Follow a batch until all its jobs have finished.

    Progress is shown on stderr, and how it ended on stdout. Exit code 0 if all jobs completed, else 1. Ctrl-C leaves
    it running. With --json, a line for each change and last the result.
    """
    from docmill.cli.opening import opened

    with opened() as installation:
        return _watch(installation, batch, json=json)


@app.command
def cancel(batch: BatchId, /, *, json: Json = False) -> int:
    """End all unfinished jobs of a batch now.

    No other of its jobs begins meanwhile. `docmill batch retry BATCH --status CANCELLED` runs them again.
    """
    from docmill.cli.batch_text import batch_record

    with acting_for() as (installation, acting):
        cancelled = installation.batches.by(acting).cancel(batch)
        view = installation.batches.get(batch)
    if json:
        print_json({"batch": batch_record(view), "cancelled": cancelled})
    else:
        print(f"Batch {view.id} cancelled ({counted(cancelled, 'job')}).")
    return 0


@app.command
def retry(
    batch: BatchId,
    /,
    *,
    status: Statuses = (JobStatus.FAILED,),
    fresh: Fresh = False,
    watch: Watch = False,
    json: Json = False,
) -> int:
    """Run the failed jobs of a batch again, within its limit.

    In each, what failed and what rested on it. --status chooses others: PARTIAL_SUCCESS, CANCELLED.
    """
    from docmill.cli.batch_text import batch_record

    with acting_for() as (installation, acting):
        retried = installation.batches.by(acting).retry(batch, status, keep_checkpoints=not fresh)
        view = installation.batches.get(batch)
        if json:
            answer = {"batch": batch_record(view), **record(retried)}
            (print_json_line if watch else print_json)({"type": "retried", **answer} if watch else answer)
        else:
            print(f"{counted(retried.again, 'job')} of batch {view.id} run{'s' * (retried.again == 1)} again.")
            if retried.passed_over:
                names = ", ".join(retried.passed_over[:10])
                print(f"note: passed over, since they have another active job: {names}.", file=sys.stderr)
        return _watch(installation, view.id, json=json) if watch else 0


@app.command
def limit(
    batch: BatchId,
    number: Annotated[int, Parameter(name="N", help="How many jobs may be active at once; 0 lets nothing new begin.")],
    /,
    *,
    json: Json = False,
) -> int:
    """Set how many jobs of a batch may be active at once.

    Room that this makes is given at once; a lower limit ends nothing and is reached as jobs end.
    """
    from docmill.cli.batch_text import batch_record

    with acting_for() as (installation, acting):
        view = installation.batches.by(acting).set_limit(batch, number)
    if json:
        print_json({"batch": batch_record(view)})
    else:
        print(f"Batch {view.id}: limit {view.limit}, {view.active} active, {view.held} held.")
    return 0


def _watch(installation: "Installation", batch: str, *, json: bool) -> int:
    from docmill.cli.batch_watching import watch_batch

    return watch_batch(installation, batch, as_json=json)
