"""`docmill jobs`: submit, list, show, watch, cancel, retry."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from docmill.cli import job_events, job_pruning
from docmill.cli.acting import acting_for
from docmill.cli.errors import EXIT_FAILED, WrongUse
from docmill.cli.issue_text import waits_for
from docmill.cli.job_text import details, job_record, job_table
from docmill.cli.options import Fresh, JobId, Json, Limit, Metadata, TemplateName, Watch
from docmill.cli.output import counted, note_page, print_json, print_json_line, record
from docmill.model.statuses import JobStatus

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.services.templates import TemplateVersion

MOST_JOBS = 100_000

app = App(name="jobs", help="Submit jobs, follow them, cancel them, retry them.")


@app.command(usage="docmill jobs submit [OPTIONS] TEMPLATE ENTITY...")
def submit(
    template: TemplateName,
    entities: Annotated[
        tuple[str, ...],
        Parameter(name="ENTITY", required=True, help="What the job is about, as TYPE:ID. One job each."),
    ],
    /,
    *,
    title: Annotated[str, Parameter(metavar="TEXT", help="For people.")] = "",
    priority: Annotated[int, Parameter(metavar="N", help="-100 to 100; higher goes first.")] = 0,
    metadata: Metadata = (),
    document: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="TYPE:ID",
            negative="",
            consume_multiple=False,
            help="A document of the job, for steps with `for_each: metadata.documents`; may be given several times.",
        ),
    ] = (),
    file_type: Annotated[
        str | None, Parameter(metavar="TYPE", help="Type of the file, such as application/pdf.")
    ] = None,
    id: Annotated[
        str | None, Parameter(metavar="UUID", help="Id of the job: submitting it twice is submitting it once.")
    ] = None,
    key: Annotated[
        str | None,
        Parameter(metavar="TEXT", help="Idempotency key: submitting under it again is submitting once, as with --id."),
    ] = None,
    created_by: Annotated[str | None, Parameter(metavar="NAME", help="Who submits it.")] = None,
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
    from docmill.services.submission import entity_of, new_job

    if not 1 <= count * len(entities) <= MOST_JOBS:
        raise WrongUse(f"--count must leave between 1 and {MOST_JOBS:,} jobs, not {count * len(entities):,}.")
    for option, value in (("--id", id), ("--key", key)):
        if value is not None and count * len(entities) > 1:
            raise WrongUse(f"{option} names one job; give one entity and no --count.")
    data = parse_metadata(metadata)
    if document:
        data["documents"] = [":".join(entity_of(each)) for each in document]
    names = [f"{entity}-{n}" for entity in entities for n in range(1, count + 1)] if count > 1 else entities
    with acting_for() as (installation, acting):
        version = template_to_submit(installation, template)
        jobs = [
            new_job(
                version,
                name,
                job_id=id,
                idempotency_key=key,
                title=title,
                priority=priority,
                metadata=data,
                file_type=file_type,
                created_by=created_by,
            )
            for name in names
        ]
        new = installation.jobs.by(acting).submit(jobs)
        ids = [job.id for job in jobs]
        if json:
            answer = {"template": record(version), "job_ids": ids, "new": new}
            (print_json_line if watch else print_json)({"type": "submitted", **answer} if watch else answer)
        else:
            if not watch or len(ids) > 1:
                print("\n".join(ids))
            if not new:
                print("note: this job was there already; nothing was submitted.", file=sys.stderr)
        return _watch(installation, ids, json=json, after=dict.fromkeys(ids, 0)) if watch else 0


@app.command(name="list")
def list_jobs(
    *,
    status: Annotated[
        JobStatus | None, Parameter(metavar="STATUS", help="Only jobs with this status.", show_default=False)
    ] = None,
    template: Annotated[str | None, Parameter(metavar="NAME", help="Only jobs of this template.")] = None,
    entity: Annotated[str | None, Parameter(metavar="TYPE:ID", help="Only jobs about this entity.")] = None,
    batch: Annotated[str | None, Parameter(metavar="ID", help="Only jobs of this batch.")] = None,
    created_by: Annotated[str | None, Parameter(metavar="NAME", help="Only jobs that this one submitted.")] = None,
    after: Annotated[str | None, Parameter(metavar="JOB", help="Go on after this one: the next page.")] = None,
    limit: Limit = 50,
    json: Json = False,
) -> int:
    """List jobs, the newest first."""
    from docmill.bootstrap.clock import this_moment
    from docmill.cli.opening import opened
    from docmill.services.jobs import JobFilter
    from docmill.services.submission import entity_of

    entity_type, entity_id = (None, None) if entity is None else entity_of(entity)
    only = JobFilter(
        status=status,
        template=template,
        entity_type=entity_type,
        entity_id=entity_id,
        batch_id=batch,
        created_by=created_by,
    )
    with opened() as installation:
        last = None if after is None else installation.jobs.find_id(after)
        found = installation.jobs.list(only, before=last, limit=limit)
    if json:
        print_json({"jobs": [record(job) for job in found]})
    elif found:
        job_table(found, this_moment())
        note_page(len(found), limit, found[-1].id)
    elif only != JobFilter() or after is not None:
        print("No such jobs.", file=sys.stderr)
    else:
        print("No jobs yet. `docmill jobs submit` starts one.", file=sys.stderr)
    return 0


@app.command
def active(
    entity: Annotated[str, Parameter(name="ENTITY", help="What the jobs are about, as TYPE:ID.")],
    /,
    *,
    template: Annotated[str | None, Parameter(metavar="NAME", help="Only jobs of this template.")] = None,
    json: Json = False,
) -> int:
    """Tell whether an entity has a job that has not finished.

    Prints the ids of such jobs. Exit code 0 if there is one, 1 if there is none.
    """
    from docmill.cli.opening import opened
    from docmill.services.submission import entity_of

    entity_type, entity_id = entity_of(entity)
    with opened() as installation:
        ids = installation.jobs.active(entity_type, entity_id, template)
    if json:
        print_json({"active": bool(ids), "job_ids": ids})
    elif ids:
        print("\n".join(ids))
    return 0 if ids else EXIT_FAILED


@app.command
def show(
    job: JobId,
    /,
    *,
    results: Annotated[bool, Parameter(negative="", help="Print the results of the steps in full.")] = False,
    json: Json = False,
) -> int:
    """Show a job with its steps.

    Status, attempts, times, what came of the steps, what went wrong, and which issues it waits for.
    """
    from docmill.bootstrap.clock import this_moment
    from docmill.cli.opening import opened

    with opened() as installation:
        view = installation.jobs.get(installation.jobs.find_id(job))
        running = not view.summary.status.finished
        job_id = view.summary.id
        asked = installation.issues.list(job_id=job_id, blocking=True, order="severity") if running else []
    if json:
        print_json({"job": job_record(view) | {"waits_for": [record(issue) for issue in asked]}})
    else:
        details(view, this_moment(), whole_results=results)
        waits_for(asked)
    return 0


@app.command(usage="docmill jobs watch [OPTIONS] JOB...")
def watch(
    jobs: Annotated[tuple[str, ...], Parameter(name="JOB", required=True, help="Ids of jobs, or their first digits.")],
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
        return _watch(installation, [installation.jobs.find_id(job) for job in jobs], json=json)


@app.command
def cancel(job: JobId, /, *, json: Json = False) -> int:
    """End a job now.

    Running steps are told to stop, and whatever they still report is void. `docmill jobs retry` takes it up again.
    """

    with acting_for() as (installation, acting):
        found = installation.jobs.find_id(job)
        installation.jobs.by(acting).cancel(found)
        return _changed(installation, found, "cancelled", json=json)


@app.command
def retry(
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
    all_: Annotated[bool, Parameter(name="--all", negative="", help="From the start.")] = False,
    fresh: Fresh = False,
    watch: Watch = False,
    json: Json = False,
) -> int:
    """Run a finished job again: what went wrong in it, unless an option says otherwise.

    What failed, was cancelled or was skipped because of a failure runs again, and what depends on it; with --step,
    --from and --all more than that. A job that undoes another never repeats what it has undone.
    """
    from docmill.services.jobs import Retry

    if bool(step) + (from_ is not None) + all_ > 1:
        raise WrongUse("--step, --from and --all exclude each other; give one of them.")
    with acting_for() as (installation, acting):
        before = installation.jobs.get(installation.jobs.find_id(job))
        found = before.summary.id
        wanted = Retry(steps=step, from_step=from_, everything=all_, keep_checkpoints=not fresh)
        installation.jobs.by(acting).retry(found, wanted)
        if watch:
            return _watch(installation, [found], json=json, after={found: before.version})
        return _changed(installation, found, "runs again", json=json)


app.command(job_events.events, name="events")
app.command(job_pruning.prune, name="prune")


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
        left = counted(sum(not step.status.settled for step in view.steps), "step")
        print(f"Job {view.summary.id} {what}{'' if what == 'cancelled' else f' ({left})'}.")
    return 0


def _watch(
    installation: "Installation", jobs: Sequence[str], *, json: bool, after: Mapping[str, int] | None = None
) -> int:
    from docmill.cli.watching import watch_jobs

    return watch_jobs(installation, jobs, as_json=json, after=after)
