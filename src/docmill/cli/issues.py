"""`docmill issues`: list, show, open, assign, resolve."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from docmill.cli.acting import acting_for
from docmill.cli.errors import WrongUse
from docmill.cli.issue_text import details, issue_table
from docmill.cli.options import Json, Limit
from docmill.cli.output import note_page, print_json, record
from docmill.model.issues import IssueAction, IssueSeverity, IssueStatus
from docmill.model.statuses import StepStatus

if TYPE_CHECKING:
    from docmill.services.job_views import JobView

_RESOLVE_EXAMPLES = """\
Examples:
  docmill issues resolve ISSUE --set total=110 --note "as printed"
  docmill issues resolve ISSUE --data '{"total": 110, "currency": "EUR"}'
  docmill issues resolve ISSUE --action fail --note "not our invoice\""""

app = App(name="issues", help="See what people must look at, and resolve it.")

IssueId = Annotated[str, Parameter(name="ISSUE", help="The issue's id.")]
By = Annotated[str | None, Parameter(metavar="NAME", help="Who does this; default: your user name.")]


@app.command(name="list")
def list_issues(
    *,
    all: Annotated[bool, Parameter(negative="", help="Also those resolved or withdrawn.")] = False,
    severity: Annotated[
        IssueSeverity | None, Parameter(metavar="WORD", help="At least so severe.", show_default=False)
    ] = None,
    assigned_to: Annotated[str | None, Parameter(metavar="NAME", help="Only those assigned to this person.")] = None,
    unassigned: Annotated[bool, Parameter(negative="", help="Only those assigned to nobody.")] = False,
    entity: Annotated[str | None, Parameter(metavar="TYPE:ID", help="Only those about this entity.")] = None,
    job: Annotated[str | None, Parameter(metavar="JOB", help="Only those of this job.")] = None,
    blocking: Annotated[bool | None, Parameter(help="Only those a job waits for; or only the others.")] = None,
    order: Annotated[Literal["newest", "severity"], Parameter(metavar="ORDER", help="What comes first.")] = "newest",
    limit: Limit = 50,
    after: Annotated[str | None, Parameter(metavar="ISSUE", help="Go on after this one: the next page.")] = None,
    json: Json = False,
) -> int:
    """List open issues, the newest first."""
    from docmill.cli.opening import opened
    from docmill.services.submission import entity_of

    if unassigned and assigned_to is not None:
        raise WrongUse("--assigned-to and --unassigned exclude each other; give one of them.")
    with opened() as installation:
        found = installation.issues.list(
            status=None if all else IssueStatus.OPEN,
            severity=severity,
            assigned_to="" if unassigned else assigned_to,
            entity=None if entity is None else entity_of(entity),
            job_id=None if job is None else installation.jobs.find_id(job),
            blocking=blocking,
            order=order,
            limit=limit,
            after=after,
        )
    if json:
        print_json({"issues": [record(issue) for issue in found]})
    elif found:
        issue_table(found)
        note_page(len(found), limit, found[-1].id)
    else:
        print("No such issues." if all or after else "No open issues.", file=sys.stderr)
    return 0


@app.command
def show(issue: IssueId, /, *, json: Json = False) -> int:
    """Show an issue: what it is about, what it asks for, and how to resolve it."""
    from docmill.cli.opening import opened

    with opened() as installation:
        view = installation.issues.get(issue)
    if json:
        print_json({"issue": record(view)})
    else:
        details(view)
    return 0


