"""Issues as people keep them: opened by hand, assigned, listed and found."""

from typing import Any

import pytest

from docmill.model.errors import Conflict, InvalidInput, NotFound
from docmill.model.ids import new_id
from docmill.model.issues import IssueSeverity, IssueStatus
from docmill.services.issues import Issues
from docmill.testing.samples import single_step
from docmill.testing.world import World
from tests.contract.asking import ask, blocking


def test_a_person_opens_an_issue_about_an_entity_or_a_job(world: World, issues: Issues) -> None:
    job_id = world.submit(single_step())
    about_job = issues.open(title="Looks odd", job_id=job_id, by="ann", details={"page": 2})
    assert (about_job.job_id, about_job.entity_id, about_job.blocking) == (job_id, job_id, False)
    assert (about_job.created_by, about_job.details, about_job.code) == ("ann", {"page": 2}, "reported")
    about_entity = issues.open(title="Torn", entity=("document", "7"), severity=IssueSeverity.CRITICAL)
    assert (about_entity.job_id, about_entity.entity_type, about_entity.entity_id) == (None, "document", "7")
    assert issues.resolve(about_entity.id).status is IssueStatus.RESOLVED
    with pytest.raises(InvalidInput, match="name one of them"):
        issues.open(title="About nothing")
    with pytest.raises(InvalidInput, match="not empty"):
        issues.open(title=" ", job_id=job_id)
    with pytest.raises(NotFound, match="jobs list"):
        issues.open(title="Looks odd", job_id=new_id())


def test_open_issues_are_assigned_and_unassigned(issues: Issues) -> None:
    issue = issues.open(title="Torn", entity=("document", "7"))
    assert issues.assign(issue.id, "ann").assigned_to == "ann"
    assert issues.unassign(issue.id).assigned_to is None
    with pytest.raises(InvalidInput, match="Name somebody"):
        issues.assign(issue.id, " ")
    issues.resolve(issue.id)
    with pytest.raises(Conflict, match="resolved; only an open one"):
        issues.assign(issue.id, "bob")


def test_issues_are_listed_newest_or_most_severe_first_and_by_page(issues: Issues) -> None:
    severities = [IssueSeverity(word) for word in ("warning", "critical", "info", "error", "critical")]
    ids = [
        issues.open(title=f"{n}", entity=("document", "7"), severity=severity).id
        for n, severity in enumerate(severities)
    ]
    assert [issue.id for issue in issues.list()] == ids[::-1]
    assert [issue.title for issue in issues.list(order="severity")] == ["4", "1", "3", "0", "2"]
    for order in ("newest", "severity"):
        pages: list[str] = []
        while page := issues.list(order=order, limit=2, after=pages[-1] if pages else None):
            pages += [issue.id for issue in page]
        assert pages == [issue.id for issue in issues.list(order=order)]


def test_issues_are_found_by_what_they_are(world: World, issues: Issues) -> None:
    question = blocking(severity=IssueSeverity.CRITICAL, assigned_to="ann")
    run = ask(world, question)
    torn = issues.open(title="Torn", entity=("document", "7"), severity=IssueSeverity.INFO)
    done = issues.open(title="Done", entity=("document", "7"))
    issues.resolve(done.id)

    def found(**filters: Any) -> set[str]:
        return {issue.id for issue in issues.list(**filters)}

    assert found() == {question.id, torn.id}
    assert found(status=None) == {question.id, torn.id, done.id}
    assert found(status=IssueStatus.RESOLVED) == {done.id}
    assert found(severity=IssueSeverity.WARNING) == {question.id}
    assert found(assigned_to="ann") == {question.id}
    assert found(assigned_to="") == {torn.id}
    assert found(entity=("document", "7")) == {torn.id}
    assert found(job_id=run.job.id) == {question.id}
    assert found(blocking=False) == {torn.id}
