"""Processing issues: look, open, assign, resolve."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.creating import Creating
from docmill.api.etags import Unless, UnlessChanged, etag, tag_of
from docmill.api.shapes import Cursor, Id, Limit, Page, Text, Wire, Word, page_of
from docmill.model.errors import InvalidInput
from docmill.model.issues import IssueAction, IssueSeverity, IssueStatus
from docmill.model.people import Permission
from docmill.services.issues import IssueView, Order
from docmill.services.submission import entity_of

routes = APIRouter(prefix="/issues", tags=["issues"], route_class=Guarded)

Severity = Annotated[IssueSeverity, Field(strict=False)]
Action = Annotated[IssueAction, Field(strict=False)]


class NewIssue(Wire):
    """Something that a person saw."""

    title: Annotated[Text, Field(min_length=1, max_length=1000)]
    code: Annotated[Text, Field(min_length=1, max_length=200)] = "reported"
    severity: Severity = IssueSeverity.WARNING
    details: Annotated[dict[str, Any], Field(max_length=1000)] = Field(default_factory=dict)
    entity: Annotated[Text, Field(max_length=1200)] | None = None
    job_id: Annotated[Text, Field(min_length=36, max_length=36)] | None = None
    assigned_to: Annotated[Text, Field(min_length=1, max_length=200)] | None = None


class IssueAssignment(Wire):
    """Who looks after it; null: nobody in particular."""

    to: Annotated[Text, Field(min_length=1, max_length=200)] | None


class IssueResolution(Wire):
    """How it is resolved, and the data that flows back into the job."""

    action: Action = IssueAction.CONTINUE
    data: Any = None
    note: Annotated[Text, Field(max_length=10_000)] | None = None


@routes.get("")
@allowed(Permission.ISSUES_READ)
def list_issues(
    call: Acting,
    status: IssueStatus | None = None,
    severity: Annotated[IssueSeverity | None, Query(description="At least so severe.")] = None,
    assigned_to: Word = None,
    entity: Annotated[str | None, Query(max_length=1200, description="`type:id`.")] = None,
    job_id: Annotated[str | None, Query(min_length=36, max_length=36)] = None,
    blocking: bool | None = None,
    order: Order = "newest",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[IssueView]:
    """The newest or the most severe first."""
    shown, following = page_of(
        "issue",
        cursor,
        limit,
        lambda after, most: call.issues.list(
            status=status,
            severity=severity,
            assigned_to=assigned_to,
            entity=None if entity is None else entity_of(entity),
            job_id=job_id,
            blocking=blocking,
            order=order,
            limit=most,
            after=after,
        ),
        lambda issue: issue.id,
    )
    return Page(items=shown, next_cursor=following)


@routes.post("", status_code=201, response_model=IssueView)
@allowed(Permission.ISSUES_RESOLVE)
def open_issue(body: NewIssue, call: Acting, creating: Creating) -> Response:
    """Open an issue about an entity or a job. It blocks nothing."""
    if (body.entity is None) == (body.job_id is None):
        raise InvalidInput("An issue is about an entity or about a job; name one of them.", field="body.entity")
    return creating.once(
        body,
        lambda: call.issues.open(
            title=body.title,
            code=body.code,
            severity=body.severity,
            details=body.details,
            entity=None if body.entity is None else entity_of(body.entity),
            job_id=body.job_id,
            assigned_to=body.assigned_to,
            by=call.principal.id,
        ),
    )


@routes.get("/{issue_id}")
@allowed(Permission.ISSUES_READ)
def get_issue(issue_id: Id, call: Acting, response: Response) -> IssueView:
    """One issue."""
    return _told(response, call.issues.get(issue_id))


@routes.post("/{issue_id}/assign")
@allowed(Permission.ISSUES_RESOLVE)
def assign(issue_id: Id, body: IssueAssignment, call: Acting, unless: UnlessChanged, response: Response) -> IssueView:
    """Make somebody look after it, or nobody in particular."""
    issues, onto = call.issues, _onto(unless)
    changed = issues.unassign(issue_id, onto=onto) if body.to is None else issues.assign(issue_id, body.to, onto=onto)
    return _told(response, changed)


@routes.post("/{issue_id}/resolve")
@allowed(Permission.ISSUES_RESOLVE)
def resolve(
    issue_id: Id,
    body: Annotated[IssueResolution, Body(default_factory=IssueResolution)],
    call: Acting,
    unless: UnlessChanged,
    response: Response,
) -> IssueView:
    """Resolve it; when no blocking issue of its step is left open, the step goes on."""
    resolved = call.issues.resolve(
        issue_id, body.data, action=body.action, by=call.principal.id, note=body.note, onto=_onto(unless)
    )
    return _told(response, resolved)


def _tag(issue: IssueView) -> str:
    return tag_of("issue", issue.id, issue.status, issue.assigned_to)


def _onto(unless: Unless) -> Callable[[IssueView], None]:
    return lambda issue: unless(_tag(issue))


def _told(response: Response, issue: IssueView) -> IssueView:
    etag(response, _tag(issue))
    return issue