@app.command(name="open", usage="docmill issues open [OPTIONS] TITLE (--entity TYPE:ID | --job JOB)")
def open_issue(
    title: Annotated[str, Parameter(name="TITLE", help="What is wrong, in a line.")],
    /,
    *,
    entity: Annotated[str | None, Parameter(metavar="TYPE:ID", help="The entity it is about.")] = None,
    job: Annotated[str | None, Parameter(metavar="JOB", help="The job it is about.")] = None,
    severity: Annotated[IssueSeverity, Parameter(metavar="WORD", help="How bad it is.")] = IssueSeverity.WARNING,
    code: Annotated[str, Parameter(metavar="CODE", help="A word to find its like by.")] = "reported",
    assign_to: Annotated[str | None, Parameter(metavar="NAME", help="Who looks after it.")] = None,
    by: By = None,
    json: Json = False,
) -> int:
    """Open an issue about an entity or a job.

    It blocks nothing; `docmill jobs cancel` stops a job.
    """
    from docmill.services.submission import entity_of

    with acting_for(name=by) as (installation, acting):
        view = installation.issues.by(acting).open(
            title=title,
            code=code,
            severity=severity,
            entity=None if entity is None else entity_of(entity),
            job_id=None if job is None else installation.jobs.find_id(job),
            assigned_to=assign_to,
            by=acting.id,
        )
    if json:
        print_json({"issue": record(view)})
    else:
        print(view.id)
    return 0


@app.command(usage="docmill issues assign [OPTIONS] ISSUE (NAME | --nobody)")
def assign(
    issue: IssueId,
    name: Annotated[str | None, Parameter(name="NAME", help="Who looks after it; leave out with --nobody.")] = None,
    /,
    *,
    nobody: Annotated[bool, Parameter(negative="", help="Nobody in particular looks after it.")] = False,
    json: Json = False,
) -> int:
    """Assign an open issue to somebody."""

    if (name is None) != nobody:
        raise WrongUse("Name somebody to assign the issue to, or give --nobody.")
    with acting_for() as (installation, acting):
        issues = installation.issues.by(acting)
        view = issues.unassign(issue) if name is None else issues.assign(issue, name)
    if json:
        print_json({"issue": record(view)})
    else:
        print(f"Issue {view.id} is assigned to {view.assigned_to or 'nobody'}.")
    return 0


@app.command(help_epilogue=_RESOLVE_EXAMPLES)
def resolve(
    issue: IssueId,
    /,
    *,
    data: Annotated[
        str | None, Parameter(metavar="JSON", help="The answer, as JSON.", allow_leading_hyphen=True)
    ] = None,
    data_file: Annotated[
        str | None, Parameter(metavar="FILE", help="The answer, from a JSON file; - is stdin.")
    ] = None,
    set: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="KEY=VALUE",
            negative="",
            consume_multiple=False,
            help="One key of the answer, its value JSON or else text; may be given several times, over --data.",
        ),
    ] = (),
    action: Annotated[
        IssueAction, Parameter(metavar="ACTION", help="What the waiting step does.")
    ] = IssueAction.CONTINUE,
    note: Annotated[str | None, Parameter(metavar="TEXT", help="Why, for whoever looks at it later.")] = None,
    by: By = None,
    json: Json = False,
) -> int:
    """Resolve an issue. If its job waits for it, the job goes on.

    continue: the step completes; the data corrects its result key by key, or is the result if the step has none of
    its own. retry: the step runs again. fail: the step fails, with the note as the reason.
    """
    from docmill.cli.answers import parse_answer

    answer = parse_answer(data=data, file=data_file, entries=set)
    with acting_for(name=by) as (installation, acting):
        view = installation.issues.by(acting).resolve(issue, answer, action=action, by=acting.id, note=note)
        job = None if view.job_id is None else installation.jobs.get(view.job_id)
    if json:
        print_json({"issue": record(view), "job": None if job is None else record(job.summary)})
    else:
        print(f"Issue {view.id} is resolved." + (f" {_stands(job)}" if job and view.blocking else ""))
    return 0


def _stands(job: "JobView") -> str:
    """Where the job stands now; what it waits for may be something else by then."""
    summary = job.summary
    waiting = [step.step_key for step in job.steps if step.status is StepStatus.WAITING]
    waits = f" and waits for {', '.join(waiting)}" if waiting else ""
    return f"Job {summary.id} is {summary.status}{waits}."
