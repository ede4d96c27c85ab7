"""Issues as people use them: what a resolution does to the step that waits, and every refusal by its name.

Long because every way to resolve, and every refusal, starts from the same question.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from docmill.db.tables import issues as table
from docmill.engine import failpoints
from docmill.engine.batch import Batch, Report, StepRun
from docmill.engine.events import Cancelled, Completed, Failed, Suspended
from docmill.engine.issues import NewIssue
from docmill.model.errors import Conflict, DatabaseUnavailable, InvalidInput, NotFound
from docmill.model.ids import derived_id, new_id
from docmill.model.issues import IssueAction, IssueSeverity, IssueStatus
from docmill.model.statuses import StepKind
from docmill.services.issues import Issues
from docmill.services.resolving import (
    AlreadyResolved,
    AnswerInvalid,
    AnswerUnused,
    IssueWithdrawn,
    NotWaiting,
    merged,
)
from docmill.templates.plan import Plan
from docmill.testing.samples import Draft, make_plan, single_step
from docmill.testing.world import OTHER_ORG, World, lease

TOTAL = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}


class Bell:
    """Remembers what was rung."""

    def __init__(self) -> None:
        self.rung: set[str] = set()

    def ring(self, queues: Any) -> None:
        self.rung |= set(queues)

    def listen(self, worker_id: str, on_ring: object) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def issues(world: World, bell: Bell) -> Iterator[Issues]:
    issues = Issues(world.database, bell)
    yield issues
    issues.close()


def plan(*, processor: str | None = None, schema: Mapping[str, object] | None = None, attempts: int = 4) -> Plan:
    made = make_plan([Draft(key="check", kind=StepKind.RULE, processor=processor, max_attempts=attempts)])
    first, finish = made.steps
    return replace(made, steps=(replace(first, output_schema=schema), finish))


def blocking(n: int = 0, **more: Any) -> NewIssue:
    values: dict[str, Any] = {"code": "total_mismatch", "title": "Is this right?", "corrects": True, **more}
    return NewIssue(id=derived_id(new_id(), n), blocking=True, **values)


def ask(world: World, *asked: NewIssue, of: Plan | None = None, result: str = '{"total": 1, "tax": 2}') -> StepRun:
    """A job whose first step waits for these issues."""
    world.submit(of or plan())
    run = world.claim_one(queue="rule")
    deadline = world.job(run.job.id).created_at + timedelta(days=1)
    event = Suspended(**lease(run), deadline=deadline, result=result)
    outcome = world.commit(Batch(reports=[Report(job_id=run.job.id, event=event, issues=asked)]))
    assert outcome.accepted == (True,)
    return run


def step(world: World, run: StepRun) -> Any:
    return world.steps(run.job.id)["check"]


def test_a_resolution_corrects_the_result_and_the_job_goes_on(world: World, issues: Issues, bell: Bell) -> None:
    issue = blocking()
    run = ask(world, issue)
    assert world.job(run.job.id).status == "WAITING"
    view = issues.resolve(issue.id, {"total": 110}, by="ann", note="as printed")
    assert (view.status, view.action, view.data) == (IssueStatus.RESOLVED, IssueAction.CONTINUE, {"total": 110})
    assert (view.resolved_by, view.note) == ("ann", "as printed")
    assert view.resolved_at is not None
    assert (step(world, run).status, step(world, run).result) == ("COMPLETED", {"total": 110, "tax": 2})
    assert bell.rung == {"system"}, "whoever runs the finish step hears of it"
    world.run_to_end()
    assert world.job(run.job.id).status == "COMPLETED"


def test_an_answer_to_a_step_with_a_processor_is_still_to_be_applied(world: World, issues: Issues, bell: Bell) -> None:
    issue = blocking()
    run = ask(world, issue, of=plan(processor="save"))
    issues.resolve(issue.id, {"total": 110})
    found = step(world, run)
    assert (found.status, found.checkpointed, found.result) == ("READY", True, {"total": 110, "tax": 2})
    assert bell.rung == {"rule"}


def test_without_data_the_result_is_accepted_as_it_is(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    issues.resolve(issue.id)
    assert step(world, run).result == {"total": 1, "tax": 2}


def test_the_answer_to_a_plain_question_is_the_whole_result(world: World, issues: Issues) -> None:
    issue = blocking(corrects=False)
    run = ask(world, issue, result='{"note": "what was remembered while waiting"}')
    issues.resolve(issue.id, {"approved": True})
    assert step(world, run).result == {"approved": True}


@pytest.mark.parametrize(
    ("result", "answers", "expected"),
    [
        ({"a": 1, "b": {"c": 2}}, [{"b": {"d": 3}}], {"a": 1, "b": {"d": 3}}),
        ({"a": 1}, [{"a": 2}, None, {"a": 3}], {"a": 3}),
        ([1, 2], [{"a": 1}], {"a": 1}),
        ({"a": 1}, [7], 7),
        (None, [None], None),
        ("kept", [None], "kept"),
        (None, [False], False),
    ],
)
def test_answers_are_laid_over_the_result(result: object, answers: list[object], expected: object) -> None:
    assert merged(result, answers) == expected


def test_a_step_goes_on_when_the_last_of_its_issues_is_resolved(world: World, issues: Issues) -> None:
    first, second, remark = blocking(1), blocking(2), NewIssue(id=new_id(), code="remark", title="By the way")
    run = ask(world, first, second, remark)
    issues.resolve(second.id, {"tax": 20, "total": 120})
    assert step(world, run).status == "WAITING"
    issues.resolve(first.id, {"total": 110})
    assert step(world, run).result == {"total": 110, "tax": 20}, "who comes last wins"
    assert issues.get(remark.id).status is IssueStatus.OPEN, "what does not block is looked at whenever"


def test_retry_runs_the_step_again_and_uses_no_attempt(world: World, issues: Issues) -> None:
    first, second = blocking(1), blocking(2)
    run = ask(world, first, second)
    issues.resolve(first.id, action=IssueAction.RETRY)
    assert (step(world, run).status, step(world, run).failures, step(world, run).checkpointed) == ("READY", 0, False)
    assert issues.get(second.id).status is IssueStatus.WITHDRAWN
    again = world.claim_one(queue="rule")
    assert (again.state.epoch, again.state.checkpointed) == (2, False)


def test_fail_fails_the_step_for_good_and_says_who_rejected_it(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    issues.resolve(issue.id, action=IssueAction.FAIL, by="ann", note="not our invoice")
    assert step(world, run).error == {
        "code": "issue_rejected",
        "message": "Rejected by ann: not our invoice",
        "attempt": 1,
    }
    assert (step(world, run).status, world.job(run.job.id).status) == ("FAILED", "FAILED")


def test_data_that_does_not_fit_is_refused_with_place_and_rule(world: World, issues: Issues) -> None:
    issue = blocking(answer_schema=TOTAL)
    run = ask(world, issue)
    for data, place in [({"total": "many"}, r"\$\.total: .*properties/total/type"), ({}, "required"), (None, "null")]:
        with pytest.raises(AnswerInvalid, match=place):
            issues.resolve(issue.id, data)
    assert step(world, run).status == "WAITING"
    assert issues.get(issue.id).status is IssueStatus.OPEN
    issues.resolve(issue.id, {"total": 3})
    assert step(world, run).status == "COMPLETED"


def test_a_result_that_would_not_fit_its_output_schema_is_refused(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue, of=plan(schema=TOTAL), result='{"total": null}')
    with pytest.raises(AnswerInvalid, match=r"the result of check does not fit: \$\.total"):
        issues.resolve(issue.id, {"tax": 1})
    assert issues.get(issue.id).status is IssueStatus.OPEN
    issues.resolve(issue.id, {"total": 4})
    assert step(world, run).result == {"total": 4}


def test_an_issue_is_resolved_once(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    issues.resolve(issue.id, {"total": 1}, by="ann")
    with pytest.raises(AlreadyResolved, match=r"resolved by ann at \d{4}-"):
        issues.resolve(issue.id, {"total": 2}, by="bob")
    assert step(world, run).result == {"total": 1, "tax": 2}


def test_of_two_who_resolve_at_the_same_moment_one_is_told_so(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    barrier = Barrier(2)

    def resolve(total: int) -> str:
        barrier.wait(30)
        try:
            issues.resolve(issue.id, {"total": total}, by=str(total))
        except Conflict as error:
            return error.code
        return str(total)

    with ThreadPoolExecutor(2) as people:
        answers = sorted(people.map(resolve, [1, 2]))
    winner, loser = answers
    assert loser == "already_resolved"
    assert step(world, run).result["total"] == int(winner)


def test_two_who_resolve_the_last_two_issues_at_once_do_not_both_leave_it_to_the_other(
    world: World, issues: Issues
) -> None:
    for _ in range(10):
        first, second = blocking(1), blocking(2)
        run = ask(world, first, second)
        barrier = Barrier(2)

        def resolve(issue: NewIssue, key: str, barrier: Barrier = barrier) -> None:
            barrier.wait(30)
            issues.resolve(issue.id, {key: 9})

        with ThreadPoolExecutor(2) as people:
            for done in [people.submit(resolve, first, "total"), people.submit(resolve, second, "tax")]:
                done.result(30)
        assert step(world, run).result == {"total": 9, "tax": 9}


@pytest.mark.parametrize("ending", ["cancel", "deadline", "other step"])
def test_an_issue_whose_job_no_longer_waits_is_withdrawn(world: World, issues: Issues, ending: str) -> None:
    issue = blocking()
    beside = make_plan([Draft(key="check", kind=StepKind.RULE, max_attempts=1), Draft(key="other")])
    run = ask(world, issue, of=beside)
    if ending == "cancel":
        world.report(run.job.id, Cancelled())
    elif ending == "deadline":
        world.report(run.job.id, Failed(**lease(run), error='{"code":"deadline_passed"}'))
    else:
        other = world.claim_one()
        world.report(run.job.id, Failed(**lease(other), error="{}", permanent=True))
    status = "CANCELLED" if ending == "cancel" else "FAILED"
    with pytest.raises(IssueWithdrawn, match=f"is {status} and no longer waits"):
        issues.resolve(issue.id, {"total": 1})
    assert world.job(run.job.id).status == status


def test_a_question_that_comes_after_the_job_failed_is_never_open(world: World, issues: Issues) -> None:
    issue = blocking()
    job_id = world.submit(make_plan([Draft(key="check", kind=StepKind.RULE), Draft(key="other")]))
    run, other = world.claim_one(queue="rule"), world.claim_one()
    world.report(job_id, Failed(**lease(other), error="{}", permanent=True))
    late = Report(job_id=job_id, event=Suspended(**lease(run), deadline=None), issues=(issue,))
    assert world.commit(Batch(reports=[late])).accepted == (True,)
    assert issues.get(issue.id).status is IssueStatus.WITHDRAWN


def test_an_answer_from_elsewhere_withdraws_what_is_still_open(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    world.report(run.job.id, Completed(**lease(run), result='{"total": 5}'))
    with pytest.raises(IssueWithdrawn):
        issues.resolve(issue.id)
    assert step(world, run).result == {"total": 5}


def test_an_open_issue_of_another_wait_is_no_answer_to_this_one(world: World, issues: Issues) -> None:
    """Nothing leaves such a row behind; if something did, it must not answer what it was not asked."""
    run = ask(world, blocking())
    stray = blocking()
    world.commit(Batch(reports=[Report(job_id=run.job.id, event=Suspended(**lease(run), deadline=None))]))
    world.report(run.job.id, Cancelled())
    late = Report(job_id=run.job.id, event=Completed(position=1, epoch=9), issues=(stray,))
    assert world.commit(Batch(reports=[late])).accepted == (False,)
    with pytest.raises(NotFound):
        issues.resolve(stray.id)


def test_an_issue_that_does_not_block_is_resolved_without_data(world: World, issues: Issues) -> None:
    remark = NewIssue(id=new_id(), code="remark", title="By the way")
    run = ask(world, blocking(), remark)
    for wrong in ({"data": {"a": 1}}, {"action": IssueAction.RETRY}, {"action": IssueAction.FAIL}):
        with pytest.raises(AnswerUnused, match="does not block"):
            issues.resolve(remark.id, **wrong)
    assert issues.resolve(remark.id, note="seen").status is IssueStatus.RESOLVED
    assert step(world, run).status == "WAITING"
    with pytest.raises(AlreadyResolved):
        issues.resolve(remark.id)


def test_data_beside_a_failure_has_no_use(world: World, issues: Issues) -> None:
    issue = blocking()
    ask(world, issue)
    with pytest.raises(AnswerUnused, match="say why in the note"):
        issues.resolve(issue.id, {"total": 1}, action=IssueAction.FAIL)


@pytest.mark.parametrize("issue_id", [new_id(), "nonsense", ""], ids=["unknown", "word", "empty"])
def test_an_unknown_issue_is_not_found_whatever_is_asked(issues: Issues, issue_id: str) -> None:
    asks: list[Callable[[str], object]] = [issues.get, issues.resolve, issues.unassign]
    asks += [lambda id_: issues.assign(id_, "ann"), lambda id_: issues.list(after=id_)]
    for ask_for in asks:
        with pytest.raises(NotFound, match="issues list"):
            ask_for(issue_id)


def test_the_issue_of_another_organisation_is_not_found(world: World, bell: Bell, issues: Issues) -> None:
    issue = blocking()
    ask(world, issue)
    theirs = Issues(world.database, bell, OTHER_ORG)
    assert theirs.list() == []
    with pytest.raises(NotFound):
        theirs.resolve(issue.id)
    assert issues.get(issue.id.upper()).id == issue.id


@pytest.mark.parametrize("data", [{"a": "\0"}, {"a": object()}, "\ud800"], ids=["nul", "object", "surrogate"])
def test_data_that_no_database_could_keep_is_refused(world: World, issues: Issues, data: object) -> None:
    issue = blocking()
    ask(world, issue)
    with pytest.raises(InvalidInput, match="resolution"):
        issues.resolve(issue.id, data)


def test_a_resolution_whose_commit_was_done_but_never_confirmed_is_not_refused(world: World, issues: Issues) -> None:
    issue = blocking()
    run = ask(world, issue)
    lost: list[str] = []

    def lose(point: str) -> None:
        if point == "resolve.stored" and not lost:
            lost.append(point)
            raise DatabaseUnavailable("The answer was lost.")

    failpoints.hook(lose)
    try:
        assert issues.resolve(issue.id, {"total": 7, "lines": (3, 4)}, by="ann").status is IssueStatus.RESOLVED
    finally:
        failpoints.hook(None)
    assert lost
    assert step(world, run).result == {"total": 7, "tax": 2, "lines": [3, 4]}


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


def test_a_wait_that_is_over_without_a_trace_is_named(world: World, issues: Issues) -> None:
    """The epoch is the fence for people too: an issue left open by hand answers nothing."""
    issue = blocking()
    run = ask(world, issue)
    world.report(run.job.id, Cancelled())
    with world.database.write() as connection:
        connection.execute(table.update().where(table.c.id == issue.id).values(status="open"))
    with pytest.raises(NotWaiting, match="no longer waits"):
        issues.resolve(issue.id)
    assert issues.get(issue.id).status is IssueStatus.OPEN
