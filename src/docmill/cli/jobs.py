"""`docmill jobs`: submit, list, show, watch, cancel, rerun."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter, validators

from docmill.cli.errors import WrongUse
from docmill.cli.job_text import details, job_record, job_table
from docmill.cli.output import Json, counted, print_json, print_json_line, record
from docmill.model.statuses import JobStatus

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.services.templates import TemplateVersion

MOST_JOBS = 100_000

app = App(name="jobs", help="Submit jobs, follow them, cancel them, run them again.")

JobId = Annotated[str, Parameter(name="JOB", help="The job's id.")]
Watch = Annotated[bool, Parameter(negative="", help="Follow it to its end, as `jobs watch` does.")]


@app.command(usage="docmill jobs submit [OPTIONS] TEMPLATE ENTITY...")
def submit(
    template: Annotated[
        str, Parameter(name="TEMPLATE", help="Name of a stored template; NAME@VERSION for an old one.")
    ],
    entities: Annotated[
        tuple[str, ...],
        Parameter(name="ENTITY", required=True, help="What the job is about, as TYPE:ID. One job each."),
    ],
    /,
    *,
    title: Annotated[str, Parameter(metavar="TEXT", help="For people.")] = "",
    priority: Annotated[int, Parameter(metavar="N", help="-100 to 100; higher goes first.")] = 0,
    metadata: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="DATA",
            negative="",
            consume_multiple=False,
            help="A JSON object, key=text or key:=JSON; may be given several times.",
        ),
    ] = (),
    file_type: Annotated[
        str | None, Parameter(metavar="TYPE", help="Type of the file, such as application/pdf.")
    ] = None,
    id: Annotated[
        str | None, Parameter(metavar="UUID", help="Id of the job: submitting it twice is submitting it once.")
    ] = None,
    count: Annotated[
        int, Parameter(metavar="N", help="Submit N jobs for each entity, ids ending in -1 to -N, to try things out.")
    ] = 1,
    watch: Watch = False,
    json: Json = False,
) -> int:
    """Submit one job for each entity, all or none.

    Prints the id of each job. A worker (`docmill worker`) starts on it at once.
    """
    from docmill.cli.metadata import parse_metadata
    from docmill.cli.opening import opened
    from docmill.services.submission import new_job

    if not 1 <= count * len(entities) <= MOST_JOBS:
        raise WrongUse(f"--count must leave between 1 and {MOST_JOBS:,} jobs, not {count * len(entities):,}.")
    if id is not None and count * len(entities) > 1:
        raise WrongUse("--id names one job; give one entity and no --count.")
    data = parse_metadata(metadata)
    names = [f"{entity}-{n}" for entity in entities for n in range(1, count + 1)] if count > 1 else entities
    with opened() as installation:
        version = template_to_submit(installation, template)
        jobs = [
            new_job(version, name, job_id=id, title=title, priority=priority, metadata=data, file_type=file_type)
            for name in names
        ]
        new = installation.jobs.submit(jobs)
        ids = [job.id for job in jobs]
        if json:
            answer = {"template": record(version), "job_ids": ids, "new": new}
            (print_json_line if watch else print_json)({"type": "submitted", **answer} if watch else answer)
        else:
            if not watch or len(ids) > 1:
                print("\n".join(ids))
            if not new:
                print("note: a job with this id was there already; nothing was submitted.", file=sys.stderr)
        return _watch(installation, ids, json=json, after=dict.fromkeys(ids, 0)) if watch else 0


@app.command(name="list")
def list_jobs(
    *,
    status: Annotated[
        JobStatus | None, Parameter(metavar="STATUS", help="Only jobs with this status.", show_default=False)
    ] = None,
    limit: Annotated[
        int, Parameter(metavar="N", help="At most this many.", validator=validators.Number(gte=1, lte=100_000))
    ] = 50,
    json: Json = False,
) -> int:
    """List jobs, the newest first."""
    from docmill.cli.opening import opened

    with opened() as installation:
        found = installation.jobs.list(status=status, limit=limit)
    if json:
        print_json({"jobs": [record(job) for job in found]})
    elif found:
        job_table(found)
        if len(found) == limit:
            print(f"note: the newest {limit}; there may be more, see --limit.", file=sys.stderr)
    else:
        which = f"No jobs are {status}." if status else "No jobs yet. `docmill jobs submit` starts one."
        print(which, file=sys.stderr)
    return 0


@app.command
def show(job: JobId, /, *, json: Json = False) -> int:
    """Show a job with its steps.

    Status, attempts, times and what went wrong; --json adds the results.
    """
    from docmill.cli.opening import opened

    with opened() as installation:
        view = installation.jobs.get(job)
    if json:
        print_json({"job": job_record(view)})
    else:
        details(view)
    return 0


@app.command(usage="docmill jobs watch [OPTIONS] JOB...")
def watch(
    jobs: Annotated[tuple[str, ...], Parameter(name="JOB", required=True, help="Ids of jobs.")],
    /,
    *,
    json: Json = False,
) -> int:
    """Follow jobs until all have finished.

    Progress is shown on stderr, and how they ended on stdout. Exit code 0 if all completed, 1 if something failed or
    was cancelled. Ctrl-C leaves the jobs running. With --json, lines of JSON on stdout tell how the jobs stand,
    then each event as it happens, and last the result.
    """
    from docmill.cli.opening import opened

    with opened() as installation:
        return _watch(installation, jobs, json=json)


@app.command
def cancel(job: JobId, /, *, json: Json = False) -> int:
    """End a job now.

    Running steps are told to stop, and whatever they still report is void. `docmill jobs rerun` runs it again.
    """
    from docmill.cli.opening import opened

    with opened() as installation:
        installation.jobs.cancel(job)
        return _changed(installation, job, "cancelled", json=json)


@app.command
def rerun(
    job: JobId,
    /,
    *,
    step: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="KEY",
            negative="",
            consume_multiple=False,
            help="Only this step and what depends on it; may be given several times.",
        ),
    ] = (),
    from_: Annotated[
        str | None, Parameter(name="--from", metavar="KEY", help="From this step on: it and all later groups.")
    ] = None,
    fresh: Annotated[
        bool, Parameter(negative="", help="Compute again what was paid for; otherwise stored results are used.")
    ] = False,
    watch: Watch = False,
    json: Json = False,
) -> int:
    """Run a finished job again: all of it, or some of its steps.

    What made the job fail, was skipped because of a failure or was cancelled runs again in any case.
    """
    from docmill.cli.opening import opened

    if step and from_ is not None:
        raise WrongUse("--step and --from exclude each other; give one of them.")
    with opened() as installation:
        before = installation.jobs.get(job)
        if from_ is not None:
            installation.jobs.rerun_from(job, from_, keep_checkpoints=not fresh)
        else:
            installation.jobs.rerun(job, step or None, keep_checkpoints=not fresh)
        if watch:
            return _watch(installation, [job], json=json, after={before.summary.id: before.version})
        return _changed(installation, job, "runs again", json=json)


def template_to_submit(installation: "Installation", template: str) -> "TemplateVersion":
    """The stored template of this name; whoever names a file hears how to store it."""
    from docmill.cli.template_names import find_template, looks_like_file
    from docmill.model.errors import NotFound

    try:
        return find_template(installation.templates, template)
    except NotFound as error:
        if not looks_like_file(template):
            raise
        raise NotFound(
            f"{template} is a file; store it with `docmill templates import {template}`, then submit by its name."
        ) from error


def _changed(installation: "Installation", job: str, what: str, *, json: bool) -> int:
    view: Any = installation.jobs.get(job)
    if json:
        print_json({"job": job_record(view)})
    else:
        steps = f" ({counted(len(view.steps), 'step')})" if what != "cancelled" else ""
        print(f"Job {view.summary.id} {what}{steps}.")
    return 0


def _watch(
    installation: "Installation", jobs: Sequence[str], *, json: bool, after: Mapping[str, int] | None = None
) -> int:
    from docmill.cli.watching import watch_jobs

    return watch_jobs(installation, jobs, as_json=json, after=after)
